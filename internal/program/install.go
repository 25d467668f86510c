// SPDX-License-Identifier: Apache-2.0

// Package program copies one of our programs to a place where a container with another image can run it.
package program

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
)

// Install copies this program to a path. The path never holds an incomplete program.
func Install(dest string) error {
	own, err := os.Executable()
	if err != nil {
		return fmt.Errorf("find own program: %w", err)
	}
	if err := copyTo(own, dest); err != nil {
		return fmt.Errorf("install %s: %w", dest, err)
	}
	return nil
}

func copyTo(from, dest string) (err error) {
	in, err := os.Open(filepath.Clean(from))
	if err != nil {
		return err
	}
	defer func() { _ = in.Close() }()
	out, err := os.CreateTemp(filepath.Dir(dest), ".install-*")
	if err != nil {
		return err
	}
	defer func() {
		if err != nil {
			_ = os.Remove(out.Name())
		}
	}()
	_, err = io.Copy(out, in)
	if err = errors.Join(err, out.Chmod(0o755), out.Close()); err != nil {
		return err
	}
	return os.Rename(out.Name(), dest)
}
