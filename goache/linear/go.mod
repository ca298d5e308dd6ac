module github.com/hotset-go/hotset/goache/linear

go 1.25

require (
	github.com/anishathalye/porcupine v1.3.1
	github.com/hotset-go/hotset/goache v0.0.0
)

replace github.com/hotset-go/hotset/goache => ../
