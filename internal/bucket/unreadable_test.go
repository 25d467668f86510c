// SPDX-License-Identifier: Apache-2.0

package bucket

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// backupsOf is the folder of the backups of a place.
func backupsOf(dir string) string { return filepath.Join(dir, "a", "b", "shop", "orders", "backups") }

// unreadable puts a folder into another one that no path reaches, so that nobody can list it, not even root. Something is in it.
func unreadable(t *testing.T, in string) {
	t.Helper()
	root, err := os.OpenRoot(in)
	must(t, err)
	defer func() { must(t, root.Close()) }()
	deep := strings.Repeat(strings.Repeat("d", 250)+"/", 20)
	must(t, root.MkdirAll(deep, 0o700))
	f, err := root.Create(deep + "data.00000")
	must(t, err)
	must(t, f.Close())
}

// On a volume a backup that cannot be read is in the list, with its error. A link that leads to itself stands for it: root reads a folder that is
// closed to others.
func TestAVolumeListsWhatCannotBeRead(t *testing.T) {
	b, dir := place(t)
	for name, at := range map[string]time.Time{"older": noon, "newer": noon.Add(time.Hour)} {
		w := create(t, b, name)
		fill(t, w, "data", noise(10))
		commit(t, w, at)
	}
	must(t, os.RemoveAll(filepath.Join(backupsOf(dir), "newer")))
	must(t, os.Symlink("newer", filepath.Join(backupsOf(dir), "newer")))
	must(t, os.WriteFile(filepath.Join(backupsOf(dir), "readme"), nil, 0o600))
	entries, err := b.List(t.Context())
	if err != nil || len(entries) != 2 || entries[0].Name != "older" || entries[1].Name != "newer" || entries[1].Err == nil {
		t.Errorf("listed %+v: %v", entries, err)
	}
	must(t, os.RemoveAll(backupsOf(dir)))
	if entries, err := b.List(t.Context()); err != nil || len(entries) > 0 {
		t.Errorf("no folder of backups: %+v, %v", entries, err)
	}
	must(t, os.Symlink("backups", backupsOf(dir)))
	if entries, err := b.List(t.Context()); err == nil {
		t.Errorf("a folder of backups that cannot be read: %+v", entries)
	}
}

// What cannot be listed is not removed, so nobody is told that it was.
func TestAVolumeRemovesAllOrFails(t *testing.T) {
	b, dir := place(t)
	w := create(t, b, "monday")
	fill(t, w, "data", noise(10))
	commit(t, w, noon)
	unreadable(t, filepath.Join(backupsOf(dir), "monday"))
	for range 2 {
		if err := b.Delete(t.Context(), "monday"); err == nil {
			t.Error("a backup of which something is left was removed")
		}
	}
	if _, err := b.Sweep(t.Context(), time.Now().Add(time.Hour)); err == nil {
		t.Error("a sweep passed over what it cannot read")
	}
	must(t, os.MkdirAll(filepath.Join(dir, "a", "b", "shop", "orders", "archive"), 0o700))
	unreadable(t, filepath.Join(dir, "a", "b", "shop", "orders", "archive"))
	if err := b.EachObject(t.Context(), "archive", func(Item) error { return nil }); err == nil {
		t.Error("the archive is listed without what cannot be read")
	}
}
