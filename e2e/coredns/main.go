// SPDX-License-Identifier: Apache-2.0

// Command coredns is the lab's DNS server: CoreDNS with only the plugins that a cluster needs.
// The stock main links every plugin with its cloud clients and takes four times as long to build.
package main

import (
	"github.com/coredns/coredns/core/dnsserver"
	"github.com/coredns/coredns/coremain"

	_ "github.com/coredns/coredns/plugin/cache"
	_ "github.com/coredns/coredns/plugin/errors"
	_ "github.com/coredns/coredns/plugin/forward"
	_ "github.com/coredns/coredns/plugin/health"
	_ "github.com/coredns/coredns/plugin/kubernetes"
	_ "github.com/coredns/coredns/plugin/ready"
	_ "github.com/coredns/coredns/plugin/template"
)

func main() {
	// The order is the order in which a query passes through the plugins.
	dnsserver.Directives = []string{
		"health", "ready", "errors", "cache", "kubernetes", "template", "forward",
	}
	coremain.Run()
}
