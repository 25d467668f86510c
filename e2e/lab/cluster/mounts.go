// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"fmt"
	"os"
	"slices"
	"strings"
	"syscall"
	"time"
)

// parseMountsBelow lists the mount points below dir, the innermost and newest first.
func parseMountsBelow(mountinfo, dir string) []string {
	unescape := strings.NewReplacer(`\040`, " ", `\011`, "\t", `\012`, "\n", `\134`, `\`)
	var found []string
	for line := range strings.Lines(mountinfo) {
		f := strings.Fields(line)
		if len(f) < 5 {
			continue
		}
		if point := unescape.Replace(f[4]); strings.HasPrefix(point, dir+"/") {
			found = append(found, point)
		}
	}
	slices.Reverse(found)
	return found
}

// unmountBelow unmounts everything below dir. The caller has ended the programs that used it.
func unmountBelow(dir string) error {
	for deadline := time.Now().Add(10 * time.Second); ; time.Sleep(50 * time.Millisecond) {
		raw, err := os.ReadFile("/proc/self/mountinfo")
		if err != nil {
			return fmt.Errorf("list mounts: %w", err)
		}
		points := parseMountsBelow(string(raw), dir)
		if len(points) == 0 {
			return nil
		}
		late := time.Now().After(deadline)
		for _, point := range points {
			err = syscall.Unmount(point, syscall.MNT_DETACH|umountNoFollow)
			if err != nil && late {
				return fmt.Errorf("unmount %s: %w", point, err)
			}
		}
	}
}

// umountNoFollow is UMOUNT_NOFOLLOW, which package syscall does not name.
const umountNoFollow = 8
