// SPDX-License-Identifier: Apache-2.0

package archive

import (
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"github.com/mysql-mfg/mfg/internal/bucket"
	"github.com/mysql-mfg/mfg/internal/gtid"
)

// backUp makes a backup that holds a set.
func backUp(t *testing.T, dir, name, set string) {
	t.Helper()
	b, err := bucket.Open(t.Context(), bucket.Config{Folder: filepath.Dir(filepath.Dir(filepath.Dir(dir))), Namespace: "shop", Group: "orders"})
	if err != nil {
		t.Fatal(err)
	}
	w, err := b.Create(t.Context(), bucket.NewBackup{Name: name, UID: "uid", Now: noon})
	if err != nil {
		t.Fatal(err)
	}
	part, err := w.Part(t.Context(), "data")
	if err != nil {
		t.Fatal(err)
	}
	if err := part.Close(); err != nil {
		t.Fatal(err)
	}
	if _, err := w.Commit(t.Context(), bucket.Manifest{Method: bucket.Logical, Site: "a", Epoch: 1, MySQLVersion: "9.7.4", GTIDExecuted: set, StartedAt: noon, FinishedAt: noon}); err != nil {
		t.Fatal(err)
	}
}

// I27: what all backups hold is read from the storage, however long it is; of one that cannot be read, nothing is known.
func TestWhatBackupsHold(t *testing.T) {
	t.Parallel()
	a, dir := openFolder(t)
	var servers []string
	for i := range 200 {
		servers = append(servers, fmt.Sprintf("%08x-0000-0000-0000-000000000002:1-1000000", i+1))
	}
	long := strings.Join(servers, ",")
	backUp(t, dir, "monday", long+","+serverA+":1-9")
	backUp(t, dir, "tuesday", long+","+serverA+":1-7,"+serverA+":audit:1-3")
	backUp(t, dir, "broken", "a:1-5")
	want := gtid.MustParse(long + "," + serverA + ":1-7")
	for _, names := range [][]string{{"monday", "tuesday"}, {"tuesday", "monday"}} {
		if held, err := a.Holds(t.Context(), names); err != nil || !held.Equal(want) || len(held.String()) < 8<<10 {
			t.Errorf("I27: %v: %v: %.200s", names, err, held)
		}
	}
	for _, names := range [][]string{nil, {"monday", "gone"}, {"broken"}, {"../x"}} {
		if held, err := a.Holds(t.Context(), names); !held.IsEmpty() || (err == nil) != (names == nil) {
			t.Errorf("I27: %v: %v: %.200s", names, err, held)
		}
	}
}
