// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/mysql-mfg/mfg/e2e/demo/stage"
)

// Fill takes the last byte of a site's volume.
func (s *Scene) Fill(ctx context.Context, site string) error {
	dir, err := s.VolumeDir(ctx, site)
	if err != nil {
		return err
	}
	filler := filepath.Join(dir, "filler")
	return s.Fault(ctx, "the disk of "+site+" is full", func(context.Context) error {
		return fill(dir, filler)
	}, func(context.Context) error {
		if err := os.RemoveAll(filler); err != nil {
			return fmt.Errorf("make room: %w", err)
		}
		return nil
	})
}

// ownFileSystem refuses a directory that lies on this machine's own disk.
func ownFileSystem(dir string) error {
	var here, above syscall.Stat_t
	if err := syscall.Stat(dir, &here); err != nil {
		return fmt.Errorf("look at %s: %w", dir, err)
	}
	if err := syscall.Stat(filepath.Dir(dir), &above); err != nil {
		return fmt.Errorf("look at %s: %w", dir, err)
	}
	if here.Dev == above.Dev {
		return fmt.Errorf("%s is no file system of its own: what is done to it would be done to this machine's disk", dir)
	}
	return nil
}

// fill writes a file until there is no room. Only a file system of our own is ever filled.
func fill(dir, filler string) error {
	if err := ownFileSystem(dir); err != nil {
		return err
	}
	f, err := os.Create(filler)
	if err != nil {
		return fmt.Errorf("fill disk: %w", err)
	}
	defer func() { _ = f.Close() }()
	for block := make([]byte, 1<<20); len(block) > 0; {
		if _, err := f.Write(block); err != nil {
			// Down to the last byte: what is left is for smaller pieces.
			block = block[:len(block)/2]
		}
	}
	return nil
}

// FreezeDisk has the file system of a site's volume take no writes, and everybody wait who writes. Only a group apart has one
// of its own.
func (s *Scene) FreezeDisk(ctx context.Context, site string) error {
	dir, err := s.VolumeDir(ctx, site)
	if err != nil {
		return err
	}
	if err := ownFileSystem(dir); err != nil {
		return err
	}
	return s.Fault(ctx, "the disk of "+site+" does not answer", func(ctx context.Context) error {
		return fsfreeze(ctx, "--freeze", dir)
	}, func(ctx context.Context) error { return fsfreeze(ctx, "--unfreeze", dir) })
}

func fsfreeze(ctx context.Context, what, dir string) error {
	if out, err := exec.CommandContext(ctx, "fsfreeze", what, dir).CombinedOutput(); err != nil {
		return fmt.Errorf("fsfreeze %s: %w: %s", what, err, out)
	}
	return nil
}

// How a slow disk stands still and goes on.
const (
	standsFor = 300 * time.Millisecond
	goesFor   = 700 * time.Millisecond
)

// SlowDisk has the file system of a site's volume stand still again and again.
func (s *Scene) SlowDisk(ctx context.Context, site string) error {
	dir, err := s.VolumeDir(ctx, site)
	if err != nil {
		return err
	}
	if err := ownFileSystem(dir); err != nil {
		return err
	}
	pulse, stop := context.WithCancel(ctx)
	var done sync.WaitGroup
	var failed error
	return s.Fault(ctx, fmt.Sprintf("the disk of %s stands still for %s of every %s", site, standsFor, standsFor+goesFor), func(context.Context) error {
		done.Go(func() { failed = slowDown(pulse, dir) })
		return nil
	}, func(context.Context) error {
		stop()
		done.Wait()
		return failed
	})
}

// slowDown freezes and thaws a file system until it is told to stop, and leaves it thawed.
func slowDown(ctx context.Context, dir string) error {
	for ctx.Err() == nil {
		// Not to be interrupted: what is frozen must be thawed.
		if err := fsfreeze(context.WithoutCancel(ctx), "--freeze", dir); err != nil {
			return err
		}
		time.Sleep(standsFor)
		if err := fsfreeze(context.WithoutCancel(ctx), "--unfreeze", dir); err != nil {
			return err
		}
		time.Sleep(goesFor)
	}
	return nil
}

// What ext4 calls a shutdown: _IOR('X', 125, __u32) of the kernel's fs/ext4/ext4.h, without a flush of its journal. From then on
// every read and write returns EIO, until the file system is mounted again.
const (
	ext4Shutdown   = 0x8004587d
	withoutFlush   = 2
	mountAfresh    = time.Minute
	imageExtension = ".img"
)

// BreakDisk has the file system of a site's volume return an error for everything, as after the loss of its disk. To mend it the
// file system is mounted again and the site gets a new pod, as an administrator would do it.
func (s *Scene) BreakDisk(ctx context.Context, site string) error {
	dir, err := s.VolumeDir(ctx, site)
	if err != nil {
		return err
	}
	if err := ownFileSystem(dir); err != nil {
		return err
	}
	return s.Fault(ctx, "the disk of "+site+" fails", func(context.Context) error {
		f, err := os.Open(dir)
		if err != nil {
			return fmt.Errorf("fail disk: %w", err)
		}
		defer func() { _ = f.Close() }()
		if err := unix.IoctlSetPointerInt(int(f.Fd()), ext4Shutdown, withoutFlush); err != nil {
			return fmt.Errorf("shut file system down: %w", err)
		}
		return nil
	}, func(ctx context.Context) error { return s.remount(ctx, site, dir) })
}

// remount mounts the file system of a site's volume again. Until it is there no pod comes to the node, or it would take an empty
// directory for the volume.
func (s *Scene) remount(ctx context.Context, site, dir string) (err error) {
	if err := s.taint(ctx, site, true); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, s.taint(context.WithoutCancel(ctx), site, false)) }()
	run := func(argv ...string) (string, error) {
		out, err := exec.CommandContext(ctx, argv[0], argv[1:]...).CombinedOutput()
		if err != nil {
			return "", fmt.Errorf("mend disk: %s: %w: %s", strings.Join(argv, " "), err, out)
		}
		return strings.TrimSpace(string(out)), nil
	}
	if _, err := run("umount", "--lazy", dir); err != nil {
		return err
	}
	if err := os.Remove(dir); err != nil {
		return fmt.Errorf("mend disk: %w", err)
	}
	if err := stage.DeletePod(ctx, s.Group, site); err != nil {
		return err
	}
	// As long as anybody holds the old mount, a new one would be the same file system, and as broken.
	if err := stage.Poll(ctx, mountAfresh, dir+" to be let go", func(context.Context) error {
		held, err := run("losetup", "--associated", dir+imageExtension)
		if err != nil || held == "" {
			return err
		}
		return errors.New(held)
	}); err != nil {
		return err
	}
	if err := os.Mkdir(dir, 0o755); err != nil {
		return fmt.Errorf("mend disk: %w", err)
	}
	_, err = run("mount", "-o", "loop", dir+imageExtension, dir)
	return err
}
