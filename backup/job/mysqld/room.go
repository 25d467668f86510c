// SPDX-License-Identifier: Apache-2.0

package mysqld

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"

	"github.com/mysql-mfg/mfg/backup/job/terms"
)

// spareBytes is what an empty data directory needs beside the data.
const spareBytes = 256 << 20

// Room refuses a volume that has too little room, before anything is touched. What an earlier try left counts as room.
func (s *Server) Room(need int64) error {
	dir := s.Config.Dir
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
		have += s.Bytes()
	}
	if want := need + spareBytes; have < want {
		return terms.Fail(terms.VolumeTooSmall, fmt.Errorf("the volume has %d MiB left, and the data needs about %d MiB: give it at least that", have>>20, want>>20))
	}
	return nil
}

// Bytes is how much room the files of the data directory take, as far as they can be read.
func (s *Server) Bytes() int64 {
	var sum int64
	_ = filepath.WalkDir(s.Config.Dir, func(_ string, d fs.DirEntry, err error) error {
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
