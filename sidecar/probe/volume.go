// SPDX-License-Identifier: Apache-2.0

package probe

import (
	"errors"
	"fmt"
	"os"
	"slices"
	"syscall"

	"golang.org/x/sys/unix"
)

const (
	// room is how many bytes a volume must have left for a client's next transaction, written how many the probe really writes.
	room    = 1 << 20
	written = 4 << 10
)

// File is a file on the data volume that is written over and over; it is empty in between.
type File struct{ Path string }

// Try writes to the file, waits until the content is on disk, and empties the file again.
func (f File) Try() (err error) {
	file, err := os.OpenFile(f.Path, os.O_CREATE|os.O_WRONLY|os.O_TRUNC, 0o600)
	if err != nil {
		return fmt.Errorf("write to the data volume: %w", err)
	}
	defer func() {
		if err = errors.Join(err, file.Truncate(0), file.Close()); err != nil {
			err = fmt.Errorf("write to the data volume: %w", err)
		}
	}()
	// Not every file system can reserve room; then the write alone has to do.
	if err := unix.Fallocate(int(file.Fd()), 0, 0, room); err != nil && isFull(err) {
		return err
	}
	if _, err := file.Write(make([]byte, written)); err != nil {
		return err
	}
	return file.Sync()
}

func isErrno(err error, numbers ...syscall.Errno) bool {
	number, ok := errors.AsType[syscall.Errno](err)
	return ok && slices.Contains(numbers, number)
}
