// SPDX-License-Identifier: Apache-2.0

package agent

import (
	"bytes"
	"context"
	"crypto/ed25519"
	"errors"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/sys/unix"

	"github.com/mysql-mfg/mfg/api/wire"
	"github.com/mysql-mfg/mfg/sidecar/fence"
)

// TestKeysFollowTheChainI3: a site takes the word of the key that its pod was started with, and of what that one leads to; and
// never goes back.
func TestKeysFollowTheChainI3(t *testing.T) {
	next := ed25519.NewKeyFromSeed(bytes.Repeat([]byte{3}, ed25519.SeedSize))
	by := func(key ed25519.PrivateKey, keys wire.Chain) wire.Signed {
		s := told(1, "a")
		s.Keys = keys
		return sign(t, key, s)
	}
	ours, others := by(authority, nil), by(stranger, nil)
	replaced := by(next, wire.Chain(nil).Next(authority, public(next)))
	forked := by(stranger, wire.Chain(nil).Next(authority, public(stranger)))
	k := NewKeys(public(authority))
	check := func(when string, trusted ed25519.PrivateKey, want ...bool) {
		t.Helper()
		for i, s := range []wire.Signed{others, ours, by(next, nil)} {
			if _, err := NewKeys(public(trusted)).Verify(s); (err == nil) != want[i] {
				t.Errorf("I3: %s: statement %d: %v", when, i, err)
			}
			if _, err := k.Verify(s); (err == nil) != want[i] {
				t.Errorf("I3: %s: statement %d: %v", when, i, err)
			}
		}
		if k.Anchor() != wire.EncodeKey(public(trusted)) {
			t.Errorf("%s: trusts %s", when, k.Anchor())
		}
	}
	check("the key of the pod", authority, false, true, false)
	if _, err := k.Verify(replaced); err != nil {
		t.Fatal(err)
	}
	check("the next key has signed", next, false, false, true)
	if _, err := k.Verify(forked); err == nil {
		t.Error("I3: the key that was replaced leads to another one")
	}
	if _, err := k.Verify(replaced); err != nil {
		t.Errorf("the chain is not taken any more: %v", err)
	}
	if _, err := NewKeys(nil).Verify(ours); err == nil {
		t.Error("I3: without a key anybody is believed")
	}
}

// TestAReplacedKeyStaysReplacedAfterARestartI3: the volume has the statement by which it was replaced. It is written although nothing
// else of it is new.
func TestAReplacedKeyStaysReplacedAfterARestartI3(t *testing.T) {
	next := ed25519.NewKeyFromSeed(bytes.Repeat([]byte{3}, ed25519.SeedSize))
	chain := wire.Chain(nil).Next(authority, public(next))
	before := told(1, "a")
	after := before
	after.Keys = chain
	state := fence.Boot(fence.Site{Namespace: before.Namespace, Group: before.Group, Name: "a"}, fence.Limits{},
		fence.Kept{Signed: sign(t, authority, before), Statement: before, Verified: true, Heard: true}, fence.Instant{})
	state, _ = fence.Adopt(state, fence.Word{Origin: fence.Push, Signed: sign(t, next, after), Statement: after}, fence.Instant{})
	kept, unkept := fence.Unkept(state)
	if !unkept {
		t.Fatal("I3: it is not written")
	}
	store := Store{Dir: t.TempDir()}
	if err := store.Save(kept); err != nil {
		t.Fatal(err)
	}
	k := NewKeys(public(authority))
	if kept, _, err := store.Load(k.Verify); err != nil || !kept.Verified {
		t.Fatalf("%+v, %v", kept, err)
	}
	if _, err := k.Verify(sign(t, authority, told(2, "a"))); err == nil {
		t.Error("I3: the key that was replaced is believed again after a restart")
	}
}

// TestTheReportTellsWhomTheSiteTrustsAndWhatItShows: the operator signs with a new key only once every site will take it.
func TestTheReportTellsWhomTheSiteTrustsAndWhatItShows(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		w.boot()
		defer w.end()
		r := w.push(told(5, "a"))
		if r.Anchor != wire.EncodeKey(public(authority)) {
			t.Errorf("trusts %q", r.Anchor)
		}
		if c := r.Certificate; c == nil || c.NotAfter == nil || c.NotAfter.Unix() != 7 || c.Problem != "a problem" {
			t.Errorf("certificate %+v", c)
		}
	})
}

func public(key ed25519.PrivateKey) ed25519.PublicKey { return key.Public().(ed25519.PublicKey) }

func TestTheDialerRemembersTheLastGoodAddress(t *testing.T) {
	var dialed []string
	var dnsDown bool
	d := &Dialer{
		Lookup: func(ctx context.Context, host string) ([]string, error) {
			if _, bounded := ctx.Deadline(); !bounded {
				t.Error("the lookup is not bounded")
			}
			if dnsDown || host != "peer" {
				return nil, errors.New("no such host")
			}
			return []string{"192.0.2.1", "192.0.2.2"}, nil
		},
		Dial: func(_ context.Context, _, address string) (net.Conn, error) {
			dialed = append(dialed, address)
			if strings.HasPrefix(address, "192.0.2.1:") {
				return nil, errDown
			}
			c, other := net.Pipe()
			return c, other.Close()
		},
	}
	dial := func(address string) error {
		conn, err := d.DialContext(t.Context(), "tcp", address)
		if err == nil {
			_ = conn.Close()
		}
		return err
	}
	if err := dial("peer:8090"); err != nil {
		t.Error(err)
	}
	dnsDown = true
	if err := dial("peer:8090"); err != nil {
		t.Error(err)
	}
	if err := dial("stranger:8090"); err == nil {
		t.Error("a name that never resolved was dialed")
	}
	if err := dial("[2001:db8::1]:8090"); err != nil {
		t.Error(err)
	}
	want := []string{"192.0.2.1:8090", "192.0.2.2:8090", "192.0.2.2:8090", "[2001:db8::1]:8090"}
	if diff := cmp.Diff(want, dialed); diff != "" {
		t.Errorf("dialed (-want +got):\n%s", diff)
	}
}

func TestTheClockGoesOn(t *testing.T) {
	clock, err := NewClock()
	if err != nil {
		t.Fatal(err)
	}
	first := clock()
	time.Sleep(2 * time.Millisecond)
	second := clock()
	if passed := second.Mono - first.Mono; passed < time.Millisecond || passed > time.Minute || second.Wall.Before(first.Wall) {
		t.Errorf("from %+v to %+v", first, second)
	}
}

// proc writes the files of a process table.
func proc(t *testing.T, entries map[string]string) Procfs {
	t.Helper()
	root := t.TempDir()
	for pid, stat := range entries {
		if err := os.MkdirAll(filepath.Join(root, pid), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(root, pid, "stat"), []byte(stat), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return Procfs{Root: root, Datadir: t.TempDir()}
}

// stat is a line of proc(5) stat.
func stat(comm, state, threads, start string) string {
	return "7 (" + comm + ") " + state + " 0 7 7 0 -1 4194560 1 2 3 4 5 6 7 8 20 0 " + threads + " 0 " + start + " 9 9\n"
}

func TestMysqldIsFoundInTheProcessTable(t *testing.T) {
	for name, tc := range map[string]struct {
		entries map[string]string
		want    string
	}{
		"none":                                  {map[string]string{"1": stat("pause", "S", "1", "5"), "self": "", "20": stat("mysqld_safe", "S", "1", "5")}, ""},
		"one":                                   {map[string]string{"1": stat("pause", "S", "1", "5"), "33": stat("mysqld", "S", "40", "777")}, "33/777"},
		"two":                                   {map[string]string{"33": stat("mysqld", "S", "40", "777"), "44": stat("mysqld", "R", "1", "900")}, "33/777 44/900"},
		"a zombie, which commits nothing":       {map[string]string{"33": stat("mysqld", "Z", "1", "777")}, ""},
		"a zombie whose threads are still busy": {map[string]string{"33": stat("mysqld", "Z", "3", "777")}, "33/777"},
		"stuck on its disk":                     {map[string]string{"33": stat("mysqld", "D", "1", "777")}, "33/777"},
		"a name that looks like the end":        {map[string]string{"33": stat("a) Z 1 (mysqld", "S", "1", "777")}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			m, err := proc(t, tc.entries).Look()
			if err != nil || m.ID != tc.want || m.Running() != (tc.want != "") {
				t.Errorf("got %q, %v", m.ID, err)
			}
		})
	}
	if _, err := (Procfs{Root: "/nowhere"}).Look(); err == nil {
		t.Error("an unreadable process table is not an empty one")
	}
	p := proc(t, map[string]string{"33": stat("connection", "S", "40", "777")})
	if err := os.Symlink("/usr/sbin/mysqld (deleted)", filepath.Join(p.Root, "33", "exe")); err != nil {
		t.Fatal(err)
	}
	if m, _ := p.Look(); m.ID != "33/777" {
		t.Error("a mysqld whose main thread has another name was not found")
	}
}

// TestMain re-runs this binary as a helper through environment variables: see helper.
const helperVariable = "MFG_TEST_HELPER"

// TestHelper is not a test: it is the program of the child processes below.
func TestHelper(t *testing.T) {
	switch os.Getenv(helperVariable) {
	case "":
		return // in the parent there is nothing to do; its tests fail if a child does not do its part
	case "lock":
		f, err := os.OpenFile(os.Getenv("MFG_TEST_FILE"), os.O_RDWR, 0)
		if err != nil {
			t.Fatal(err)
		}
		if err := unix.FcntlFlock(f.Fd(), unix.F_SETLK, &unix.Flock_t{Type: unix.F_WRLCK}); err != nil {
			t.Fatal(err)
		}
	}
	_, _ = os.Stdout.WriteString("ready\n")
	_, _ = os.Stdin.Read(make([]byte, 1))
}

// helper starts a child that has done its part when this returns.
func helper(t *testing.T, program, part string, env ...string) *exec.Cmd {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), program, "-test.run=^TestHelper$")
	cmd.Env = append(os.Environ(), append(env, helperVariable+"="+part)...)
	if _, err := cmd.StdinPipe(); err != nil {
		t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
	})
	if _, err := out.Read(make([]byte, 6)); err != nil {
		t.Fatal(err)
	}
	return cmd
}

func TestTheLockOfTheDatadirIsSeen(t *testing.T) {
	p := Procfs{Root: "/proc", Datadir: t.TempDir()}
	if p.Locked() {
		t.Error("nothing there, and locked")
	}
	file := filepath.Join(p.Datadir, "ibdata1")
	if err := os.WriteFile(file, []byte("x"), 0o600); err != nil {
		t.Fatal(err)
	}
	if p.Locked() {
		t.Error("nobody there, and locked")
	}
	child := helper(t, os.Args[0], "lock", "MFG_TEST_FILE="+file)
	if !p.Locked() {
		t.Error("the lock of another process is not seen")
	}
	_ = child.Process.Kill()
	_ = child.Wait()
	if p.Locked() {
		t.Error("the lock of a dead process is seen")
	}
}

func TestKillEndsExactlyWhatWasFound(t *testing.T) {
	// A program of the right name, which is this test binary.
	program := filepath.Join(t.TempDir(), mysqldName)
	if err := os.Link(os.Args[0], program); err != nil {
		raw, err := os.ReadFile(os.Args[0])
		if err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(program, raw, 0o700); err != nil {
			t.Fatal(err)
		}
	}
	child := helper(t, program, "wait")
	pid := child.Process.Pid
	p := Procfs{Root: "/proc", Only: func(n int) bool { return n == pid }}
	m, err := p.Look()
	if err != nil || !strings.HasPrefix(m.ID, strconv.Itoa(pid)+"/") {
		t.Fatalf("found %q, %v", m.ID, err)
	}
	// The number was taken by another process since: it is left alone.
	other := mysqldOf([]process{{pid: pid, start: "1"}})
	if err := p.Kill(other); err != nil {
		t.Error(err)
	}
	if again, _ := p.Look(); again.ID != m.ID {
		t.Fatal("a process was killed for the number of another")
	}
	if err := p.Kill(m); err != nil {
		t.Error(err)
	}
	_ = child.Wait()
	if again, _ := p.Look(); again.Running() {
		t.Error("still there")
	}
	if err := p.Kill(m); err != nil {
		t.Errorf("a process that is gone already: %v", err)
	}
}
