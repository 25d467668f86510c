// SPDX-License-Identifier: Apache-2.0

package main

import (
	"errors"
	"os"
	"strings"
	"testing"
)

// TestAsyncIOUsedUp: told only where another mysqld may not get what it needs, and never of a kernel that does not say.
func TestAsyncIOUsedUp(t *testing.T) {
	for name, tc := range map[string]struct {
		taken, limit string
		says         string
	}{
		"a fresh node":       {"0\n", "65536\n", ""},
		"just enough":        {"63236\n", "65536\n", ""},
		"one too few":        {"63237\n", "65536\n", "has 2299 of its 65536 requests"},
		"more than there is": {"70000\n", "65536\n", "has 0 of its 65536 requests"},
		"no limit is told":   {"63537\n", "", ""},
		"no number":          {"63537\n", "many\n", ""},
	} {
		got := asyncIOUsedUp(func(path string) ([]byte, error) {
			switch {
			case strings.HasSuffix(path, "aio-nr"):
				return []byte(tc.taken), nil
			case tc.limit == "":
				return nil, errors.New("no such file")
			}
			return []byte(tc.limit), nil
		})
		if (got == "") != (tc.says == "") || !strings.Contains(got, tc.says) {
			t.Errorf("%s: %q", name, got)
		}
	}
}

// TestTheKernelTellsItsAsyncIO: the two files are there, and hold numbers.
func TestTheKernelTellsItsAsyncIO(t *testing.T) {
	if limit := number(os.ReadFile, "/proc/sys/fs/aio-max-nr"); limit < mysqldAIO {
		t.Errorf("fs.aio-max-nr is %d", limit)
	}
}
