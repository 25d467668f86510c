// SPDX-License-Identifier: Apache-2.0

//go:build mysqld

package mysqltest

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
)

// packages is what a server needs and nothing more.
const packages = "mysql-server-core,mysql-client-core,mysql-common,libjemalloc2"

// cacheDir is where the packages and initialised data directories are kept between runs.
func cacheDir() (string, error) {
	if dir := os.Getenv("MFG_CACHE"); dir != "" {
		return filepath.Abs(dir)
	}
	home, err := os.UserHomeDir()
	if err != nil {
		return "", fmt.Errorf("find the cache: %w", err)
	}
	return filepath.Join(home, ".cache", "mfg"), nil
}

// cached returns the folder of that name in the cache, and makes it first if it does not exist. Processes that want the
// same folder at the same time wait for each other; one that dies leaves no incomplete folder under that name.
func cached(name string, make func(dir string) error) (string, error) {
	cache, err := cacheDir()
	if err != nil {
		return "", err
	}
	if err := os.MkdirAll(cache, 0o750); err != nil {
		return "", err
	}
	dir := filepath.Join(cache, name)
	lock, err := os.OpenFile(dir+".lock", os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return "", err
	}
	defer func() { _ = lock.Close() }()
	if err := syscall.Flock(int(lock.Fd()), syscall.LOCK_EX); err != nil {
		return "", fmt.Errorf("lock %s: %w", dir, err)
	}
	if _, err := os.Stat(dir); !errors.Is(err, fs.ErrNotExist) {
		return dir, err
	}
	partial := dir + ".partial"
	if err := os.RemoveAll(partial); err != nil {
		return "", err
	}
	if err := make(partial); err != nil {
		return "", fmt.Errorf("make %s: %w", dir, err)
	}
	return dir, os.Rename(partial, dir)
}

// rootfs is a root file system with mysqld from the Debian archive.
func rootfs(ctx context.Context) (string, error) {
	if os.Getuid() != 0 {
		return "", errors.New("a real mysqld needs root: it runs in a root file system and a PID namespace of its own")
	}
	return cached("mysql-rootfs", func(dir string) error {
		args := []string{
			"--aptopt=Acquire::Check-Valid-Until \"false\"", "--variant=apt", "--include=" + packages, "sid", dir,
		}
		// Without an address mmdebstrap takes its own default.
		if archive := debianArchive(ctx); archive != "" {
			args = append(args, archive)
		}
		out, err := exec.CommandContext(ctx, "mmdebstrap", args...).CombinedOutput()
		if err != nil {
			return fmt.Errorf("mmdebstrap (is the package of that name installed?): %w\n%s", err, tail(string(out)))
		}
		return nil
	})
}

// debianArchive is the archive that apt is configured with, if that is Debian's.
func debianArchive(ctx context.Context) string {
	out, err := exec.CommandContext(ctx, "apt-get", "indextargets", "--format", "$(ORIGIN)|$(LABEL)|$(REPO_URI)", "Created-By: Packages").Output()
	if err != nil {
		return ""
	}
	for line := range strings.Lines(string(out)) {
		if address, ok := strings.CutPrefix(strings.TrimSpace(line), "Debian|Debian|"); ok {
			return address
		}
	}
	return ""
}

// tail is the end of a long output.
func tail(text string) string {
	const most = 2000
	return text[max(0, len(text)-most):]
}
