module github.com/hotset-go/hotset/fastcache/bench

go 1.26.0

replace github.com/hotset-go/hotset/fastcache => ../
