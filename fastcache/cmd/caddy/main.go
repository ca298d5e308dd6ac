// Command caddy is Caddy with its standard modules and fastcache.
//
//	go install github.com/hotset-go/hotset/fastcache/cmd/caddy@latest
package main

import (
	_ "time/tzdata"

	caddycmd "github.com/caddyserver/caddy/v2/cmd"

	_ "github.com/caddyserver/caddy/v2/modules/standard"

	_ "github.com/hotset-go/hotset/fastcache"
)

func main() {
	caddycmd.Main()
}
