module github.com/hotset-go/hotset/bytebufferpool

go 1.22
