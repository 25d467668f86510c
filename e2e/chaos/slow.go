// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/mysql-mfg/mfg/e2e/lab/relay"
)

// uplink is what a node calls its cable.
const uplink = "eth0"

// Degrade makes the network of nodes slow and lossy: what each of them sends is late, and a part of it is lost. Where the
// kernel has no netem this program does the same with the frames on their way.
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
	s.Say("  this kernel has no netem; the same in user space (%v)", err)
	return s.detour(ctx, late, relay.Quality{Delay: delay, Loss: float64(percent) / 100}, nodes)
}

// detour leads the cables of nodes through relays of this program, which are late and lose frames.
func (s *Scene) detour(ctx context.Context, name string, q relay.Quality, nodes []string) error {
	var relays []*relay.Relay
	return s.Fault(ctx, name+", in user space", func(ctx context.Context) error {
		for _, node := range nodes {
			near, far, err := s.Lab.Detour(ctx, node)
			if err != nil {
				return err
			}
			r, err := relay.Start(near, far, q, relay.Quality{})
			if err != nil {
				return err
			}
			relays = append(relays, r)
		}
		return nil
	}, func(ctx context.Context) error {
		var errs []error
		for _, node := range nodes {
			errs = append(errs, s.Lab.Straighten(ctx, node))
		}
		for _, r := range relays {
			errs = append(errs, r.Stop())
		}
		return errors.Join(errs...)
	})
}
