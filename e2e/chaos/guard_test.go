// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"os"
	"path/filepath"
	"sync/atomic"
	"testing"
	"time"

	"github.com/mysql-mfg/mfg/e2e/writer/journal"
	"github.com/mysql-mfg/mfg/e2e/writer/load"
)

func TestQuotaOf(t *testing.T) {
	for name, tt := range map[string]struct {
		groups string
		want   quota
		fails  bool
	}{
		"v1":               {groups: "9:name=systemd:/lab/x\n5:cpuacct:/lab/x\n4:cpu:/lab/x\n0::/lab/x\n", want: quota{dir: "/cg/cpu/lab/x"}},
		"v1, together":     {groups: "4:cpu,cpuacct:/lab/x\n", want: quota{dir: "/cg/cpu,cpuacct/lab/x"}},
		"v2":               {groups: "0::/lab/x\n", want: quota{dir: "/cg/lab/x", v2: true}},
		"cpuset is no cpu": {groups: "3:cpuset:/lab/x\n", fails: true},
		"nothing":          {fails: true},
	} {
		got, err := quotaOf(tt.groups, "/cg")
		if got != tt.want || (err != nil) != tt.fails {
			t.Errorf("%s: %+v, %v", name, got, err)
		}
	}
}

// What was limited is not limited afterwards, and a container that is gone needs nothing.
func TestQuotaIsLifted(t *testing.T) {
	for _, v2 := range []bool{false, true} {
		q := quota{dir: t.TempDir(), v2: v2}
		if err := q.starve(); err != nil {
			t.Error(err)
		}
		if !q.starved() {
			t.Error("what is starved is not seen to be")
		}
		if err := q.lift(); err != nil || q.starved() {
			t.Errorf("starved %t: %v", q.starved(), err)
		}
		name, want := "cpu.cfs_quota_us", "-1"
		if v2 {
			name, want = "cpu.max", "max "+usualPeriod
		}
		if got, _ := os.ReadFile(filepath.Join(q.dir, name)); string(got) != want {
			t.Errorf("v2 %t: %s is %q, want %q", v2, name, got, want)
		}
		q.dir = filepath.Join(q.dir, "gone")
		if err := q.lift(); err != nil {
			t.Error(err)
		}
	}
	if err := (quota{}).lift(); err != nil {
		t.Error(err)
	}
}

func TestAliveIn(t *testing.T) {
	proc := t.TempDir()
	for pid, line := range map[string]string{"1": "1 (mysqld) S 0", "2": "2 (my) Z sqld) Z 0", "3": "3 (a Z) R 0", "4": "4 (mysqld) T 0"} {
		if err := os.MkdirAll(filepath.Join(proc, pid), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(proc, pid, "stat"), []byte(line), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	alive := aliveIn(proc)
	for pid, want := range map[int]bool{1: true, 2: false, 3: true, 4: true, 5: false} {
		if alive(pid) != want {
			t.Errorf("process %d alive: %t, want %t", pid, !want, want)
		}
	}
}

// A mysqld that runs on is never taken for one that has ended, and the end is known when it comes.
func TestLife(t *testing.T) {
	var dead atomic.Bool
	l := &life{pid: 7, done: make(chan struct{})}
	go l.follow(t.Context(), func(int) bool { return !dead.Load() })
	if _, _, err := l.mustEnd(t.Context(), 0, 0); err == nil {
		t.Error("it runs, and passed for ended")
	}
	now := load.Now()
	shut := func() (time.Duration, bool) { return now + 1, true }
	if how, at, err := l.mustClose(t.Context(), shut, now, time.Second); err != nil || how == "ended" || at != now+1 {
		t.Errorf("it turned writers away: %q, %s, %v", how, at, err)
	}
	if _, _, err := l.mustClose(t.Context(), shut, now, 1); err == nil {
		t.Error("it turned writers away too late, and passed")
	}
	if err := l.mustLive("mysqld"); err != nil {
		t.Error(err)
	}
	dead.Store(true)
	<-l.done
	if how, at, err := l.mustEnd(t.Context(), l.at-time.Second, 2*time.Second); err != nil || how != "ended" || at != l.at {
		t.Errorf("%q, %s, %v", how, at, err)
	}
	if _, _, err := l.mustEnd(t.Context(), l.at-2*time.Second, time.Second); err == nil {
		t.Error("it ended too late, and passed")
	}
	if err := l.mustLive("mysqld"); err == nil {
		t.Error("it has ended, and passed for alive")
	}
	gone, cancel := context.WithCancel(t.Context())
	cancel()
	other := &life{pid: 8, done: make(chan struct{})}
	other.follow(gone, func(int) bool { return true })
	if other.mustLive("mysqld") != nil {
		t.Error("who stops looking has seen no end")
	}
}

func TestWhatWritersMet(t *testing.T) {
	s := time.Second
	commit := func(start, ack time.Duration) journal.Commit { return journal.Commit{Start: start, Ack: ack} }
	shut := journal.Journal{
		Commits: []journal.Commit{commit(1*s, 2*s), commit(9*s, 10*s), commit(11*s, 12*s)},
		States:  []journal.State{{At: 4 * s, Reason: "connection refused"}, {At: 5 * s, Reason: "1290"}},
	}
	open := shut
	open.States = shut.States[:1]
	if at, some := firstCommit([]journal.Journal{shut}, 3*s); !some || at != 10*s {
		t.Errorf("first commit at %s, %t", at, some)
	}
	if _, some := firstCommit([]journal.Journal{shut}, 11*s); some {
		t.Error("nothing was sent after that")
	}
	if err := shutBefore([]journal.Journal{shut}, 3*s, 10*s); err != nil {
		t.Error(err)
	}
	for name, from := range map[string]time.Duration{"turned away before the crash only": 6 * s, "after its first commit only": 3 * s} {
		first := 10 * s
		if from == 3*s {
			first = 4 * s
		}
		if err := shutBefore([]journal.Journal{shut}, from, first); err == nil {
			t.Errorf("%s: passed", name)
		}
	}
	if err := shutBefore([]journal.Journal{open}, 3*s, 10*s); err == nil {
		t.Error("a server that is not there is not one that came up closed")
	}
	if err := mustNotFence([]journal.Journal{shut}, 3*s); err == nil {
		t.Error("a fence was not seen")
	}
	if err := mustNotFence([]journal.Journal{open}, 3*s); err != nil {
		t.Error(err)
	}
	if at, some := closedSince([]journal.Journal{shut}, 3*s); some {
		t.Errorf("it accepted commits after it had turned somebody away at %s", at)
	}
	shut.States = append(shut.States, journal.State{At: 13 * s, Reason: "connection refused"}, journal.State{At: 14 * s, Reason: "3032"})
	if at, some := closedSince([]journal.Journal{shut}, 3*s); !some || at != 14*s {
		t.Errorf("closed at %s, %t", at, some)
	}
}
