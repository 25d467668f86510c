// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

func TestParseStart(t *testing.T) {
	rest := " S 1 5 5 0 -1 4194560 1 2 3 4 5 6 7 8 20 0 1 0 98765 1 2 3\n"
	for _, name := range []string{"kubelet", "a b", "x) S (y", "(((", ""} {
		got, err := parseStart("5 (" + name + ")" + rest)
		if err != nil || got != 98765 {
			t.Errorf("name %q: %d, %v", name, got, err)
		}
	}
	for _, broken := range []string{"", "5 kubelet S", "5 (kubelet) S 1"} {
		if _, err := parseStart(broken); err == nil {
			t.Errorf("%q accepted", broken)
		}
	}
}

func TestIdentity(t *testing.T) {
	cmd := exec.CommandContext(t.Context(), "sleep", "60")
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	id, err := identify(cmd.Process.Pid)
	if err != nil {
		t.Fatal(err)
	}
	if !id.Alive() {
		t.Error("a running process is not alive")
	}
	if other := (Identity{PID: id.PID, Start: id.Start + 1}); other.Alive() {
		t.Error("another process with the same number counts as this one")
	}
	_ = cmd.Process.Kill()
	deadline := time.Now().Add(5 * time.Second)
	for id.Alive() && time.Now().Before(deadline) {
		time.Sleep(time.Millisecond)
	}
	if id.Alive() {
		t.Error("a zombie counts as alive")
	}
	_ = cmd.Wait()
}

// A lab that the machine's restart ended is nobody's: it must not keep the next one from starting. One of whose programs
// still live somebody may be using, however ill it is.
func TestOver(t *testing.T) {
	self, err := identify(os.Getpid())
	if err != nil {
		t.Fatal(err)
	}
	earlier := Identity{PID: self.PID, Start: self.Start + 1}
	for name, test := range map[string]struct {
		phase     string
		processes map[string]Identity
		want      bool
	}{
		"all gone":            {phaseRunning, map[string]Identity{"etcd": earlier, "kubelet-east": earlier}, true},
		"one is left":         {phaseRunning, map[string]Identity{"etcd": earlier, "kubelet-east": self}, false},
		"all live":            {phaseRunning, map[string]Identity{"etcd": self}, false},
		"still in the making": {phaseStarting, map[string]Identity{}, false},
	} {
		t.Run(name, func(t *testing.T) {
			s := newState()
			s.Phase, s.Processes = test.phase, test.processes
			if got := s.over(); got != test.want {
				t.Errorf("over is %t, want %t", got, test.want)
			}
		})
	}
}

func TestParseCgroups(t *testing.T) {
	const v1 = "cgroup /sys/fs/cgroup/cpu cgroup rw,cpu 0 0\ncgroup /sys/fs/cgroup/freezer cgroup rw,relatime,freezer 0 0\n"
	const v2 = "cgroup2 /sys/fs/cgroup/unified cgroup2 rw 0 0\n"
	for name, c := range map[string]struct {
		mounts string
		want   cgroups
	}{
		"v1":     {v1, cgroups{control: "/sys/fs/cgroup/freezer", all: []string{"/sys/fs/cgroup/cpu", "/sys/fs/cgroup/freezer"}}},
		"hybrid": {v1 + v2, cgroups{control: "/sys/fs/cgroup/freezer", all: []string{"/sys/fs/cgroup/cpu", "/sys/fs/cgroup/freezer", "/sys/fs/cgroup/unified"}}},
		"v2":     {v2, cgroups{v2: true, control: "/sys/fs/cgroup/unified", all: []string{"/sys/fs/cgroup/unified"}}},
	} {
		got, err := parseCgroups("proc /proc proc rw 0 0\n" + c.mounts)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(c.want, got, cmp.AllowUnexported(cgroups{})); diff != "" {
			t.Errorf("%s: %s", name, diff)
		}
	}
	if _, err := parseCgroups("proc /proc proc rw 0 0\n"); err == nil {
		t.Error("a machine without cgroups accepted")
	}
}

func TestParseMountsBelow(t *testing.T) {
	const info = `1 0 8:1 / / rw - ext4 /dev/vda rw
2 1 8:1 / /lab/a rw - ext4 /dev/vda rw
3 2 8:1 / /lab/a/with\040space rw - tmpfs tmpfs rw
4 1 8:1 / /laboratory rw - tmpfs tmpfs rw
`
	want := []string{"/lab/a/with space", "/lab/a"}
	if diff := cmp.Diff(want, parseMountsBelow(info, "/lab")); diff != "" {
		t.Error(diff)
	}
}

func TestParseLists(t *testing.T) {
	ready, err := parseReady(`{"items":[
		{"metadata":{"name":"east"},"status":{"conditions":[{"type":"Ready","status":"True"}]}},
		{"metadata":{"name":"west"},"status":{"conditions":[{"type":"Ready","status":"Unknown"}]}}]}`)
	if err != nil || !cmp.Equal(ready, []string{"east"}) {
		t.Errorf("ready = %v, %v", ready, err)
	}
	released, err := parseReleased(`{"items":[
		{"metadata":{"name":"v1","labels":{"kubernetes.io/hostname":"east"}},"status":{"phase":"Released"}},
		{"metadata":{"name":"v2"},"status":{"phase":"Bound"}},
		{"metadata":{"name":"v3"},"status":{"phase":"Available"}}]}`)
	if err != nil || !cmp.Equal(released, map[string]string{"v1": "east"}) {
		t.Errorf("released = %v, %v", released, err)
	}
}

func TestPruneCache(t *testing.T) {
	dir := t.TempDir()
	old := time.Now().AddDate(0, -2, 0)
	for _, name := range []string{"seed-0123456789abcdef", "kube-0123456789abcdef", "somebody-else"} {
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(path, 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.Chtimes(path, old, old); err != nil {
			t.Fatal(err)
		}
	}
	if !used(filepath.Join(dir, "kube-0123456789abcdef")) || used(filepath.Join(dir, "absent")) {
		t.Error("used must tell what is there")
	}
	if err := pruneCache(dir, time.Now().AddDate(0, -1, 0)); err != nil {
		t.Fatal(err)
	}
	left, _ := filepath.Glob(filepath.Join(dir, "*"))
	if len(left) != 2 || exists(filepath.Join(dir, "seed-0123456789abcdef")) {
		t.Errorf("left: %v", left)
	}
}

// A kubelet that ended at its start cost three minutes of waiting, and its reason stayed in a log.
func TestEndedProgramEndsTheWait(t *testing.T) {
	c := &Cluster{dir: t.TempDir()}
	if err := os.MkdirAll(filepath.Join(c.dir, "logs"), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(c.logPath("kubelet-east"), []byte("it was refused\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	self, err := identify(os.Getpid())
	if err != nil {
		t.Fatal(err)
	}
	gone := Identity{PID: self.PID, Start: self.Start + 1}
	if err := writeState(c.dir, &state{Processes: map[string]Identity{"containerd-east": self, "kubelet-east": gone, "kubelet-west": self}}); err != nil {
		t.Fatal(err)
	}
	if err := c.ended("west"); err != nil {
		t.Errorf("a node whose programs run: %v", err)
	}
	tries := 0
	err = poll(t.Context(), time.Minute, "node east", func() error { tries++; return c.ended("east") })
	if tries != 1 || err == nil || !strings.Contains(err.Error(), "kubelet-east has ended") || !strings.Contains(err.Error(), "it was refused") {
		t.Errorf("after %d tries: %v", tries, err)
	}
}
