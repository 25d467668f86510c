// SPDX-License-Identifier: Apache-2.0

//go:build mysqld

package mysqltest

import (
	"os/exec"
	"runtime"
	"testing"
)

// Folder makes a folder for programs that run beside mysqld's own files, as a Job's pod has one: mounted at /srv, owned by mysqld's
// user. With a keyring, mysqld in it has the component, whose keyring is in the folder keyring.
func Folder(t testing.TB, keyring bool) string {
	t.Helper()
	if _, err := rootfs(t.Context()); err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	if err := makeHome(dir); err != nil {
		t.Fatal(err)
	}
	if keyring {
		if err := prepareKeyring(dir, false); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

// Command runs a program of the root file system as mysqld's user, with the folder at /srv and the network of this machine. Its
// processes die with the test.
func Command(t testing.TB, dir string, command ...string) *exec.Cmd {
	t.Helper()
	root, err := rootfs(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	runtime.LockOSThread() // see inRootfs
	t.Cleanup(runtime.UnlockOSThread)
	return inRootfs(t.Context(), root, dir, command...)
}

// WriteCA puts the certificate of the authority of all servers into a folder, as ca.crt.
func WriteCA(t testing.TB, dir string) {
	t.Helper()
	if _, err := writeCertificate(dir, authority()); err != nil {
		t.Fatal(err)
	}
}
