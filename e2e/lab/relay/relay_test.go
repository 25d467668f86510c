// SPDX-License-Identifier: Apache-2.0

package relay

import (
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// world is two network namespaces at the ends of two cables, whose near ends are in the test's own.
type world struct{ near, far, nearDevice, farDevice string }

func makeWorld(t *testing.T, n int) world {
	t.Helper()
	if os.Geteuid() != 0 {
		t.Skip("network namespaces need root")
	}
	if _, err := exec.LookPath("ip"); err != nil {
		t.Skip("network namespaces are made with ip, of the Debian package iproute2")
	}
	id := fmt.Sprintf("%d%d", n, os.Getpid())
	w := world{near: "relay-a-" + id, far: "relay-b-" + id, nearDevice: "rla" + id, farDevice: "rlb" + id}
	run := func(format string, args ...any) {
		t.Helper()
		line := fmt.Sprintf(format, args...)
		if out, err := exec.CommandContext(t.Context(), "ip", strings.Fields(line)...).CombinedOutput(); err != nil {
			t.Fatalf("ip %s: %v: %s", line, err, out)
		}
	}
	for i, end := range [][2]string{{w.near, w.nearDevice}, {w.far, w.farDevice}} {
		ns, device := end[0], end[1]
		run("netns add %s", ns)
		t.Cleanup(func() { _ = exec.Command("ip", "netns", "del", ns).Run() })
		run("link add %s type veth peer name eth0 netns %s", device, ns)
		run("link set %s up", device)
		run("-n %s link set eth0 address 02:00:00:00:00:0%d", ns, i+1)
		run("-n %s addr add 192.0.2.%d/24 dev eth0", ns, i+1)
		run("-n %s link set eth0 up", ns)
		// As in the lab. This machine might answer for the other side otherwise.
		run("-n %s neigh replace 192.0.2.%d lladdr 02:00:00:00:00:0%d dev eth0 nud permanent", ns, 2-i, 2-i)
	}
	return w
}

// inside runs on a thread of the namespace that ends with the function.
func inside(t *testing.T, ns string, do func() error) error {
	t.Helper()
	failed := make(chan error)
	go func() {
		runtime.LockOSThread() // and never unlocked: the thread ends with the goroutine
		f, err := os.Open("/run/netns/" + ns)
		if err == nil {
			err = unix.Setns(int(f.Fd()), unix.CLONE_NEWNET)
			_ = f.Close()
		}
		if err == nil {
			err = do()
		}
		failed <- err
	}()
	return <-failed
}

// A connection over the relay carries large segments whole, and every round takes the delays of both directions.
func TestRelayIsLateAndWhole(t *testing.T) {
	w := makeWorld(t, 1)
	const delay, size = 20 * time.Millisecond, 3 << 20
	r, err := Start(w.nearDevice, w.farDevice, Quality{Delay: delay}, Quality{Delay: delay})
	if err != nil {
		t.Fatal(err)
	}
	var l net.Listener
	if err := inside(t, w.far, func() (err error) { l, err = net.Listen("tcp", "192.0.2.2:9"); return err }); err != nil {
		t.Fatal(err)
	}
	defer func() { _ = l.Close() }()
	got := make(chan int64)
	go func() {
		c, err := l.Accept()
		if err != nil {
			close(got)
			return
		}
		n, _ := io.Copy(io.Discard, c)
		got <- n
	}()
	began := time.Now()
	var c net.Conn
	if err := inside(t, w.near, func() (err error) { c, err = net.DialTimeout("tcp", "192.0.2.2:9", 10*time.Second); return err }); err != nil {
		t.Fatal(err)
	}
	if took := time.Since(began); took < 2*delay {
		t.Errorf("a handshake took %s, less than a round of %s", took, 2*delay)
	}
	if _, err := c.Write(make([]byte, size)); err != nil {
		t.Error(err)
	}
	_ = c.Close()
	if n := <-got; n != size {
		t.Errorf("%d of %d bytes came through", n, size)
	}
	if err := r.Stop(); err != nil {
		t.Error(err)
	}
}

// What is to be lost is lost.
func TestRelayLosesAll(t *testing.T) {
	w := makeWorld(t, 2)
	r, err := Start(w.nearDevice, w.farDevice, Quality{Loss: 1}, Quality{})
	if err != nil {
		t.Fatal(err)
	}
	err = inside(t, w.near, func() error {
		c, err := net.DialTimeout("tcp", "192.0.2.2:9", time.Second)
		if err == nil {
			_ = c.Close()
		}
		return err
	})
	var late net.Error
	if !errors.As(err, &late) || !late.Timeout() {
		t.Errorf("error %v, want a timeout: something came through", err)
	}
	if err := r.Stop(); err != nil {
		t.Error(err)
	}
}
