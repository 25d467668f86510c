// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"time"

	"github.com/mysql-mfg/mfg/e2e/demo/stage"
)

const (
	// gateMargin is the least that the promotion gate waits on top of both: a site that accepts something later may do it beside another.
	gateMargin = time.Second
	// noticing is how late a deadline may be renewed for the last time, and its end be acted upon.
	noticing = 3 * time.Second
	// repairLimit is within what the kubelet must have replaced a supervisor that stands still.
	repairLimit = time.Minute
)

// shutAfter is how long after its last answer from anybody a site may accept commits.
func shutAfter() time.Duration { return lease + fenceTimeout() + gateMargin }

// endLimit is within what a mysqld must have ended, or be closed, whose sidecar hangs.
func endLimit() time.Duration { return lease + fenceTimeout() + noticing }

// Programs and machines that stop, die, or are taken away. The two guards of an open site, the sidecar and mysqld's
// supervisor, fail one at a time.
var processScenarios = []Scenario{
	{
		Name:       "paused-node",
		Proves:     "A primary whose node stands still, and wakes up when another site may be open, ends at most the commits that were under way, and they are reported.",
		Invariants: []string{"I1", "I2", "I4"}, Role: moves,
		UnderWay: 7, // six connections go through the Service, and one to the pod
		Play:     play(hit((*Scene).Freeze), mustMove, heal, mustBeShut),
	},
	{
		Name:       "paused-mysqld",
		Proves:     "A mysqld that stands still is killed by its sidecar before another site opens.",
		Invariants: []string{"I1", "I2"},
		Play:       play(watch(mysqld), to(mysqld, (*Scene).Stop), mustEnd, mustWrite, mustFollow),
	},
	{
		Name:       "paused-sidecar",
		Proves:     "A primary whose sidecar stands still, though everybody can reach it, is ended by its supervisor or fenced by the sidecar's next run within its lease, and rows go on.",
		Invariants: []string{"I1", "I2", "I4"},
		Play:       play(watch(mysqld), to(sidecar, (*Scene).Stop), mustClose, mustWrite),
	},
	{
		Name:       "hung-sidecar",
		Proves:     "A primary whose sidecar stands still, and that only clients reach, is ended by its own supervisor or fenced by the sidecar's next run within its lease, before another site opens.",
		Invariants: []string{"I1", "I2", "I4"}, Role: moves, Mixed: true,
		Play: play(watch(mysqld), to(sidecar, (*Scene).Stop), leaveAlone, each(mustClose, mustMove, mustFollow, mustStayShut)),
	},
	{
		// Without a kubelet nobody replaces the sidecar, and nobody asks mysqld to end: the second guard stands alone.
		Name:       "hung-sidecar-and-kubelet",
		Proves:     "A primary whose sidecar and kubelet stand still, and that only clients reach, is ended by its own supervisor within its lease, before another site opens.",
		Invariants: []string{"I1", "I2", "I4"}, Role: moves, Mixed: true,
		Play: play(watch(mysqld), hit((*Scene).FreezeKubelet), to(sidecar, (*Scene).Stop), leaveAlone, each(mustEnd, mustMove, mustFollow, mustStayShut)),
	},
	{
		Name:       "starved-sidecar",
		Proves:     "A primary whose sidecar gets next to no processor time, and that only clients reach, accepts nothing after its lease, whether the sidecar still fences it or its supervisor ends it.",
		Invariants: []string{"I1", "I2", "I4"}, Role: moves, Mixed: true,
		Play: play(to(sidecar, (*Scene).Starve), leaveAlone, each(mustStayShut, mustMove)),
	},
	{
		Name:       "killed-sidecar",
		Proves:     "A primary whose sidecar is killed as it is cut off from everybody but its clients accepts nothing after its lease, whether the next sidecar fences it or its supervisor ends it.",
		Invariants: []string{"I1", "I2", "I4"}, Role: moves, Mixed: true,
		Play: play(to(sidecar, (*Scene).Kill), leaveAlone, each(mustStayShut, mustMove)),
	},
	{
		Name:   "sidecar-restart",
		Proves: "A sidecar that is killed and started again costs a short fence, and not mysqld.",
		Role:   stays, Lossless: true,
		Play: play(watch(mysqld, sidecar), to(sidecar, (*Scene).Kill), mustBeReplaced(sidecar), mustOutlive(5*time.Second), mustLive(mysqld)),
	},
	{
		Name:   "stopped-supervisor",
		Proves: "While mysqld's supervisor stands still rows go on, and within a minute the kubelet has replaced it.",
		Play:   play(watch(supervisor), to(supervisor, (*Scene).Stop), hit((*Scene).MustAccept), mustBeReplaced(supervisor), mustWrite),
	},
	{
		Name:       "power-loss",
		Proves:     "After a loss of power at the primary a candidate takes over, and what was lost is counted exactly once the old site is back.",
		Invariants: []string{"I1", "I2", "I7", "I8"}, Role: moves,
		Play: play(hit((*Scene).powerOff), mustMove),
	},
	{
		Name:       "hung-bystander",
		Proves:     "A site whose mysqld stands still vouches for nobody: its sidecar acknowledges the epoch in time, and the role moves past it.",
		Invariants: []string{"I1", "I2", "I5"}, Role: moves,
		Play: play(stopBystander, hit((*Scene).powerOff), mustMove),
	},
	{
		Name:       "deleted-behind-a-cut",
		Proves:     "The pod object of a primary that is cut off, deleted by force, proves nothing: the pod still runs, and its lease is waited for.",
		Invariants: []string{"I1", "I2", "I4", "I12"}, Role: moves,
		Play: play(leaveAlone, hit((*Scene).ForceDelete), mustMove, mustHaveWaited(true)),
	},
	{
		Name:       "force-deleted-pod",
		Proves:     "When the primary's pod is deleted by force, its successor on the volume, or another site, opens only after the old one has ended.",
		Invariants: []string{"I1", "I2", "I12"},
		Play:       play(watch(mysqld), hit((*Scene).ForceEnd), each(mustWrite, mustFollow)),
	},
	{
		Name:       "crashed-mysqld",
		Proves:     "A mysqld that crashes comes back in place, read-only first, and loses nothing.",
		Invariants: []string{"I3"}, Role: stays, Lossless: true,
		Play: play(hit((*Scene).Crash), mustWrite, mustComeBackShut),
	},
	{
		Name:       "dead-mysqld",
		Proves:     "A mysqld that cannot come back is replaced after crashGrace on its sidecar's word, without waiting for its lease.",
		Invariants: []string{"I1", "I2", "I7", "I8"}, Role: moves,
		Play: play(hit((*Scene).BreakMySQL), mustMove, mustHaveWaited(false)),
	},
	{
		Name:   "both-replicas-lost",
		Proves: "A primary that has lost both replicas goes on, as long as the operator vouches for it.",
		Role:   stays, Lossless: true,
		Play: play(func(ctx context.Context, s *Scene) error { return s.PowerOff(ctx, s.Others(s.Active)...) }, mustOutlive(5*time.Second)),
	},
}

// powerOff takes the power from one node.
func (s *Scene) powerOff(ctx context.Context, site string) error { return s.PowerOff(ctx, site) }

// stopBystander stops the mysqld of the site that can neither be the active one nor follow it in the role.
func stopBystander(ctx context.Context, s *Scene) error { return s.Stop(ctx, s.DR, mysqld) }

// to does something to a program of the active site.
func to(p stage.Program, fault func(*Scene, context.Context, string, stage.Program) error) step {
	return func(ctx context.Context, s *Scene) error { return fault(s, ctx, s.Active, p) }
}

// leaveAlone cuts the active site off from everybody but its clients. From now on nobody answers it.
func leaveAlone(ctx context.Context, s *Scene) error {
	if err := s.Isolate(ctx, s.Active, bothWays); err != nil {
		return err
	}
	s.alone = time.Now()
	return nil
}

// mustStayShut makes sure that a site that was left alone accepts nothing once its lease has run out. Writers tell it here, and
// the servers' timestamps at the end (checkAlone). It lasts long enough for a mysqld that nobody ends to be seen writing beside the
// other site.
func mustStayShut(ctx context.Context, s *Scene) error {
	if err := pause(ctx, time.Until(s.alone.Add(shutAfter()))); err != nil {
		return err
	}
	return s.MustBeShut(ctx, 5*time.Second, s.Active, s.DR)
}

// mustBeShut makes sure that the site that was active is closed now.
func mustBeShut(ctx context.Context, s *Scene) error {
	return s.MustBeShut(ctx, 5*time.Second, s.Active)
}

// mustEnd makes sure that the mysqld that was watched ends in time.
func mustEnd(ctx context.Context, s *Scene) error {
	l := s.lives[mysqld]
	s.Say("  expect: mysqld %d ends within %s", l.pid, endLimit())
	return s.sayEnd(l.mustEnd(ctx, s.began, endLimit()))
}

// mustClose makes sure that the active site ends, or turns writers away, in time. The one that did it may open it again.
func mustClose(ctx context.Context, s *Scene) error {
	l := s.lives[mysqld]
	s.Say("  expect: mysqld %d ends or turns writers away within %s", l.pid, endLimit())
	return s.sayEnd(l.mustClose(ctx, func() (time.Duration, bool) { return firstFence(s.W.Probes.Peek(s.Active), s.began) }, s.began, endLimit()))
}

func (s *Scene) sayEnd(how string, at time.Duration, err error) error {
	if err == nil {
		s.Say("  it %s %.2f s after the fault", how, (at - s.began).Seconds())
	}
	return err
}

// mustFollow makes sure that the first commit of every other site came after the active one had closed for good.
func mustFollow(_ context.Context, s *Scene) error {
	return s.mustFollow(s.lives[mysqld], s.began, s.Active, s.Others(s.Active)...)
}

// mustBeReplaced waits until a program of the active site that was watched has ended and another one of its kind runs.
func mustBeReplaced(p stage.Program) step {
	return func(ctx context.Context, s *Scene) error {
		old := s.lives[p]
		s.Say("  expect: %s of %s (container %s) is replaced", p.Name, s.Active, p.Container)
		return stage.Poll(ctx, repairLimit, fmt.Sprintf("another %s in container %s", p.Name, p.Container), func(ctx context.Context) error {
			pid, err := s.pid(ctx, s.Active, p)
			if old.mustLive(p.Name) == nil || err == nil && pid == old.pid {
				return fmt.Errorf("process %d is still there", old.pid)
			}
			return err
		})
	}
}

// mustLive makes sure that a program that was watched has not ended.
func mustLive(p stage.Program) step {
	return func(_ context.Context, s *Scene) error { return s.lives[p].mustLive(p.Name) }
}

func mustComeBackShut(ctx context.Context, s *Scene) error {
	// What was sent before the crash may be acknowledged after it was ordered: the pause that follows is what counts.
	return s.mustComeBackShut(ctx, s.Active, s.began+crashed)
}

// crashed is when a mysqld that was killed is certainly gone, and none has come back.
const crashed = 300 * time.Millisecond

// mustHaveWaited looks whether the candidate's first commit came after the lease of the old primary, or before: one that was
// reached until the fault is open until then, and one that is known to have ended is not.
func mustHaveWaited(want bool) step {
	return func(ctx context.Context, s *Scene) error {
		if err := s.MustAccept(ctx, s.Candidate); err != nil {
			return err
		}
		at, _ := firstCommit(s.W.Probes.Peek(s.Candidate), s.began)
		if waited := at-s.began >= lease; waited != want {
			return fmt.Errorf("%s accepted its first commit %s after the fault; the lease of %s was waited for: %t, want %t",
				s.Candidate, at-s.began, lease, waited, want)
		}
		return nil
	}
}
