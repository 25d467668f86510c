// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

func netnsPath(ns string) string { return filepath.Join("/run/netns", ns) }

// ip runs one command of iproute2, written as one would type it.
func ip(ctx context.Context, format string, args ...any) error {
	_, err := output(ctx, "ip", strings.Fields(fmt.Sprintf(format, args...))...)
	return err
}

// inNetns runs a command in a network namespace.
func inNetns(ctx context.Context, ns string, argv ...string) (string, error) {
	return output(ctx, "nsenter", append([]string{"--net=" + netnsPath(ns), "--"}, argv...)...)
}

func exists(path string) bool {
	_, err := os.Lstat(path)
	return err == nil
}

func linkExists(name string) bool { return exists(filepath.Join("/sys/class/net", name)) }

// bridgeOwner tells which lab the bridge belongs to: its directory is the bridge's alias, so
// the kernel itself remembers it.
func bridgeOwner() (string, bool) {
	raw, err := os.ReadFile(filepath.Join("/sys/class/net", bridgeName, "ifalias"))
	return strings.TrimSpace(string(raw)), err == nil
}

// makeNetwork builds the bridge and every endpoint's namespace.
func (c *Cluster) makeNetwork(ctx context.Context, s *state) error {
	if err := ip(ctx, "link add %s type bridge", bridgeName); err != nil {
		return err
	}
	for _, cmd := range []string{
		"link set %s alias " + c.dir,
		"link set %s address " + hostEndpoint().MAC,
		"addr add " + hostIP + "/24 dev %s",
		"link set %s up",
	} {
		if err := ip(ctx, cmd, bridgeName); err != nil {
			return err
		}
	}
	for _, e := range s.namespaces() {
		if err := c.makeEndpoint(ctx, s, e); err != nil {
			return err
		}
	}
	if err := connect(ctx, "", bridgeName, hostEndpoint(), s.namespaces()); err != nil {
		return err
	}
	return allowForwarding(ctx)
}

// makeEndpoint gives one endpoint its namespace, its cable and its way to all others.
func (c *Cluster) makeEndpoint(ctx context.Context, s *state, e Endpoint) error {
	ns := e.Netns()
	if err := ip(ctx, "netns add %s", ns); err != nil {
		return err
	}
	for _, cmd := range []string{
		fmt.Sprintf("link add %s type veth peer name eth0 netns %s", e.Veth(), ns),
		fmt.Sprintf("-n %s link set eth0 address %s", ns, e.MAC),
		fmt.Sprintf("-n %s addr add %s/24 dev eth0", ns, e.IP),
		fmt.Sprintf("-n %s link set eth0 up", ns),
		fmt.Sprintf("-n %s link set lo up", ns),
		fmt.Sprintf("-n %s route add default via %s", ns, hostIP),
		fmt.Sprintf("link set %s master %s", e.Veth(), bridgeName),
	} {
		if err := ip(ctx, "%s", cmd); err != nil {
			return err
		}
	}
	if _, err := inNetns(ctx, ns, "sysctl", "-qw", "net.ipv4.ip_forward=1"); err != nil {
		return err
	}
	// Cuts are made for IPv4, so nothing else may leave. A kernel without IPv6 refuses this.
	_, _ = inNetns(ctx, ns, "sysctl", "-qw", "net.ipv6.conf.eth0.disable_ipv6=1")
	if err := connect(ctx, ns, "eth0", e, s.endpoints()); err != nil {
		return err
	}
	if err := applyDrops(ctx, s, e); err != nil {
		return err
	}
	if err := hookDrops(ctx, e); err != nil {
		return err
	}
	if s.Cut[e.Name] {
		return nil
	}
	return ip(ctx, "link set %s up", e.Veth())
}

// connect writes neighbours and routes of one endpoint. The neighbours are permanent: with
// ARP a dead peer would soon turn into "no route to host", whereas between data centres
// nobody answers at all.
func connect(ctx context.Context, ns, dev string, self Endpoint, others []Endpoint) error {
	at := ""
	if ns != "" {
		at = "-n " + ns + " "
	}
	services := ""
	for _, o := range others {
		if o.Name == self.Name {
			continue
		}
		if err := ip(ctx, "%sneigh replace %s lladdr %s dev %s nud permanent", at, o.IP, o.MAC, dev); err != nil {
			return err
		}
		if o.PodCIDR == "" {
			continue
		}
		if services == "" {
			services = o.IP
		}
		if err := ip(ctx, "%sroute replace %s via %s", at, o.PodCIDR, o.IP); err != nil {
			return err
		}
	}
	// Where no kube-proxy runs, the first node stands in for it.
	if self.PodCIDR == "" && services != "" {
		return ip(ctx, "%sroute replace %s via %s", at, serviceNet, services)
	}
	return nil
}

// forwardRules let bridged traffic through a host whose firewall filters bridges and drops
// by default, as one with Docker does.
func forwardRules(verb string) [][]string {
	var rules [][]string
	for _, direction := range []string{"-i", "-o"} {
		rules = append(rules, []string{"-w", verb, "FORWARD", direction, bridgeName, "-m", "comment", "--comment", "mfg-lab", "-j", "ACCEPT"})
	}
	return rules
}

func allowForwarding(ctx context.Context) error {
	out, err := output(ctx, "iptables", "-w", "-S", "FORWARD")
	if err != nil || !strings.Contains(out, "-P FORWARD DROP") {
		return err
	}
	for _, rule := range forwardRules("-I") {
		if _, err := output(ctx, "iptables", rule...); err != nil {
			return err
		}
	}
	return nil
}

// removeNetwork takes away all that makeNetwork made, as far as it is there.
func (c *Cluster) removeNetwork(ctx context.Context, s *state) error {
	var errs []error
	if out, err := output(ctx, "iptables", "-w", "-S", "FORWARD"); err == nil && strings.Contains(out, "mfg-lab") {
		for _, rule := range forwardRules("-D") {
			_, err := output(ctx, "iptables", rule...)
			errs = append(errs, err)
		}
	}
	for _, e := range s.namespaces() {
		errs = append(errs, removeEndpoint(ctx, e))
	}
	if owner, ok := bridgeOwner(); ok && (owner == c.dir || owner == "") {
		errs = append(errs, ip(ctx, "link del %s", bridgeName))
	}
	return errors.Join(errs...)
}

func removeEndpoint(ctx context.Context, e Endpoint) error {
	var errs []error
	// The cable first: once it is gone nothing that dies can say a last word.
	if linkExists(e.Veth()) {
		errs = append(errs, ip(ctx, "link del %s", e.Veth()))
	}
	if end, _ := e.detourOf(); linkExists(end) {
		errs = append(errs, ip(ctx, "link del %s", end))
	}
	if exists(netnsPath(e.Netns())) {
		errs = append(errs, ip(ctx, "netns del %s", e.Netns()))
	}
	return errors.Join(errs...)
}
