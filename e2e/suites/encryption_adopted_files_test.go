// SPDX-License-Identifier: Apache-2.0

//go:build lab && stories

package suites

import (
	"io"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/mysql-mfg/mfg/api/v1alpha1"
	"github.com/mysql-mfg/mfg/e2e/demo/stage"
)

// markerInTables searches the files of tables on a site's volume.
func markerInTables(t *testing.T, g *stage.Group, site string, m marks) bool {
	t.Helper()
	return slices.Contains(kindsWith(t, g, site, m), "table")
}

// kindsWith are the kinds of files on a site's volume in which a group is marked.
func kindsWith(t *testing.T, g *stage.Group, site string, m marks) []string {
	t.Helper()
	root := volumeDir(t, g, site)
	hits, _ := search(t, root, m.needles(), everything)
	var kinds []string
	for _, h := range hits {
		kinds = append(kinds, kindOf(strings.TrimPrefix(h.file, root)))
	}
	slices.Sort(kinds)
	return slices.Compact(kinds)
}

// How a file of a binary or relay log begins: MySQL's magic number of an encrypted one, and of one in the clear.
const (
	encryptedLog = "\xfdbin"
	plainLog     = "\xfebin"
)

// inTheClear marks a group that is not encrypted. It is the control of newIsHidden: the same search finds the marks in every kind of
// file that it is about, and the newest logs begin as logs in the clear do.
func inTheClear(t *testing.T, g *stage.Group, group *v1alpha1.MysqlFailoverGroup) marks {
	t.Helper()
	has := func(site string, m marks, want ...string) {
		kinds := kindsWith(t, g, site, m)
		for _, kind := range want {
			if !slices.Contains(kinds, kind) {
				t.Errorf("%s: no mark is in a %s, although nothing is encrypted: the search proves nothing (%v)", site, kind, kinds)
			}
		}
	}
	m := markAll(t, g, group, func(site string, m marks) { has(site, m, "relay log") })
	// The undo log takes a transaction that stays open for that, and has a control of its own: see encryption_open_test.go.
	for _, site := range stage.Sites {
		has(site, m, "table", "redo log", "binary log", "system tablespace")
	}
	checkNewestLogs(t, g, plainLog)
	return m
}

// newIsHidden: what is written after an adoption is hidden as in a group that was born encrypted, in redo, undo, binary and relay
// logs too, and status says so once the old ones are purged.
func newIsHidden(t *testing.T, v *vault) {
	t.Helper()
	m := markAll(t, v.Group, v.sealed(t, comeBack), func(site string, m marks) { noMarks(t, v.Group, site, m) })
	for _, site := range stage.Sites {
		if names := noMarks(t, v.Group, site, m); len(names) == 0 {
			t.Errorf("%s: no file is named after the table: the wrong directory was searched", site)
		}
	}
	checkNewestLogs(t, v.Group, encryptedLog)
	// The logs from before the adoption are in the clear until they are purged, and status says so until then.
	for _, site := range stage.Sites {
		query(t, v.Group, site, "PURGE BINARY LOGS BEFORE NOW() + INTERVAL 1 DAY")
	}
	if _, err := v.Await(t.Context(), comeBack, "status to say that nothing is in the clear", notCovered); err != nil {
		t.Error(err)
	}
}

// checkNewestLogs looks at the magic number of the newest binary log of each site, and of the newest relay log of each replica.
func checkNewestLogs(t *testing.T, g *stage.Group, want string) {
	t.Helper()
	group, err := g.Get(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for _, site := range stage.Sites {
		root := volumeDir(t, g, site)
		logs := []string{"binlog"}
		if site != group.Status.ActiveSite {
			logs = append(logs, "relay-bin")
		}
		for _, log := range logs {
			path, begins := newestLog(t, root, log)
			if begins != want {
				t.Errorf("%s: %q, the newest %s, begins with %q, want %q", site, path, log, begins, want)
			}
		}
	}
}

// newestLog is the newest file of a log below a directory, and how it begins. A log that is going on may be turned over meanwhile.
func newestLog(t *testing.T, root, log string) (newest, begins string) {
	t.Helper()
	for range 3 {
		newest = ""
		highest := -1
		if err := filepath.WalkDir(root, func(path string, entry os.DirEntry, err error) error {
			if err != nil {
				return ignoreGone(err)
			}
			digits, is := strings.CutPrefix(entry.Name(), log+".")
			if number, bad := strconv.Atoi(digits); is && bad == nil && number > highest {
				newest, highest = path, number
			}
			return nil
		}); err != nil {
			t.Fatal(err)
		}
		if begins = magicOf(newest); begins != "" {
			break
		}
	}
	return newest, begins
}

// magicOf is how a file begins; empty if it cannot be read.
func magicOf(path string) string {
	f, err := os.Open(path)
	if err != nil {
		return ""
	}
	defer func() { _ = f.Close() }()
	magic := make([]byte, 4)
	if _, err := io.ReadFull(f, magic); err != nil {
		return ""
	}
	return string(magic)
}
