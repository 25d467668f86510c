// SPDX-License-Identifier: Apache-2.0

package measure

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"regexp"

	"golang.org/x/sys/unix"
)

const (
	// batch is how many names of a directory are read at a time, mostNames how many at most: in a data directory with more
	// names than that, the binary logs are not counted.
	batch     = 1000
	mostNames = 100_000
)

var binlogName = regexp.MustCompile(`^binlog\.[0-9]{6,}$`)

// Look looks at the volume that the data directory is on, and at the binary logs in it.
func Look(datadir string) (Use, error) {
	var fs unix.Statfs_t
	if err := unix.Statfs(datadir, &fs); err != nil {
		return Use{}, fmt.Errorf("look at the room on the data volume: %w", err)
	}
	block := float64(fs.Bsize)
	use := Use{
		Size: float64(fs.Blocks) * block, Available: float64(fs.Bavail) * block, Used: float64(fs.Blocks-fs.Bfree) * block,
		Files: float64(fs.Files), FilesFree: float64(fs.Ffree),
	}
	var err error
	if use.Binlogs, use.BinlogBytes, err = binlogs(datadir); err != nil {
		use.Binlogs, use.BinlogBytes = -1, -1
	}
	return use, nil
}

var errTooManyNames = errors.New("the data directory has too many entries")

func binlogs(datadir string) (count, bytes float64, err error) {
	dir, err := os.Open(datadir)
	if err != nil {
		return 0, 0, err
	}
	// Nothing was written to it, so an error of Close means nothing.
	defer func() { _ = dir.Close() }()
	for seen := 0; ; seen += batch {
		if seen >= mostNames {
			return 0, 0, errTooManyNames
		}
		names, err := dir.Readdirnames(batch)
		if errors.Is(err, io.EOF) {
			return count, bytes, nil
		}
		if err != nil {
			return 0, 0, err
		}
		for _, name := range names {
			if !binlogName.MatchString(name) {
				continue
			}
			info, err := os.Lstat(filepath.Join(datadir, name))
			if errors.Is(err, os.ErrNotExist) {
				continue // purged meanwhile
			}
			if err != nil {
				return 0, 0, err
			}
			count++
			bytes += float64(info.Size())
		}
	}
}
