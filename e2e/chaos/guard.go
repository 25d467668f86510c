// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/mysql-mfg/mfg/e2e/demo/stage"
	"github.com/mysql-mfg/mfg/e2e/writer/journal"
	"github.com/mysql-mfg/mfg/e2e/writer/load"
)

// mysqld is the server, supervisor the process that started it and starts it again, sidecar the agent beside both.
var mysqld, supervisor, sidecar = stage.Mysqld, stage.Supervisor, stage.Sidecar

// pid is the machine's number of a program of a site.
func (s *Scene) pid(ctx context.Context, site string, p stage.Program) (int, error) {
	return stage.FindProcess(ctx, s.Group, site, p)
}

// Kill ends a program of a site with SIGKILL.
func (s *Scene) Kill(ctx context.Context, site string, p stage.Program) error {
	return s.Fault(ctx, fmt.Sprintf("%s of %s (container %s) is killed", p.Name, site, p.Container), func(ctx context.Context) error {
		pid, err := s.pid(ctx, site, p)
		if err != nil {
			return err
		}
		return send(pid, syscall.SIGKILL)
	}, nil)
}

// life watches one process from now on.
type life struct {
	pid  int
	done chan struct{}
	// at is when it was first seen to be gone, on the machine's monotonic clock. It is set once done is closed.
	at time.Duration
}

// watchEvery is how exactly the end of a process is known.
const watchEvery = 5 * time.Millisecond

// watch watches programs of the active site until they end or the scenario does.
func watch(programs ...stage.Program) step {
	return func(ctx context.Context, s *Scene) error {
		for _, p := range programs {
			pid, err := s.pid(ctx, s.Active, p)
			if err != nil {
				return err
			}
			l := &life{pid: pid, done: make(chan struct{})}
			go l.follow(ctx, aliveIn("/proc"))
			s.lives[p] = l
		}
		return nil
	}
}

// follow waits for the end. A process that was reaped and one that waits for that have both ended: neither commits anything.
func (l *life) follow(ctx context.Context, alive func(int) bool) {
	for alive(l.pid) {
		select {
		case <-ctx.Done():
			return
		case <-time.After(watchEvery):
		}
	}
	l.at = load.Now()
	close(l.done)
}

// aliveIn tells whether a process runs, by its line in proc's stat.
func aliveIn(proc string) func(int) bool {
	return func(pid int) bool {
		raw, err := os.ReadFile(filepath.Join(proc, fmt.Sprint(pid), "stat"))
		if err != nil {
			return false
		}
		end := strings.LastIndexByte(string(raw), ')')
		return end < 0 || !strings.HasPrefix(string(raw[end+1:]), " Z") && !strings.HasPrefix(string(raw[end+1:]), " X")
	}
}

// mustEnd makes sure that a process ends within a time of a moment, and tells when it did.
func (l *life) mustEnd(ctx context.Context, from, limit time.Duration) (string, time.Duration, error) {
	return l.mustClose(ctx, func() (time.Duration, bool) { return 0, false }, from, limit)
}

// mustClose makes sure that a process ends within a time of a moment, or that it has turned somebody away: how and when.
func (l *life) mustClose(ctx context.Context, shut func() (time.Duration, bool), from, limit time.Duration) (string, time.Duration, error) {
	late := time.After(from + limit - load.Now())
	for {
		if at, some := shut(); some && at < from+limit {
			return "turned writers away", at, nil
		}
		select {
		case <-l.done:
			if l.at < from+limit {
				return "ended", l.at, nil
			}
			return "", 0, fmt.Errorf("mysqld (process %d) ended %s after the fault only", l.pid, l.at-from)
		case <-ctx.Done():
			return "", 0, ctx.Err()
		case <-late:
			return "", 0, fmt.Errorf("mysqld (process %d) still runs %s after the fault", l.pid, (load.Now() - from).Round(time.Millisecond))
		case <-time.After(500 * time.Millisecond):
		}
	}
}

// mustLive makes sure that a process that was watched has not ended.
func (l *life) mustLive(what string) error {
	select {
	case <-l.done:
		return fmt.Errorf("%s (process %d) has ended", what, l.pid)
	default:
		return nil
	}
}

// Starve leaves a container next to no processor time, by the limit of its control group.
func (s *Scene) Starve(ctx context.Context, site string, p stage.Program) error {
	var q quota
	return s.Fault(ctx, fmt.Sprintf("container %s of %s gets a thousandth of a processor", p.Container, site), func(ctx context.Context) error {
		pid, err := s.pid(ctx, site, p)
		if err != nil {
			return err
		}
		groups, err := os.ReadFile(fmt.Sprintf("/proc/%d/cgroup", pid))
		if err != nil {
			return fmt.Errorf("read control groups of %s: %w", p.Name, err)
		}
		if q, err = quotaOf(string(groups), "/sys/fs/cgroup"); err != nil {
			return err
		}
		return q.starve()
	}, func(context.Context) error { return q.lift() })
}

// quota is the limit of processor time of one control group.
type quota struct {
	dir string
	v2  bool
}

// quotaOf finds the group with that limit among those of a process.
func quotaOf(groups, root string) (quota, error) {
	var unified string
	for line := range strings.Lines(groups) {
		f := strings.SplitN(strings.TrimSpace(line), ":", 3)
		if len(f) != 3 {
			continue
		}
		for controller := range strings.SplitSeq(f[1], ",") {
			if controller == "cpu" {
				return quota{dir: filepath.Join(root, f[1], f[2])}, nil
			}
		}
		if f[0] == "0" {
			unified = f[2]
		}
	}
	if unified == "" {
		return quota{}, fmt.Errorf("no control group limits processor time in %q", groups)
	}
	return quota{dir: filepath.Join(root, unified), v2: true}, nil
}

// A millisecond in a second is the least that the kernel takes.
const (
	starvedQuota, starvedPeriod = "1000", "1000000"
	usualPeriod                 = "100000"
)

func (q quota) starve() error {
	if q.v2 {
		return q.set("cpu.max", starvedQuota+" "+starvedPeriod)
	}
	return errors.Join(q.set("cpu.cfs_period_us", starvedPeriod), q.set("cpu.cfs_quota_us", starvedQuota))
}

// starved tells whether the group has the limit that starve sets: nobody else sets that one.
func (q quota) starved() bool {
	name := "cpu.cfs_period_us"
	if q.v2 {
		name = "cpu.max"
	}
	raw, err := os.ReadFile(filepath.Join(q.dir, name))
	return err == nil && strings.HasSuffix(strings.TrimSpace(string(raw)), starvedPeriod)
}

func (q quota) lift() error {
	if q.dir == "" {
		return nil
	}
	if q.v2 {
		return q.set("cpu.max", "max "+usualPeriod)
	}
	return errors.Join(q.set("cpu.cfs_quota_us", "-1"), q.set("cpu.cfs_period_us", usualPeriod))
}

// set writes a file of the group. A group that is gone went with its container.
func (q quota) set(name, value string) error {
	err := os.WriteFile(filepath.Join(q.dir, name), []byte(value), 0o644)
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		return fmt.Errorf("limit processor time: %w", err)
	}
	return nil
}

// firstCommit is when the first row that was sent to a site after a moment was acknowledged; false if none was.
func firstCommit(journals []journal.Journal, from time.Duration) (time.Duration, bool) {
	var first time.Duration
	for _, j := range journals {
		for _, c := range j.Commits {
			if c.Start > from && (first == 0 || c.Ack < first) {
				first = c.Ack
			}
		}
	}
	return first, first > 0
}

// mustFollow makes sure that the first commit of every other site came after a site had closed: after the end of its mysqld, or after it
// turned a writer away and accepted nothing any more. A mysqld that the sidecar's next run has fenced may end later than another opens.
func (s *Scene) mustFollow(l *life, from time.Duration, active string, others ...string) error {
	closed, some := closedSince(s.W.Probes.Peek(active), from)
	if l.mustLive("mysqld") != nil && (!some || l.at < closed) {
		closed, some = l.at, true
	}
	for _, site := range others {
		at, accepted := firstCommit(s.W.Probes.Peek(site), from)
		if accepted && !some {
			return fmt.Errorf("%s accepted a commit, and the old mysqld (process %d) runs and has turned nobody away since its last commit", site, l.pid)
		}
		if accepted && at < closed {
			return fmt.Errorf("%s accepted a commit %s before %s had closed", site, closed-at, active)
		}
	}
	return nil
}

// closedSince is when a site turned a writer away, saying that it is closed, after the last commit that it accepted after a moment; false
// if it did not.
func closedSince(journals []journal.Journal, from time.Duration) (time.Duration, bool) {
	last := from
	for _, j := range journals {
		for _, c := range j.Commits {
			last = max(last, c.Ack)
		}
	}
	return firstFence(journals, last)
}

// fenced are the words with which a server says that it is closed.
var fenced = []string{"1290", "3032"}

// mustComeBackShut makes sure that a site turned writers away before it accepted its first commit after a moment.
func (s *Scene) mustComeBackShut(ctx context.Context, site string, from time.Duration) error {
	s.Say("  expect: %s turns writers away before it accepts one", site)
	return stage.Poll(ctx, 30*time.Second, "a commit on "+site, func(context.Context) error {
		journals := s.W.Probes.Peek(site)
		first, some := firstCommit(journals, from)
		if !some {
			return errors.New("there is none")
		}
		return shutBefore(journals, from, first)
	})
}

// shutBefore tells if nobody was turned away between two moments by a server that said that it is closed.
func shutBefore(journals []journal.Journal, from, first time.Duration) error {
	if at, some := firstFence(journals, from); !some || at >= first {
		return errors.New("it accepted a commit and nobody had been turned away before: it came up open")
	}
	return nil
}

// mustNotFence makes sure that a site has turned no writer away since a moment.
func mustNotFence(journals []journal.Journal, from time.Duration) error {
	if at, some := firstFence(journals, from); some {
		return fmt.Errorf("writers were turned away %s after that, and nothing called for a fence", at-from)
	}
	return nil
}

// firstFence is when a site first turned a writer away after a moment, saying that it is closed; false if it did not.
func firstFence(journals []journal.Journal, from time.Duration) (time.Duration, bool) {
	var first time.Duration
	for _, j := range journals {
		for _, st := range j.States {
			if st.At > from && slices.Contains(fenced, st.Reason) && (first == 0 || st.At < first) {
				first = st.At
			}
		}
	}
	return first, first > 0
}
