// SPDX-License-Identifier: Apache-2.0

package stage

import (
	"fmt"
	"os"
	"strconv"
	"strings"
)

// SiteAIO is how many requests of asynchronous I/O are set aside for one MySQL: the kernel counted 69,150 for 30 of them with the defaults of 9.7.
const SiteAIO = 2400

const aioTaken, aioLimit = "/proc/sys/fs/aio-nr", "/proc/sys/fs/aio-max-nr"

// RoomForAIO raises the kernel's limit of asynchronous I/O, fs.aio-max-nr, if that many more groups do not fit under it: their mysqld would end
// with "io_setup() failed with EAGAIN". The nodes of the lab are one kernel, so what is enough for a node may be too little here. What
// it returns puts the limit back to what it was.
func (s *Stage) RoomForAIO(groups int) (back func() error, err error) {
	taken, err := kernelNumber(aioTaken)
	if err != nil {
		return nil, err
	}
	limit, err := kernelNumber(aioLimit)
	if err != nil {
		return nil, err
	}
	need := taken + groups*len(Sites)*SiteAIO
	if need <= limit {
		return func() error { return nil }, nil
	}
	s.Say("raising fs.aio-max-nr from %d to %d for %d groups", limit, need, groups)
	if err := setKernelNumber(aioLimit, need); err != nil {
		return nil, err
	}
	return func() error { return setKernelNumber(aioLimit, limit) }, nil
}

func kernelNumber(path string) (int, error) {
	raw, err := os.ReadFile(path)
	if err != nil {
		return 0, fmt.Errorf("read a limit of the kernel: %w", err)
	}
	n, err := strconv.Atoi(strings.TrimSpace(string(raw)))
	if err != nil {
		return 0, fmt.Errorf("%s: %w", path, err)
	}
	return n, nil
}

func setKernelNumber(path string, n int) error {
	if err := os.WriteFile(path, []byte(strconv.Itoa(n)), 0); err != nil {
		return fmt.Errorf("set a limit of the kernel: %w", err)
	}
	return nil
}
