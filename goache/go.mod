module github.com/hotset-go/hotset/goache

go 1.25
