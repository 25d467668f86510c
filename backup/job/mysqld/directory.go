// SPDX-License-Identifier: Apache-2.0

package mysqld

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/mysql-mfg/mfg/backup/job/terms"
)

// PartialSuffix marks a directory that is being filled. Its mark is there before anything else, and goes when all of it is on the disk: what
// has a mark is never whole.
const PartialSuffix = ".loading"

// Clear makes an empty data directory, in place of what an earlier try of ours left. Anything else that is there is not touched.
func (s *Server) Clear() error {
	dir := s.Config.Dir
	mark := dir + PartialSuffix
	entries, err := os.ReadDir(dir)
	switch {
	case errors.Is(err, fs.ErrNotExist):
	case err != nil:
		return err
	case len(entries) > 0:
		if _, err := os.Stat(mark); err != nil {
			return terms.Fail(terms.TargetNotEmpty, fmt.Errorf("%s holds data that no backup brought: nothing was touched; choose another volume, or move the data away", dir))
		}
	}
	if err := os.WriteFile(mark, nil, 0o600); err != nil {
		return err
	}
	if err := errors.Join(Sync(mark), Sync(filepath.Dir(dir))); err != nil {
		return err
	}
	// The directory itself may be the mount of a volume.
	for _, e := range entries {
		if err := os.RemoveAll(filepath.Join(dir, e.Name())); err != nil {
			return err
		}
	}
	return os.MkdirAll(dir, 0o750)
}

// Settle makes the data directory durable, and takes its mark off.
func (s *Server) Settle() error {
	dir := s.Config.Dir
	if err := errors.Join(syncTree(dir), Sync(filepath.Dir(dir))); err != nil {
		return err
	}
	if err := os.Remove(dir + PartialSuffix); err != nil {
		return err
	}
	return Sync(filepath.Dir(dir))
}

// FreshKeyring removes what an earlier try left in the keyring's place: the data that needed it is gone.
func (s *Server) FreshKeyring() error {
	file := s.Config.KeyringFile
	if file == "" {
		return nil
	}
	for _, name := range []string{file, file + ".backup"} {
		if err := os.Remove(name); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return terms.Fail(terms.BadConfig, fmt.Errorf("remove what is left of a keyring: %w", err))
		}
	}
	return nil
}

// syncTree makes everything below a directory durable.
func syncTree(root string) error {
	return filepath.WalkDir(root, func(file string, d fs.DirEntry, err error) error {
		if err != nil || !d.IsDir() && !d.Type().IsRegular() {
			return err
		}
		return Sync(file)
	})
}

// Sync makes one file or directory durable.
func Sync(file string) error {
	f, err := os.Open(file)
	if err != nil {
		return err
	}
	return errors.Join(f.Sync(), f.Close())
}
