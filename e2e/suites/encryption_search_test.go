// SPDX-License-Identifier: Apache-2.0

//go:build lab

package suites

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
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

// A volume that was stolen shows nothing but the names of files, which MySQL takes from schemas and tables. It is searched while
// a session has a temporary table and a sort that does not end: what it wrote is elsewhere.
func noMarkerOnVolumes(t *testing.T, v *vault) {
	group := v.sealed(t, comeBack)
	m := markAll(t, v.Group, group, func(site string, m marks) {
		noMarks(t, v.Group, site, m)
		if size := sizeOf(t, v.Group, site, "relay log"); size < 100<<10 {
			t.Errorf("%s: %d bytes of relay logs cannot hold the marks", site, size)
		}
	})
	active := group.Status.ActiveSite
	release := keepSorting(t, v.Group, active, m)
	temporaryIsElsewhere(t, v.Group, active, m)
	for _, site := range stage.Sites {
		if names := noMarks(t, v.Group, site, m); len(names) == 0 {
			t.Errorf("%s: no file is named after the table: the wrong directory was searched", site)
		}
	}
	release()
}

// noMarks searches a site's data volume: every file that has a name, and those without one that mysqld has open. It returns the
// files that are named after what is marked.
func noMarks(t *testing.T, g *stage.Group, site string, m marks) (names []string) {
	t.Helper()
	hits, names := search(t, volumeDir(t, g, site), m.needles(), everything)
	for _, h := range append(hits, openDeleted(t, g, site, m.needles())[dataMount]...) {
		t.Errorf("%s: %s found in %s", site, h.needle, h.file)
	}
	return names
}

// Where the containers of a pod see the data volume, and the directory for what is temporary.
const (
	dataMount = "/var/lib/mysql"
	tempMount = "/tmp"
)

// openDeleted searches the files that mysqld has open and that have no name any more, by where they were.
func openDeleted(t *testing.T, g *stage.Group, site string, needles map[string]string) map[string][]hit {
	t.Helper()
	pid, err := stage.FindProcess(t.Context(), g, site, "mysqld")
	if err != nil {
		t.Fatal(err)
	}
	dir := fmt.Sprintf("/proc/%d/fd", pid)
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	hits, searched, finder := map[string][]hit{}, 0, newFinder(t, needles)
	for _, e := range entries {
		link, err := os.Readlink(filepath.Join(dir, e.Name()))
		if err != nil {
			continue // closed just now
		}
		path, deleted := strings.CutSuffix(link, " (deleted)")
		for _, mount := range []string{dataMount, tempMount} {
			// The link says where mysqld sees it.
			if !deleted || !strings.HasPrefix(path, mount+"/") {
				continue
			}
			found, err := finder.file(filepath.Join(dir, e.Name()))
			if err != nil {
				t.Fatal(err)
			}
			searched++
			for _, h := range found {
				hits[mount] = append(hits[mount], hit{link, h.needle})
			}
		}
	}
	// InnoDB has some of its own, as long as it runs.
	if searched == 0 {
		t.Errorf("%s: no open file without a name: mysqld has some at all times", site)
	}
	return hits
}

// keepSorting has a session with a temporary table and a sort larger than its buffer, until the function that it returns is called.
func keepSorting(t *testing.T, g *stage.Group, site string, m marks) (release func()) {
	t.Helper()
	return hold(t, g, site, strings.Join([]string{
		"USE " + m.schema, "CREATE TEMPORARY TABLE tmp (id INT PRIMARY KEY, v VARCHAR(400))", "INSERT INTO tmp " + m.rows(),
		"UPDATE tmp SET v = CONCAT('old', v)", "SET SESSION sort_buffer_size = 32768",
	}, "; "), "SELECT v, SLEEP(%d), '%s' FROM tmp ORDER BY v")
}

// temporaryIsElsewhere finds the rows of keepSorting in the pod's directory for what is temporary: those of the temporary table in
// a file with a name, those of the sort in one without.
func temporaryIsElsewhere(t *testing.T, g *stage.Group, site string, m marks) {
	t.Helper()
	pod, err := g.Pod(t.Context(), site)
	if err != nil {
		t.Fatal(err)
	}
	dir := filepath.Join(podVolumes(pod), "kubernetes.io~empty-dir", "tmp")
	if err := stage.Poll(t.Context(), time.Minute, "rows of the temporary table in "+dir, func(context.Context) error {
		if hits, _ := search(t, dir, m.needles(), everything); len(hits) == 0 {
			return errors.New("none")
		}
		return nil
	}); err != nil {
		t.Error(err)
	}
	if hits := openDeleted(t, g, site, m.needles())[tempMount]; len(hits) == 0 {
		t.Errorf("%s: the sort is in no open file without a name: that search proves nothing", site)
	}
}

// podVolumes is where the kubelet keeps the volumes of a pod.
func podVolumes(pod *corev1.Pod) string {
	return filepath.Join(lab.Lab.Dir(), "nodes", pod.Spec.NodeName, "kubelet", "pods", string(pod.UID), "volumes")
}

// sizeOf is how large the files of one kind on a site's data volume are.
func sizeOf(t *testing.T, g *stage.Group, site, kind string) (size int64) {
	t.Helper()
	root := volumeDir(t, g, site)
	search(t, root, nil, func(path string, info fs.FileInfo) bool {
		if !info.IsDir() && kindOf(strings.TrimPrefix(path, root)) == kind {
			size += info.Size()
		}
		return info.IsDir()
	})
	return size
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
	case strings.HasPrefix(name, "binlog."):
		return "binary log"
	case strings.HasPrefix(name, "relay-bin"): // with the name of its channel, if it has one
		return "relay log"
	case strings.HasSuffix(name, ".dblwr"):
		return "doublewrite buffer"
	case strings.HasPrefix(name, "undo_"):
		return "undo log"
	}
	return name
}
