// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

// A lock that is held by whoever started the lab is not held by what the lab leaves running.
func TestProgramsInheritNoFiles(t *testing.T) {
	path := filepath.Join(t.TempDir(), "lock")
	fd, err := unix.Open(path, unix.O_CREAT|unix.O_RDWR, 0o600) // without O_CLOEXEC, as a shell opens it
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = unix.Close(fd) }()
	inherited := func() bool {
		out, err := exec.CommandContext(t.Context(), "/bin/sh", "-c", "ls -l /proc/self/fd").Output()
		if err != nil {
			t.Fatal(err)
		}
		return strings.Contains(string(out), path)
	}
	if !inherited() {
		t.Fatal("the file is not inherited to begin with: this test shows nothing")
	}
	if err := keepFiles(); err != nil {
		t.Fatal(err)
	}
	if inherited() {
		t.Error("a program of the lab holds the file")
	}
}
