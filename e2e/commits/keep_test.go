// SPDX-License-Identifier: Apache-2.0

package commits

import (
	"os"
	"path/filepath"
	"testing"
	"time"
)

// A clone empties the data directory and begins with the first number again: what was in the logs before must stay known.
func TestKeeperKeepsWhatTheSiteDrops(t *testing.T) {
	root := t.TempDir()
	data := filepath.Join(root, "data")
	write := func(name string, n int64) {
		l := newLog(1)
		l.transaction(1, n, us+n, us+n)
		if err := os.MkdirAll(data, 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(data, name), l.Bytes(), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	k, err := NewKeeper(filepath.Join(root, "kept"))
	if err != nil {
		t.Fatal(err)
	}
	k.Look("a", data) // not there yet
	write("binlog.000001", 1)
	write("binlog.000002", 2)
	write("binlog.index", 8)
	write("relay-bin.000001", 9)
	k.Look("a", data)
	if err := os.RemoveAll(data); err != nil {
		t.Fatal(err)
	}
	write("binlog.000001", 3)
	k.Look("a", data)
	k.Look("a", data)
	got, err := k.Read(time.UnixMicro(us + 2))
	if err != nil {
		t.Fatal(err)
	}
	if len(got) != 2 {
		t.Errorf("%d transactions since the second one, want 2: %v", len(got), got)
	}
	if all, err := ReadDir(filepath.Join(k.Dir(), "a"), "a"); err != nil || len(all) != 3 {
		t.Errorf("%v, %v: what is kept can be read by hand", all, err)
	}
	if got, _ = k.Read(time.Now().Add(time.Hour)); len(got) > 0 {
		t.Errorf("%v is from the past", got)
	}
	if err := k.Remove(); err != nil {
		t.Error(err)
	}
	if _, err := os.Stat(filepath.Join(root, "kept")); err == nil {
		t.Error("what was kept is still there")
	}
}

// What grows after it was seen is read to its end.
func TestKeeperFollows(t *testing.T) {
	data := t.TempDir()
	l := newLog(1)
	path := filepath.Join(data, "binlog.000001")
	if err := os.WriteFile(path, l.Bytes(), 0o600); err != nil {
		t.Fatal(err)
	}
	k, err := NewKeeper(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	k.Look("a", data)
	l.transaction(1, 1, us, us)
	if err := os.WriteFile(path, l.Bytes(), 0o600); err != nil {
		t.Fatal(err)
	}
	if got, err := k.Read(time.UnixMicro(us)); err != nil || len(got) != 1 {
		t.Errorf("%v, %v", got, err)
	}
}
