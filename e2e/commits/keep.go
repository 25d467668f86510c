// SPDX-License-Identifier: Apache-2.0

package commits

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"
)

// basename is what the operator calls the binary logs.
const basename = "binlog."

// files lists the binary logs in a directory, also those that a Keeper keeps there, whose names begin with the file's number. A directory that is not there has none: a clone removes it.
func files(dir string) ([]string, error) {
	entries, err := os.ReadDir(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("list binary logs: %w", err)
	}
	var paths []string
	for _, e := range entries {
		name := e.Name()[strings.LastIndexByte(e.Name(), '-')+1:]
		number, ok := strings.CutPrefix(name, basename)
		if ok && number != "" && strings.Trim(number, "0123456789") == "" {
			paths = append(paths, filepath.Join(dir, e.Name()))
		}
	}
	slices.Sort(paths)
	return paths, nil
}

// ReadDir reads all binary logs in the data directory of a site.
func ReadDir(dir, site string) ([]Transaction, error) {
	paths, err := files(dir)
	if err != nil {
		return nil, err
	}
	if len(paths) == 0 {
		return nil, fmt.Errorf("there is no binary log in %s", dir)
	}
	var all []Transaction
	for _, path := range paths {
		got, err := ReadFile(path, site)
		if err != nil {
			return nil, err
		}
		all = append(all, got...)
	}
	return all, nil
}

// Keeper keeps the binary logs of sites while a test goes on. A clone, a purge or a new volume removes them, and with them what
// the site has done; a second name for the same file costs nothing and stays.
type Keeper struct {
	dir string

	mu   sync.Mutex
	kept map[file]kept
	err  error
}

// file is one on this machine, whatever its names are.
type file struct {
	device, inode uint64
}

type kept struct{ site, path string }

// NewKeeper keeps logs in a directory, which should be on the file system of the sites' volumes.
func NewKeeper(dir string) (*Keeper, error) {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, fmt.Errorf("make directory for binary logs: %w", err)
	}
	return &Keeper{dir: dir, kept: map[file]kept{}}, nil
}

// Look takes the logs that a site's data directory holds now. The first error stays, and Read tells it.
func (k *Keeper) Look(site, data string) {
	k.mu.Lock()
	defer k.mu.Unlock()
	paths, err := files(data)
	for _, path := range paths {
		err = errors.Join(err, k.take(site, path))
	}
	if k.err == nil && !errors.Is(err, syscall.EIO) {
		k.err = err // what a failing disk holds is read at the end, when it is mended, or is an error then
	}
}

func (k *Keeper) take(site, path string) error {
	info, err := os.Stat(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil // purged since it was listed
	}
	if err != nil {
		return fmt.Errorf("look at binary log: %w", err)
	}
	stat, ok := info.Sys().(*syscall.Stat_t)
	if !ok {
		return fmt.Errorf("look at binary log %s: this system has no inodes", path)
	}
	id := file{device: stat.Dev, inode: stat.Ino}
	if _, known := k.kept[id]; known {
		return nil
	}
	name := filepath.Join(k.dir, site, fmt.Sprintf("%d-%d-%s", id.device, id.inode, filepath.Base(path)))
	if err := os.MkdirAll(filepath.Dir(name), 0o700); err != nil {
		return fmt.Errorf("keep binary log: %w", err)
	}
	err = os.Link(path, name)
	switch {
	case err == nil || errors.Is(err, fs.ErrExist):
	case errors.Is(err, fs.ErrNotExist):
		return nil
	case errors.Is(err, syscall.EXDEV):
		name = path // a volume that is a file system of its own: read where it lies, as long as it does
	default:
		return fmt.Errorf("keep binary log: %w", err)
	}
	k.kept[id] = kept{site: site, path: name}
	return nil
}

// Read reads what was committed since a moment, from every log that was ever seen.
func (k *Keeper) Read(from time.Time) ([]Transaction, error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.err != nil {
		return nil, k.err
	}
	var all []Transaction
	read := map[string]bool{}
	for _, log := range k.kept {
		if read[log.path] {
			continue // a volume that was mounted again, on another device
		}
		read[log.path] = true
		info, err := os.Stat(log.path)
		switch {
		case errors.Is(err, fs.ErrNotExist):
			continue // from a volume of its own that is gone; what it held is missed by Holes
		case err != nil:
			return nil, fmt.Errorf("look at binary log: %w", err)
		case info.ModTime().Before(from):
			continue // written to the end before that
		}
		got, err := ReadFile(log.path, log.site)
		if err != nil {
			return nil, err
		}
		all = append(all, got...)
	}
	return Since(all, from), nil
}

// Dir has a directory for each site with what was kept of it, for ReadDir.
func (k *Keeper) Dir() string { return k.dir }

// Remove removes what was kept.
func (k *Keeper) Remove() error {
	if err := os.RemoveAll(k.dir); err != nil {
		return fmt.Errorf("remove kept binary logs: %w", err)
	}
	return nil
}
