// SPDX-License-Identifier: Apache-2.0

//go:build lab

package suites

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/mysql-mfg/mfg/api/v1alpha1"
	"github.com/mysql-mfg/mfg/e2e/demo/stage"
)

// volumeDir is the directory of a site's data volume on this machine.
func volumeDir(t *testing.T, g *stage.Group, site string) string {
	t.Helper()
	claim := &corev1.PersistentVolumeClaim{}
	if err := g.Kube.Get(t.Context(), client.ObjectKey{Namespace: g.Namespace, Name: v1alpha1.DataVolumeName(g.Name, site)}, claim); err != nil {
		t.Fatal(err)
	}
	volume := &corev1.PersistentVolume{}
	if err := g.Kube.Get(t.Context(), client.ObjectKey{Name: claim.Spec.VolumeName}, volume); err != nil {
		t.Fatal(err)
	}
	if volume.Spec.Local == nil {
		t.Fatalf("volume %s is not local", volume.Name)
	}
	return volume.Spec.Local.Path
}

// mark writes a marker wherever MySQL keeps something: names of schema, table, column and index, rows, older versions of
// rows, an index, a temporary table, a sort. It returns the marker.
func mark(t *testing.T, g *stage.Group, active string) string {
	t.Helper()
	marker := "qx" + strings.ToLower(rand.Text())[:14]
	rows := "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 900) SELECT i, CONCAT('" + marker + "', i, REPEAT('x', 200)) FROM n"
	query(t, g, active, strings.Join([]string{
		"CREATE DATABASE " + marker + "_s", "USE " + marker + "_s",
		fmt.Sprintf("CREATE TABLE %[1]s_t (id INT PRIMARY KEY, %[1]s_c VARCHAR(400), KEY %[1]s_k (%[1]s_c))", marker),
		fmt.Sprintf("INSERT INTO %s_t %s", marker, rows),
		fmt.Sprintf("UPDATE %[1]s_t SET %[1]s_c = CONCAT('old', %[1]s_c) WHERE id %% 2", marker),
		fmt.Sprintf("DELETE FROM %s_t WHERE id %% 7 = 0", marker),
		"CREATE TEMPORARY TABLE tmp (id INT PRIMARY KEY, v VARCHAR(400))", "INSERT INTO tmp " + rows, "UPDATE tmp SET v = CONCAT('old', v)",
		"SET SESSION big_tables = ON, sort_buffer_size = 32768",
		fmt.Sprintf("SELECT COUNT(*) FROM (SELECT DISTINCT CONCAT('d', %[1]s_c) AS v FROM %[1]s_t ORDER BY v) AS d", marker),
	}, "; "))
	for _, site := range sitesOf(t, g) {
		flush(t, g, site, marker)
	}
	return marker
}

func sitesOf(t *testing.T, g *stage.Group) []string {
	t.Helper()
	group, err := g.Get(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, site := range group.Spec.Sites {
		names = append(names, site.Name)
	}
	return names
}

// flush waits until a site has the marker's rows, and then until it has written all pages.
func flush(t *testing.T, g *stage.Group, site, marker string) {
	t.Helper()
	if err := stage.Poll(t.Context(), time.Minute, "the marker on the disk of "+site, func(ctx context.Context) error {
		out, err := g.RootSQL(ctx, site, fmt.Sprintf("SELECT COUNT(*) > 500 FROM %[1]s_s.%[1]s_t", marker))
		if err != nil || strings.TrimSpace(out) != "1" {
			return errors.Join(err, errors.New("its rows are not there yet"))
		}
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	const status = "(SELECT VARIABLE_VALUE FROM performance_schema.global_status WHERE VARIABLE_NAME = 'Innodb_redo_log_%s_lsn')"
	lsn := query(t, g, site, "FLUSH LOCAL LOGS; SET GLOBAL innodb_max_dirty_pages_pct_lwm = 0, GLOBAL innodb_max_dirty_pages_pct = 0; SELECT "+fmt.Sprintf(status, "current"))
	// What was changed before the checkpoint is in the files.
	if err := stage.Poll(t.Context(), time.Minute, "the pages of "+site+" to be written", func(ctx context.Context) error {
		out, err := g.RootSQL(ctx, site, fmt.Sprintf("SELECT %s >= %s", fmt.Sprintf(status, "checkpoint"), lsn))
		if err == nil && strings.TrimSpace(out) != "1" {
			err = errors.New("its checkpoint is behind")
		}
		return err
	}); err != nil {
		t.Fatal(err)
	}
}

// A volume that was stolen shows nothing but the names of files, which MySQL takes from schemas and tables.
func noMarkerOnVolumes(t *testing.T, v *vault) {
	group := v.sealed(t, comeBack)
	marker := mark(t, v.Group, group.Status.ActiveSite)
	for _, site := range stage.Sites {
		hits, names := search(t, volumeDir(t, v.Group, site), map[string]string{marker: "the marker"}, everything)
		for _, h := range hits {
			t.Errorf("%s: found in %s", site, h.file)
		}
		if len(names) == 0 {
			t.Errorf("%s: no file is named after the table: the wrong directory was searched", site)
		}
	}
}

// With flags off the same search finds the marker in the very files that the flags are about, and status says so.
func markerWhereFlagIsOff(t *testing.T, _ *vault) {
	spec := stage.EncryptedSpec("open")
	spec.Sites = spec.Sites[:2]
	off := new(false)
	// With every flag off there would be no key at all; the undo log needs one.
	spec.EncryptionAtRest.Coverage = v1alpha1.CoverageSpec{Tables: off, RedoLog: off, BinaryLog: off, SystemTablespace: off}
	g, err := lab.NewGroup(t.Context(), "suite-open", "open", spec)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if t.Failed() {
			g.Diagnose(context.Background(), "encryption-open")
		}
		if err := g.Delete(context.Background()); err != nil {
			t.Errorf("clean up: %v", err)
		}
	})
	open := &vault{Group: g, needles: map[string]string{}}
	group := open.sealed(t, bringUp)
	marker := mark(t, g, group.Status.ActiveSite)
	for _, site := range sitesOf(t, g) {
		root := volumeDir(t, g, site)
		hits, _ := search(t, root, map[string]string{marker: "the marker"}, everything)
		found := map[string]bool{}
		for _, h := range hits {
			found[kindOf(strings.TrimPrefix(h.file, root))] = true
		}
		for _, kind := range []string{"table", "redo log", "binary log", "system tablespace"} {
			if !found[kind] {
				t.Errorf("%s: the marker is not in a %s, although it is not encrypted: the search proves nothing (%v)", site, kind, hits)
			}
		}
		if found["undo log"] {
			t.Errorf("%s: the marker is in the undo log, which is encrypted", site)
		}
	}
	if _, err := g.Await(t.Context(), time.Minute, "status to say what is not encrypted", func(group *v1alpha1.MysqlFailoverGroup) error {
		for _, site := range group.Spec.Sites {
			c := keyringOf(group, site.Name).Coverage
			if c.SystemTablespaceEncrypted || c.RedoLogEncrypted || c.BinlogEncrypted || !c.UndoLogEncrypted || c.UnencryptedTablespaces == 0 {
				return fmt.Errorf("%s: coverage %+v", site.Name, c)
			}
		}
		return nil
	}); err != nil {
		t.Error(err)
	}
	nothingInLogs(t, open)
}

// kindOf tells by its path what a file of MySQL is.
func kindOf(path string) string {
	name := filepath.Base(path)
	switch {
	case strings.Contains(path, "#innodb_redo"):
		return "redo log"
	case name == "mysql.ibd":
		return "system tablespace"
	case strings.HasSuffix(name, ".ibd"):
		return "table"
	case strings.HasPrefix(name, "binlog.") || strings.HasPrefix(name, "relay-bin."):
		return "binary log"
	case strings.HasPrefix(name, "undo_"):
		return "undo log"
	}
	return name
}
