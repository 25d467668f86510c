// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"context"
	"fmt"
	"os/exec"
	"slices"
	"strings"
)

// The chains that hold a namespace's cuts. They sit in the mangle table because it sees a
// packet before its connection is looked up (so that established ones are cut too), and on
// the way out after a Service's address was replaced by the pod's.
const (
	chainIn  = "MFG-LAB-IN"
	chainOut = "MFG-LAB-OUT"
)

// CutNet drops everything between two endpoints without a word, or with oneWay only what a
// sends to b. Either may be a node, client, host or all. Open connections are cut too.
func (c *Cluster) CutNet(ctx context.Context, a, b string, oneWay bool) error {
	return c.changeDrops(ctx, func(s *state) error {
		drops, err := expand(s, a, b, oneWay)
		if err != nil {
			return err
		}
		for _, d := range drops {
			if !slices.Contains(s.Drops, d) {
				s.Drops = append(s.Drops, d)
			}
		}
		return nil
	})
}

// HealNet takes back the cuts between two endpoints, in both directions.
func (c *Cluster) HealNet(ctx context.Context, a, b string) error {
	return c.changeDrops(ctx, func(s *state) error {
		drops, err := expand(s, a, b, false)
		if err != nil {
			return err
		}
		s.Drops = slices.DeleteFunc(s.Drops, func(d Drop) bool { return slices.Contains(drops, d) })
		return nil
	})
}

// HealAllNet takes back every cut that CutNet made.
func (c *Cluster) HealAllNet(ctx context.Context) error {
	return c.changeDrops(ctx, func(s *state) error {
		s.Drops = nil
		return nil
	})
}

// changeDrops keeps the state locked until the rules are in force, so that two commands at
// the same time cannot leave rules that differ from the state.
func (c *Cluster) changeDrops(ctx context.Context, change func(*state) error) error {
	return c.update(func(s *state) error {
		before := map[string]string{}
		for _, e := range s.namespaces() {
			before[e.Name] = renderDrops(s, e)
		}
		if err := change(s); err != nil {
			return err
		}
		for _, e := range s.namespaces() {
			// The rules of a dead node come back with it.
			if s.Killed[e.Name] || renderDrops(s, e) == before[e.Name] {
				continue
			}
			if err := applyDrops(ctx, s, e); err != nil {
				return err
			}
		}
		return nil
	})
}

// expand turns what a user said into single directions between single endpoints.
func expand(s *state, a, b string, oneWay bool) ([]Drop, error) {
	pick := func(name string) ([]Endpoint, error) {
		if name == AllName {
			return s.endpoints(), nil
		}
		e, err := find(s.endpoints(), name)
		return []Endpoint{e}, err
	}
	from, err := pick(a)
	if err != nil {
		return nil, err
	}
	to, err := pick(b)
	if err != nil {
		return nil, err
	}
	var drops []Drop
	for _, x := range from {
		for _, y := range to {
			if x.Name == y.Name {
				continue
			}
			drops = append(drops, Drop{From: x.Name, To: y.Name})
			if !oneWay {
				drops = append(drops, Drop{From: y.Name, To: x.Name})
			}
		}
	}
	if len(drops) == 0 {
		return nil, fmt.Errorf("cut %s from %s: that is one and the same", a, b)
	}
	return drops, nil
}

// renderDrops writes one namespace's rules for iptables-restore. The receiver drops, so that
// the sender learns nothing; only for the host, whose firewall is not ours, the sender does.
func renderDrops(s *state, self Endpoint) string {
	var b strings.Builder
	fmt.Fprintf(&b, "*mangle\n:%s - [0:0]\n:%s - [0:0]\n", chainIn, chainOut)
	all := s.endpoints()
	for _, d := range s.Drops {
		switch {
		case d.To == self.Name:
			from, _ := find(all, d.From)
			for _, source := range from.addresses() {
				fmt.Fprintf(&b, "-A %s -i eth0 -s %s -j DROP\n", chainIn, source)
			}
		case d.From == self.Name && d.To == HostName:
			fmt.Fprintf(&b, "-A %s -o eth0 -d %s -j DROP\n", chainOut, hostIP)
		}
	}
	b.WriteString("COMMIT\n")
	return b.String()
}

// addresses are all sources that an endpoint's packets may have.
func (e Endpoint) addresses() []string {
	if e.PodCIDR == "" {
		return []string{e.IP}
	}
	return []string{e.IP, e.PodCIDR}
}

func applyDrops(ctx context.Context, s *state, e Endpoint) error {
	cmd := exec.CommandContext(ctx, "nsenter", "--net="+netnsPath(e.Netns()), "--",
		"iptables-restore", "--wait", "--noflush")
	cmd.Stdin = strings.NewReader(renderDrops(s, e))
	if _, err := outputOf(cmd); err != nil {
		return fmt.Errorf("write cuts of %s: %w", e.Name, err)
	}
	return nil
}

// hookDrops makes the chains count; they come before whatever else is in the table.
func hookDrops(ctx context.Context, e Endpoint) error {
	for hook, chain := range map[string]string{"PREROUTING": chainIn, "POSTROUTING": chainOut} {
		if _, err := inNetns(ctx, e.Netns(), "iptables", "-w", "-t", "mangle", "-I", hook, "-j", chain); err != nil {
			return fmt.Errorf("hook cuts of %s: %w", e.Name, err)
		}
	}
	return nil
}
