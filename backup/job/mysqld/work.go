// SPDX-License-Identifier: Apache-2.0

package mysqld

import (
	"bytes"
	"fmt"
	"os"
	"strconv"
	"time"

	"github.com/mysql-mfg/mfg/backup/job/terms"
)

// tick is the unit in which the kernel tells the time of processors, on all that we are built for.
const tick = 10 * time.Millisecond

// Work is what the mysqld that runs has done so far. It is zero without one, and where the kernel does not tell.
func (s *Server) Work() terms.Work {
	pid := s.pid.Load()
	if pid == 0 {
		return terms.Work{}
	}
	return workOf(pid)
}

// workOf asks the kernel: a server that hangs answers nothing, and one that waits for its disk may answer all the same.
func workOf(pid int64) (out terms.Work) {
	if raw, err := os.ReadFile(fmt.Sprintf("/proc/%d/io", pid)); err == nil {
		for line := range bytes.Lines(raw) {
			switch name, value, _ := bytes.Cut(line, []byte(": ")); string(name) {
			case "rchar", "wchar", "read_bytes", "write_bytes": // no one of them has everything: direct, asynchronous, in a cache
				out.Bytes += number(value)
			}
		}
	}
	if raw, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid)); err == nil {
		// The name is in parentheses, and may hold any character. The times are the 12th and 13th field behind it.
		fields := bytes.Fields(raw[bytes.LastIndexByte(raw, ')')+1:])
		if len(fields) > 12 {
			out.CPU = time.Duration(number(fields[11])+number(fields[12])) * tick
		}
	}
	return out
}

// number is 0 for what is none.
func number(text []byte) int64 {
	n, _ := strconv.ParseInt(string(bytes.TrimSpace(text)), 10, 64)
	return n
}
