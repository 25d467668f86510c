// SPDX-License-Identifier: Apache-2.0

package escrow

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// Mounts looks through the eyes of other processes. The containers of the pod share one process namespace.
type Mounts struct {
	// Root is /proc.
	Root string
}

// ReadOnly is true if every one of the processes finds at path the very file that this one finds there, on a mount that the
// kernel does not let it write to. Only that is a seal: what MySQL says of itself proves nothing. Without a process, or if
// something cannot be found out, there is no proof.
func (m Mounts) ReadOnly(path string, pids []int) bool {
	own, err := filepath.EvalSymlinks(path)
	if err != nil || len(pids) == 0 {
		return false
	}
	for _, pid := range pids {
		dir := filepath.Join(m.Root, strconv.Itoa(pid))
		sealed, err := readOnlyAt(own, filepath.Join(dir, "root")+own)
		if errors.Is(err, unix.EACCES) || errors.Is(err, unix.EPERM) {
			// A kernel that does not let one container see the files of another still shows its table of mounts.
			sealed, err = readOnlyIn(own, filepath.Join(m.Root, "self", "mountinfo"), filepath.Join(dir, "mountinfo"))
		}
		if err != nil || !sealed {
			return false
		}
	}
	return true
}

// readOnlyAt compares the file at own, as this process sees it, with the one at theirs, and reads the flags of the latter's mount.
func readOnlyAt(own, theirs string) (bool, error) {
	var a, b unix.Stat_t
	if err := unix.Stat(own, &a); err != nil {
		return false, err
	}
	if err := unix.Stat(theirs, &b); err != nil {
		return false, err
	}
	var fs unix.Statfs_t
	if err := unix.Statfs(theirs, &fs); err != nil {
		return false, err
	}
	return a.Dev == b.Dev && a.Ino == b.Ino && fs.Flags&unix.ST_RDONLY != 0, nil
}

// place is where a path leads to: a file system and a path in it.
type place struct {
	device, path string
	readOnly     bool
}

func readOnlyIn(path, ownTable, theirTable string) (bool, error) {
	own, err := placeIn(ownTable, path)
	if err != nil {
		return false, err
	}
	theirs, err := placeIn(theirTable, path)
	if err != nil {
		return false, err
	}
	return own.device == theirs.device && own.path == theirs.path && theirs.readOnly, nil
}

// placeIn reads a table of proc(5) mountinfo. If there are several mounts at one point, only the last one shows, and a later
// mount at a shorter path hides it: placeIn does not trust a table with either.
func placeIn(table, path string) (place, error) {
	raw, err := os.ReadFile(table)
	if err != nil {
		return place{}, err
	}
	var found place
	point := ""
	for line := range strings.Lines(string(raw)) {
		f := strings.Fields(line)
		if len(f) < 6 {
			continue
		}
		const device, root, mounted, options = 2, 3, 4, 5
		at := unescape(f[mounted])
		if at != path && !strings.HasPrefix(path, strings.TrimSuffix(at, "/")+"/") {
			continue
		}
		if len(at) <= len(point) {
			return place{}, fmt.Errorf("%s is mounted over", point)
		}
		point = at
		inside := strings.TrimPrefix(path, strings.TrimSuffix(at, "/"))
		found = place{
			device: f[device], path: strings.TrimSuffix(unescape(f[root]), "/") + inside,
			readOnly: strings.HasPrefix(f[options]+",", "ro,"),
		}
	}
	if point == "" {
		return place{}, errors.New("no mount holds the path")
	}
	return found, nil
}

// unescape undoes the kernel's escapes in paths.
func unescape(text string) string {
	return strings.NewReplacer(`\040`, " ", `\011`, "\t", `\012`, "\n", `\134`, `\`).Replace(text)
}
