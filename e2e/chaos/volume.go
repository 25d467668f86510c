// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"github.com/mysql-mfg/mfg/e2e/demo/stage"
)

// systemTablespace is a file that mysqld must be able to write, or it ends at once and changes nothing.
func systemTablespace(dir string) string { return filepath.Join(dir, "data", "ibdata1") }

// What mysqld gives its files, and what keeps it from using them. They stay readable: the sidecar looks at the lock on
// this one, and must take a file that it cannot open for locked.
const (
	fileMode fs.FileMode = 0o640
	noMode   fs.FileMode = 0o440
)

// BreakMySQL kills mysqld of a site and keeps it from starting again, while its pod and sidecar live: the file that it
// needs first may not be written.
func (s *Scene) BreakMySQL(ctx context.Context, site string) error {
	dir, err := s.VolumeDir(ctx, site)
	if err != nil {
		return err
	}
	return s.Fault(ctx, "mysqld of "+site+" dies and cannot start again", func(ctx context.Context) error {
		if err := os.Chmod(systemTablespace(dir), noMode); err != nil {
			return fmt.Errorf("close system tablespace: %w", err)
		}
		return stage.KillProcess(ctx, s.Group, site, stage.Mysqld)
	}, func(ctx context.Context) error {
		if err := mendTablespace(dir); err != nil {
			return err
		}
		return s.freshPod(ctx, site)
	})
}

// freshPod replaces a site's pod if the kubelet has given up on its mysqld for a while: it would wait for up to minutes.
func (s *Scene) freshPod(ctx context.Context, site string) error {
	pod, err := s.Pod(ctx, site)
	if err != nil {
		return err
	}
	for _, c := range pod.Status.ContainerStatuses {
		if c.State.Running == nil {
			return stage.DeletePod(ctx, s.Group, site)
		}
	}
	return nil
}

// BreakQuietly is BreakMySQL at a moment at which everything that was acknowledged has reached the replicas: a lock
// keeps commits out for a while before.
func (s *Scene) BreakQuietly(ctx context.Context, site string) error {
	if _, err := s.Query(ctx, site, "GRANT RELOAD ON *.* TO 'app'@'%'"); err != nil {
		return err
	}
	if err := s.Hold(ctx, "commits on "+site+" are kept out by a lock", site, "FLUSH TABLES WITH READ LOCK"); err != nil {
		return err
	}
	if err := pause(ctx, quiet); err != nil {
		return err
	}
	return s.BreakMySQL(ctx, site)
}

// quiet is far longer than replication takes when nothing is in its way.
const quiet = 2 * time.Second

func mendTablespace(dir string) error {
	path := systemTablespace(dir)
	info, err := os.Stat(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil // it was cloned again, or removed with the group
	}
	if err != nil {
		return fmt.Errorf("look at system tablespace: %w", err)
	}
	if info.Mode().Perm() != noMode {
		return nil
	}
	if err := os.Chmod(path, fileMode); err != nil {
		return fmt.Errorf("open system tablespace: %w", err)
	}
	return nil
}

// mendAll opens what an earlier run may have left closed.
func mendAll(ctx context.Context, g *stage.Group) error {
	var errs []error
	for _, site := range stage.Sites {
		dir, err := g.VolumeDir(ctx, site)
		if err != nil {
			continue // no claim, nothing to mend
		}
		errs = append(errs, mendTablespace(dir))
	}
	return errors.Join(errs...)
}
