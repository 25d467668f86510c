// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/mysql-mfg/mfg/api/wire"
)

// table puts the files of a table outside InnoDB down; rows is the size of the file that has them, none if it is negative.
func table(t *testing.T, datadir, schema, name, engine string, rows int) {
	t.Helper()
	dir := filepath.Join(datadir, schema)
	if err := os.MkdirAll(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	write(t, filepath.Join(dir, name+"_377.sdi"), fmt.Sprintf(`{"dd_object_type":"Table","dd_object":{"name":"x","engine":%q}}`, engine), 0o600)
	if rows >= 0 {
		write(t, filepath.Join(dir, name+rowsIn[engine]), string(make([]byte, rows)), 0o600)
	}
}

func TestTablesThatACloneDoesNotCopy(t *testing.T) {
	for name, tc := range map[string]struct {
		reason string
		put    func(datadir string)
		want   wire.EngineReport
	}{
		"InnoDB":       {"it has no definition of its own", func(d string) { write(t, filepath.Join(d, "app", "t.ibd"), "x", 0o600) }, wire.EngineReport{}},
		"MyISAM":       {"with rows", func(d string) { table(t, d, "app", "my_isam_1", "MyISAM", 7) }, wire.EngineReport{Tables: 1, WithRows: 1}},
		"empty MyISAM": {"nothing to lose", func(d string) { table(t, d, "app", "t", "MyISAM", 0) }, wire.EngineReport{Tables: 1}},
		"no file":      {"what cannot be found out counts", func(d string) { table(t, d, "app", "t", "MyISAM", -1) }, wire.EngineReport{Tables: 1, WithRows: 1}},
		"CSV":          {"with rows", func(d string) { table(t, d, "app", "t", "CSV", 7) }, wire.EngineReport{Tables: 1, WithRows: 1}},
		"ARCHIVE":      {"its file is never empty", func(d string) { table(t, d, "app", "t", "ARCHIVE", 8700) }, wire.EngineReport{Tables: 1, WithRows: 1}},
		"MEMORY":       {"its rows go with every restart", func(d string) { table(t, d, "app", "t", "MEMORY", -1) }, wire.EngineReport{}},
		"BLACKHOLE":    {"it has no rows", func(d string) { table(t, d, "app", "t", "BLACKHOLE", -1) }, wire.EngineReport{}},
		"MySQL's own":  {"the logs of the server", func(d string) { table(t, d, "mysql", "general_log", "CSV", 7) }, wire.EngineReport{}},
		"no definition": {"half written, or another file", func(d string) {
			write(t, filepath.Join(d, "app", "t_1.sdi"), `{"dd_obj`, 0o600)
			write(t, filepath.Join(d, "app", ".sdi"), `{"dd_object":{"engine":"MyISAM"}}`, 0o600)
		}, wire.EngineReport{Tables: 1, WithRows: 1}},
	} {
		t.Run(name, func(t *testing.T) {
			datadir := t.TempDir()
			if err := os.MkdirAll(filepath.Join(datadir, "app"), 0o700); err != nil {
				t.Fatal(err)
			}
			tc.put(datadir)
			if got, err := look(datadir); err != nil || got != tc.want {
				t.Errorf("%s: got %+v, %v, want %+v", tc.reason, got, err, tc.want)
			}
		})
	}
	if _, err := look(filepath.Join(t.TempDir(), "none")); err == nil {
		t.Error("no data directory says nothing")
	}
}
