// SPDX-License-Identifier: Apache-2.0

//go:build lab

package suites

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/mysql-mfg/mfg/api/v1alpha1"
	"github.com/mysql-mfg/mfg/e2e/demo/stage"
)

// openGroup makes a group in which some of coverage is off, and temporary files are where it is said.
func openGroup(t *testing.T, name string, coverage v1alpha1.CoverageSpec, medium v1alpha1.TemporaryMedium) *vault {
	t.Helper()
	spec := stage.EncryptedSpec(name)
	spec.Sites = spec.Sites[:2]
	spec.EncryptionAtRest.Coverage = coverage
	spec.EncryptionAtRest.TemporaryFiles.Medium = medium
	g, err := lab.NewGroup(t.Context(), "suite-"+name, name, spec)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if t.Failed() {
			g.Diagnose(context.Background(), "encryption-"+name)
		}
		if err := g.Delete(context.Background()); err != nil {
			t.Errorf("clean up: %v", err)
		}
	})
	return &vault{Group: g, needles: map[string]string{}, began: time.Now()}
}

// found tells what was found on a site's volume: by the kind of file, which needles.
func found(t *testing.T, g *stage.Group, site string, m marks) map[string]map[string]bool {
	t.Helper()
	root := volumeDir(t, g, site)
	hits, _ := search(t, root, m.needles(), everything)
	kinds := map[string]map[string]bool{}
	for _, h := range hits {
		kind := kindOf(strings.TrimPrefix(h.file, root))
		if kinds[kind] == nil {
			kinds[kind] = map[string]bool{}
		}
		kinds[kind][h.needle] = true
	}
	return kinds
}

// mustHave fails for each needle that is not in a kind of file which is in the clear.
func mustHave(t *testing.T, site, kind string, have map[string]map[string]bool, m marks, needles ...string) {
	t.Helper()
	for _, needle := range needles {
		if what := m.needles()[needle]; !have[kind][what] {
			t.Errorf("%s: %s: not in a %s, although it is not encrypted: the search proves nothing (%v)", site, what, kind, have)
		}
	}
}

// With flags off the same search finds each marker in the very files that the flags are about, and status says so.
func markerWhereFlagIsOff(t *testing.T, _ *vault) {
	off := new(false)
	// With every flag off there would be no key at all; the undo log needs one, and has a group of its own.
	open := openGroup(t, "open", v1alpha1.CoverageSpec{Tables: off, RedoLog: off, BinaryLog: off, SystemTablespace: off}, v1alpha1.TemporaryOnDisk)
	group := open.sealed(t, bringUp)
	m := markAll(t, open.Group, group, func(site string, m marks) {
		mustHave(t, site, "relay log", found(t, open.Group, site, m), m, m.row, m.schema, m.table, m.column, m.index)
	})
	for _, site := range sitesOf(t, open.Group) {
		have := found(t, open.Group, site, m)
		mustHave(t, site, "table", have, m, m.row)
		mustHave(t, site, "redo log", have, m, m.row)
		mustHave(t, site, "binary log", have, m, m.row, m.schema, m.table, m.column, m.index)
		mustHave(t, site, "system tablespace", have, m, m.schema, m.table, m.column, m.index)
		if len(have["undo log"]) > 0 {
			t.Errorf("%s: in the undo log, which is encrypted: %v", site, have["undo log"])
		}
	}
	active := group.Status.ActiveSite
	release := keepSorting(t, open.Group, active, m)
	temporaryIs(t, open.Group, active, m, v1alpha1.TemporaryOnDisk)
	if hits := onNode(t, open.Group, active, m.needles()); len(hits) < 2 {
		t.Errorf("%s: found on the node are %v, not a temporary table and a sort: the search of nodes proves nothing", active, hits)
	}
	release()
	open.awaitCoverage(t, func(c v1alpha1.CoverageStatus) bool {
		return !c.SystemTablespaceEncrypted && !c.RedoLogEncrypted && !c.BinlogEncrypted && c.UndoLogEncrypted && c.UnencryptedTablespaces > 0
	})
	nothingInLogs(t, open)
}

// With the undo log alone in the clear, older versions of rows are found in it, and nothing is found anywhere else.
func markerInUndoLogAlone(t *testing.T, _ *vault) {
	undo := openGroup(t, "undo", v1alpha1.CoverageSpec{UndoLog: new(false)}, v1alpha1.TemporaryInMemory)
	group := undo.sealed(t, bringUp)
	m := markAll(t, undo.Group, group, func(site string, m marks) { noMarks(t, undo.Group, site, m) })
	active := group.Status.ActiveSite
	// What is purged may be written over: these are the older versions of rows that somebody is changing.
	hold(t, undo.Group, active, fmt.Sprintf("USE %s; START TRANSACTION; UPDATE %s SET %s = 'new'", m.schema, m.table, m.column),
		"SELECT SLEEP(%d), '%s'")
	if err := stage.Poll(t.Context(), 2*time.Minute, "older versions of rows in the undo log of "+active, func(context.Context) error {
		if have := found(t, undo.Group, active, m); !have["undo log"]["rows"] {
			return fmt.Errorf("found are %v", have)
		}
		return nil
	}); err != nil {
		t.Error(err)
	}
	for _, site := range sitesOf(t, undo.Group) {
		for kind, needles := range found(t, undo.Group, site, m) {
			// Every page is written there first, as it is.
			if kind != "undo log" && kind != "doublewrite buffer" {
				t.Errorf("%s: in a %s, which is encrypted: %v", site, kind, needles)
			}
		}
	}
	undo.awaitCoverage(t, func(c v1alpha1.CoverageStatus) bool {
		return c.SystemTablespaceEncrypted && c.RedoLogEncrypted && c.BinlogEncrypted && !c.UndoLogEncrypted && c.UnencryptedTablespaces == 0
	})
	nothingInLogs(t, undo)
}

// awaitCoverage waits until status says of every site what is encrypted.
func (v *vault) awaitCoverage(t *testing.T, right func(v1alpha1.CoverageStatus) bool) {
	t.Helper()
	if _, err := v.Await(t.Context(), time.Minute, "status to say what is encrypted", func(group *v1alpha1.MysqlFailoverGroup) error {
		for _, site := range group.Spec.Sites {
			if c := keyringOf(group, site.Name).Coverage; !right(c) {
				return fmt.Errorf("%s: coverage %+v", site.Name, c)
			}
		}
		return nil
	}); err != nil {
		t.Error(err)
	}
}
