// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"strconv"
	"strings"
)

// mysqldAIO is how many asynchronous I/O requests the kernel reserves for one mysqld with its defaults: 69,150 were seen for 30 of them.
const mysqldAIO = 2300

// asyncIOUsedUp says that the kernel may have too few left for another mysqld, which then ends with "io_setup() failed with EAGAIN", and
// what helps. It is empty if there are enough, or if that cannot be read. All containers of a node share these numbers.
func asyncIOUsedUp(read func(path string) ([]byte, error)) string {
	taken, limit := number(read, "/proc/sys/fs/aio-nr"), number(read, "/proc/sys/fs/aio-max-nr")
	if limit == 0 || limit-taken >= mysqldAIO {
		return ""
	}
	return fmt.Sprintf("this node has %d of its %d requests of asynchronous I/O left, and mysqld needs some %d: raise fs.aio-max-nr of the node (sysctl -w fs.aio-max-nr=1048576)",
		max(0, limit-taken), limit, mysqldAIO)
}

func number(read func(string) ([]byte, error), path string) int {
	raw, err := read(path)
	if err != nil {
		return 0
	}
	n, _ := strconv.Atoi(strings.TrimSpace(string(raw)))
	return n
}
