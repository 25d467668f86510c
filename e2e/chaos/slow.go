// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"time"
)

// uplink is what a node calls its cable.
const uplink = "eth0"

// Degrade makes the network of nodes slow and lossy: what each of them sends is late, and a part of it is lost. Kernels without
// netem lose packets where they come in, and are not slow; the scenario says which it was.
func (s *Scene) Degrade(ctx context.Context, delay time.Duration, percent int, nodes ...string) error {
	late := fmt.Sprintf("what %v send is %s late, and %d %% of it is lost", nodes, delay, percent)
	err := s.Fault(ctx, late, func(ctx context.Context) error {
		for _, node := range nodes {
			if _, err := s.Lab.Exec(ctx, node, "tc", "qdisc", "replace", "dev", uplink, "root", "netem",
				"delay", delay.String(), "loss", fmt.Sprintf("%d%%", percent)); err != nil {
				return err
			}
		}
		return nil
	}, nil)
	if err == nil {
		s.faults = append(s.faults, fault{name: late, undo: func(ctx context.Context) error {
			var errs []error
			for _, node := range nodes {
				_, err := s.Lab.Exec(ctx, node, "tc", "qdisc", "del", "dev", uplink, "root")
				errs = append(errs, err)
			}
			return errors.Join(errs...)
		}})
		return nil
	}
	s.Say("  this kernel has no netem: packets are lost, and none is late (%v)", err)
	var drops []drop
	for _, node := range nodes {
		drops = append(drops, drop{node: node, match: fmt.Sprintf("-i %s -m statistic --mode random --probability %.2f", uplink, float64(percent)/100)})
	}
	return s.rules(ctx, fmt.Sprintf("%d %% of what reaches %v is lost", percent, nodes), drops)
}
