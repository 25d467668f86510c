// SPDX-License-Identifier: Apache-2.0

package datadir

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// Of a try that was killed nothing is left in the way of the next one, and nothing of others is touched.
func TestForInitialize(t *testing.T) {
	t.Parallel()
	base := t.TempDir()
	for _, name := range []string{"ibtmp1", "temp_1.ibt"} {
		if err := os.WriteFile(filepath.Join(base, name), nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	killed, _, err := ForInitialize(base)
	if err != nil {
		t.Fatal(err)
	}
	options, remove, err := ForInitialize(base)
	if err != nil || len(options) != 2 || options[0] == killed[0] {
		t.Fatalf("%v, after %v: %v", options, killed, err)
	}
	dir := strings.TrimPrefix(options[0], "--innodb-temp-tablespaces-dir=")
	if found, err := os.ReadDir(dir); err != nil || len(found) > 0 || options[1] != "--innodb-temp-data-file-path="+dir+"/ibtmp1:12M:autoextend" {
		t.Errorf("%v: %d files: %v", options, len(found), err)
	}
	if dirs, _ := filepath.Glob(filepath.Join(base, "*")); len(dirs) != 3 {
		t.Errorf("%v", dirs)
	}
	if err := remove(); err != nil {
		t.Fatal(err)
	}
	if left, _ := filepath.Glob(filepath.Join(base, "*")); len(left) != 2 {
		t.Errorf("left: %v", left)
	}
	if _, _, err := ForInitialize(filepath.Join(base, "none")); err == nil {
		t.Error("a directory that is not there")
	}
}
