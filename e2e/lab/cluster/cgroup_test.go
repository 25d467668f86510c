// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"fmt"
	"os"
	"os/exec"
	"testing"
)

// A real control group. Only root may make one: for root a failure is a failure.
func TestKillEndsAllMembersAndNobodyElse(t *testing.T) {
	g, err := findCgroups()
	if err != nil {
		withoutRights(t, err)
	}
	group := fmt.Sprintf("sys/test-%d", os.Getpid())
	procs, err := g.join(group + "/inner")
	if err != nil {
		withoutRights(t, err)
	}
	t.Cleanup(func() {
		if err := g.remove(group); err != nil {
			t.Error(err)
		}
		// Only if no lab runs are these empty.
		_ = os.Remove(g.path("sys"))
		_ = os.Remove(g.path(""))
	})
	outside := exec.CommandContext(t.Context(), "sleep", "60")
	inside := exec.CommandContext(t.Context(), "/bin/sh", "-c", intoCgroup, procs, "sh", "-c", "echo in; sleep 60 & sleep 60")
	said, err := inside.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	for _, cmd := range []*exec.Cmd{outside, inside} {
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := said.Read(make([]byte, 3)); err != nil {
		t.Fatal(err)
	}
	if err := g.kill(group); err != nil {
		t.Fatal(err)
	}
	if left, err := g.members(group); err != nil || len(left) > 0 {
		t.Errorf("left: %v, %v", left, err)
	}
	if err := inside.Wait(); err == nil {
		t.Error("the member ended by itself")
	}
	id, err := identify(outside.Process.Pid)
	if err != nil || !id.Alive() {
		t.Errorf("a process outside the group was killed (%v)", err)
	}
}

func withoutRights(t *testing.T, err error) {
	t.Helper()
	if os.Geteuid() == 0 {
		t.Fatal(err)
	}
	t.Skip(err)
}
