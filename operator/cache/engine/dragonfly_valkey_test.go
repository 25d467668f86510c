// SPDX-License-Identifier: Apache-2.0

//go:build valkey

package engine

import (
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"syscall"
	"testing"
	"time"

	"github.com/mysql-mfg/mfg/api/v1alpha1"
)

// standIn builds the proxy that speaks as Dragonfly's documentation says, and returns how to start it before a real Valkey.
func standIn(t *testing.T) (binary, wrapper string) {
	t.Helper()
	root := rootfs(t)
	loaders, err := filepath.Glob(root + "/usr/lib/*/ld-linux-*.so.*")
	check(t, err)
	if len(loaders) != 1 {
		t.Fatalf("no loader in %s: %v", root, loaders)
	}
	dir := t.TempDir()
	binary, wrapper = filepath.Join(dir, "dragonfly"), filepath.Join(dir, "valkey-server")
	script := fmt.Sprintf("#!/bin/sh\nexec %s --library-path %s %s/usr/bin/valkey-server \"$@\"\n", loaders[0], filepath.Dir(loaders[0]), root)
	check(t, os.WriteFile(wrapper, []byte(script), 0o700))
	if out, err := exec.CommandContext(t.Context(), "go", "build", "-o", binary, "github.com/mysql-mfg/mfg/e2e/dragonfly").CombinedOutput(); err != nil {
		t.Fatalf("build the stand-in: %v\n%s", err, out)
	}
	return binary, wrapper
}

// dragonfly runs the stand-in until the test ends, and returns its port and what speaks to it as the loop does.
func dragonfly(t *testing.T, binary, wrapper string) (int, *Client) {
	t.Helper()
	port, dir := freePort(t), t.TempDir()
	cmd := exec.Command(binary, "--port="+strconv.Itoa(port), "--bind=127.0.0.1", "--dir="+dir, "--dbfilename=", "--requirepass="+password, "--masterauth="+password)
	cmd.Env = append(os.Environ(), "MFG_VALKEY_SERVER="+wrapper)
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGTERM}
	check(t, cmd.Start())
	t.Cleanup(func() {
		_ = cmd.Process.Signal(syscall.SIGTERM)
		_ = cmd.Wait()
	})
	c := New(Target{Engine: v1alpha1.CacheDragonfly, Addr: net.JoinHostPort("127.0.0.1", strconv.Itoa(port)), Hosts: []string{"127.0.0.1"}, Passwords: []string{password}})
	t.Cleanup(c.Close)
	eventually(t, "the stand-in answers", func() bool { _, err := c.Info(short(t)); return err == nil })
	return port, c
}

// Applications of an old master are cut by their numbers; the link of a replica stays, and so does what the master says of it.
func TestDragonflysClientsAreCut(t *testing.T) {
	binary, wrapper := standIn(t)
	port, master := dragonfly(t, binary, wrapper)
	_, replica := dragonfly(t, binary, wrapper)
	check(t, replica.Follow(within(t, 3*time.Second), "127.0.0.1", port))
	eventually(t, "the replica has its copy", func() bool {
		has, err := replica.Info(short(t))
		of, err2 := master.Info(short(t))
		return err == nil && err2 == nil && has.LinkUp && !has.Syncing && len(of.Replicas) == 1 && of.Replicas[0].Online && of.Offset == 0
	})
	var apps []net.Conn
	for range 300 { // more than are cut with one write
		app, err := net.Dial("tcp", master.target.Addr)
		check(t, err)
		defer func() { _ = app.Close() }()
		_, err = app.Write([]byte("AUTH " + password + "\r\n"))
		check(t, err)
		_, err = app.Read(make([]byte, 64))
		check(t, err)
		apps = append(apps, app)
	}
	began := time.Now()
	check(t, master.CutClients(within(t, 2*time.Second)))
	t.Logf("%d clients were cut within %s", len(apps), time.Since(began))
	for _, app := range apps {
		check(t, app.SetReadDeadline(time.Now().Add(2*time.Second)))
		_, err := app.Read(make([]byte, 64))
		var late net.Error
		if err == nil || errors.As(err, &late) && late.Timeout() {
			t.Fatalf("an application is still connected: %v", err)
		}
	}
	if has, err := replica.Info(short(t)); err != nil || !has.LinkUp || has.Syncing {
		t.Errorf("the replica was cut, too: %+v %v", has, err)
	}
	_, err := master.Info(short(t))
	check(t, err)
}

// A replica that stands still lags by changes, as its master says.
func TestDragonflysLag(t *testing.T) {
	binary, wrapper := standIn(t)
	port, master := dragonfly(t, binary, wrapper)
	_, replica := dragonfly(t, binary, wrapper)
	check(t, replica.Follow(within(t, 3*time.Second), "127.0.0.1", port))
	eventually(t, "the replica has its copy and confirmed it", func() bool {
		has, err := replica.Info(short(t))
		of, err2 := master.Info(short(t))
		return err == nil && err2 == nil && has.LinkUp && !has.Syncing && len(of.Replicas) == 1 && of.LagOf([]string{"127.0.0.1"}) == 0
	})
	for i := range 200 {
		_, err := master.do(short(t), "SET", fmt.Sprint("session-", i), "x")
		check(t, err)
	}
	now, err := master.Info(short(t))
	check(t, err)
	if now.LagOf([]string{"127.0.0.1"}) == 0 {
		t.Logf("the replica confirmed everything at once: %+v", now.Replicas)
	}
	eventually(t, "the replica has caught up", func() bool {
		of, err := master.Info(short(t))
		return err == nil && of.LagOf([]string{"127.0.0.1"}) == 0
	})
}
