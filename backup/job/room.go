// SPDX-License-Identifier: Apache-2.0

package job

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// spareBytes is what an empty data directory needs beside the data.
const spareBytes = 256 << 20

// room refuses a volume that has too little room, before anything is touched. What an earlier try left counts as room.
func room(dir string, need int64) error {
	at := dir
	for {
		if _, err := os.Stat(at); err == nil {
			break
		}
		if at == filepath.Dir(at) {
			break
		}
		at = filepath.Dir(at)
	}
	var st unix.Statfs_t
	if err := unix.Statfs(at, &st); err != nil {
		return fmt.Errorf("look at the room on the volume: %w", err)
	}
	have := int64(st.Bavail) * st.Bsize
	if _, err := os.Stat(dir + PartialSuffix); err == nil {
		have += treeBytes(dir)
	}
	if want := need + spareBytes; have < want {
		return fail(VolumeTooSmall, fmt.Errorf("the volume has %d MiB left, and the data needs about %d MiB: give it at least that", have>>20, want>>20))
	}
	return nil
}

// treeBytes is how much room the files below a directory take, as far as they can be read.
func treeBytes(dir string) int64 {
	var sum int64
	_ = filepath.WalkDir(dir, func(_ string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return nil //nolint:nilerr // what is gone takes no room
		}
		if info, err := d.Info(); err == nil {
			sum += info.Size()
		}
		return nil
	})
	return sum
}

// series is the first two numbers of a version, as 9.7 of 9.7.4-debug. Versions are parsed loosely: later ones may look otherwise.
func series(version string) string {
	major, minor := numbers(version)
	return fmt.Sprintf("%d.%d", major, minor)
}

func numbers(version string) (major, minor int) {
	parts := strings.SplitN(version, ".", 3)
	major, _ = strconv.Atoi(parts[0])
	if len(parts) > 1 {
		digits := strings.IndexFunc(parts[1]+" ", func(r rune) bool { return r < '0' || r > '9' })
		minor, _ = strconv.Atoi(parts[1][:digits])
	}
	return major, minor
}

// checkVersion refuses a backup of a later series than the server's: MySQL loads no data of the future.
func checkVersion(backup, server string) error {
	a, b := numbers(backup)
	c, d := numbers(server)
	if a == 0 || c == 0 {
		return fail(VersionTooOld, errors.New("the version of the backup or of the server cannot be read"))
	}
	if a > c || a == c && b > d {
		return fail(VersionTooOld, fmt.Errorf("the backup is of MySQL %s, and the server here is %s: restore with that version or a later one", backup, server))
	}
	return nil
}
