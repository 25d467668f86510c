// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/mysql-mfg/mfg/e2e/lab/cluster"
)

// chain holds the cuts that go by port or pod, which the lab's own, by node, do not know. Like those it sits where a
// packet comes in, before its connection is looked up: open connections are cut, and the sender learns nothing.
const chain = "MFG-CHAOS"

// drop is one rule: what a node receives and does not take.
type drop struct {
	node  string
	match string
}

// apply writes rules down, node by node. A node that was off has lost its chain.
func apply(ctx context.Context, lab *cluster.Cluster, drops []drop) error {
	for _, d := range drops {
		if err := hook(ctx, lab, d.node); err != nil {
			return err
		}
		argv := append([]string{"iptables", "-w", "-t", "mangle", "-A", chain}, strings.Fields(d.match)...)
		if _, err := lab.Exec(ctx, d.node, append(argv, "-j", "DROP")...); err != nil {
			return fmt.Errorf("cut at %s: %w", d.node, err)
		}
	}
	return nil
}

func hook(ctx context.Context, lab *cluster.Cluster, node string) error {
	if _, err := lab.Exec(ctx, node, "iptables", "-w", "-t", "mangle", "-C", "PREROUTING", "-j", chain); err == nil {
		return nil
	}
	// The chain may be there without being hooked in, if an earlier run was killed in between.
	_, _ = lab.Exec(ctx, node, "iptables", "-w", "-t", "mangle", "-N", chain)
	if _, err := lab.Exec(ctx, node, "iptables", "-w", "-t", "mangle", "-I", "PREROUTING", "-j", chain); err != nil {
		return fmt.Errorf("prepare cuts at %s: %w", node, err)
	}
	return nil
}

// flush takes all rules of this program back, on every node.
func flush(ctx context.Context, lab *cluster.Cluster) error {
	nodes, err := lab.Nodes()
	if err != nil {
		return err
	}
	var errs []error
	for _, n := range nodes {
		if _, err := lab.Exec(ctx, n.Name, "iptables", "-w", "-t", "mangle", "-S", chain); err != nil {
			continue // a node that was never cut this way, or is off, has no such chain
		}
		_, err := lab.Exec(ctx, n.Name, "iptables", "-w", "-t", "mangle", "-F", chain)
		errs = append(errs, err)
	}
	return errors.Join(errs...)
}

// podNet is the pod range of a node.
func podNet(lab *cluster.Cluster, node string) (string, error) {
	nodes, err := lab.Nodes()
	if err != nil {
		return "", err
	}
	for _, n := range nodes {
		if n.Name == node {
			return n.PodCIDR, nil
		}
	}
	return "", fmt.Errorf("the lab has no node %s", node)
}

// rules makes a fault out of drops.
func (s *Scene) rules(ctx context.Context, name string, drops []drop) error {
	return s.Fault(ctx, name,
		func(ctx context.Context) error { return apply(ctx, s.Lab, drops) },
		func(ctx context.Context) error { return flush(ctx, s.Lab) })
}

// CutMySQL drops what the MySQL servers of one site and of others say to each other, and nothing else: sidecars,
// operator and clients go on reaching them.
func (s *Scene) CutMySQL(ctx context.Context, site string, others ...string) error {
	var drops []drop
	for _, other := range others {
		for _, pair := range [][2]string{{site, other}, {other, site}} {
			from, err := podNet(s.Lab, pair[1])
			if err != nil {
				return err
			}
			drops = append(drops,
				drop{node: pair[0], match: "-s " + from + " -p tcp --dport 3306"},
				drop{node: pair[0], match: "-s " + from + " -p tcp --sport 3306"})
		}
	}
	return s.rules(ctx, fmt.Sprintf("MySQL of %s and of %v cannot reach each other, everything else can", site, others), drops)
}

// CutOperator cuts the operator's pod off from sites, in both directions. The writer on the same node is not.
func (s *Scene) CutOperator(ctx context.Context, sites ...string) error {
	pods, err := s.OperatorPods(ctx)
	if err != nil {
		return err
	}
	var drops []drop
	for _, pod := range pods {
		for _, site := range sites {
			from, err := podNet(s.Lab, site)
			if err != nil {
				return err
			}
			drops = append(drops,
				drop{node: site, match: "-s " + pod.Status.PodIP},
				drop{node: cluster.HubName, match: "-s " + from + " -d " + pod.Status.PodIP})
		}
	}
	return s.rules(ctx, fmt.Sprintf("the operator and %v cannot reach each other, everybody else can", sites), drops)
}

// direction is which way of a cut is closed.
type direction int

const (
	bothWays direction = iota
	outward
	inward
)

// Isolate cuts a site's node off from the control plane, the hub and the other sites, while clients still reach it:
// the case for which fences exist.
func (s *Scene) Isolate(ctx context.Context, site string, way direction) error {
	name := map[direction]string{
		bothWays: site + " is cut off from everybody but its clients",
		outward:  "nothing that " + site + " sends arrives, but at its clients",
		inward:   "nothing reaches " + site + ", but from its clients",
	}[way]
	return s.Fault(ctx, name, func(ctx context.Context) error {
		for _, other := range append([]string{cluster.HostName, cluster.HubName}, s.Others(site)...) {
			a, b := site, other
			if way == inward {
				a, b = other, site
			}
			if err := s.Lab.CutNet(ctx, a, b, way != bothWays); err != nil {
				return err
			}
		}
		return nil
	}, s.Lab.HealAllNet)
}

// Split cuts each of some places off from each of others.
func (s *Scene) Split(ctx context.Context, here, there []string) error {
	return s.Fault(ctx, fmt.Sprintf("%v and %v are cut off from each other", here, there), func(ctx context.Context) error {
		for _, a := range here {
			for _, b := range there {
				if err := s.Lab.CutNet(ctx, a, b, false); err != nil {
					return err
				}
			}
		}
		return nil
	}, s.Lab.HealAllNet)
}
