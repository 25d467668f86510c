// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bufio"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

const envHolds = "MFG_TEST_HOLDS"

// A second run on one lab is refused, and told who holds it; it may begin once the first has ended.
func TestOneLabIsBrokenByOneRun(t *testing.T) {
	dir, now := filepath.Join(t.TempDir(), "lab"), time.Date(2026, 11, 27, 1, 2, 3, 0, time.UTC)
	release, err := hold(dir, []string{"-only", "silent-cut"}, now)
	if err != nil {
		t.Fatal(err)
	}
	who := fmt.Sprintf("process %d since 2026-11-27T01:02:03Z: chaos -only silent-cut", os.Getpid())
	for range 2 { // who is refused leaves the name of the holder as it is
		if _, err := hold(dir, nil, now.Add(time.Hour)); err == nil || !strings.Contains(err.Error(), who) || !strings.Contains(err.Error(), dir) {
			t.Errorf("a second run: %v", err)
		}
	}
	other, err := hold(filepath.Join(t.TempDir(), "other"), nil, now)
	if err != nil {
		t.Errorf("a run on another lab: %v", err)
	} else {
		other()
	}
	release()
	again, err := hold(dir, nil, now)
	if err != nil {
		t.Fatalf("after its end: %v", err)
	}
	again()
}

// The lab is free however the process ends that held it, and although a program that it started goes on.
func TestALabIsFreeWhenItsRunIsKilled(t *testing.T) {
	if dir := os.Getenv(envHolds); dir != "" {
		release, err := hold(dir, nil, time.Now())
		if err != nil {
			t.Fatal(err)
		}
		defer release() // it is killed before
		child := exec.CommandContext(t.Context(), "sleep", "60")
		if err := child.Start(); err != nil {
			t.Fatal(err)
		}
		fmt.Println("held by", child.Process.Pid)
		select {}
	}
	dir := t.TempDir()
	cmd := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^TestALabIsFreeWhenItsRunIsKilled$") // this very program
	cmd.Env = append(os.Environ(), envHolds+"="+dir)
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	child := 0
	for lines := bufio.NewScanner(out); child == 0 && lines.Scan(); {
		_, _ = fmt.Sscanf(lines.Text(), "held by %d", &child)
	}
	if _, err := hold(dir, nil, time.Now()); err == nil {
		t.Error("a second process is not refused")
	}
	_ = cmd.Process.Kill()
	_ = cmd.Wait()
	release, err := hold(dir, nil, time.Now())
	if err != nil {
		t.Errorf("after the process was killed: %v", err)
	} else {
		release()
	}
	if p, err := os.FindProcess(child); err == nil && child > 0 {
		_ = p.Kill()
	}
}
