// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"syscall"
	"time"
)

var diskScenarios = []Scenario{
	{
		Name:       "disk-full",
		Proves:     "A primary whose disk is full acknowledges nothing that it cannot keep, and goes on, or is replaced, without a loss that is not reported.",
		Invariants: []string{"I1", "I2", "I5"}, Apart: true,
		Play: func(ctx context.Context, s *Scene) error {
			if err := s.Fill(ctx, s.Active); err != nil {
				return err
			}
			if err := pause(ctx, 20*time.Second); err != nil {
				return err
			}
			if err := s.Heal(ctx); err != nil {
				return err
			}
			return s.MustWrite(ctx)
		},
	},
	{
		Name:       "disk-full-of-a-replica",
		Proves:     "A replica whose disk is full disturbs nobody, and catches up once there is room.",
		Invariants: []string{"I5"}, Apart: true, Role: stays, Lossless: true,
		Play: func(ctx context.Context, s *Scene) error {
			if err := s.Fill(ctx, s.Candidate); err != nil {
				return err
			}
			return s.MustKeep(ctx, 15*time.Second)
		},
	},
}

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
