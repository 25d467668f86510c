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
	"syscall"
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

// A volume that was stolen shows nothing but the names of files, which MySQL takes from schemas and tables, and a node's disk shows
// nothing at all. Both are searched while a session has a temporary table and a sort that does not end: what it wrote is in memory.
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
	temporaryIs(t, v.Group, active, m, v1alpha1.TemporaryInMemory)
	for _, site := range stage.Sites {
		if names := noMarks(t, v.Group, site, m); len(names) == 0 {
			t.Errorf("%s: no file is named after the table: the wrong directory was searched", site)
		}
	}
	release()
}

// noMarks searches a site's data volume and its node: every file that has a name, and those without one that mysqld has open. It
// returns the files that are named after what is marked.
func noMarks(t *testing.T, g *stage.Group, site string, m marks) (names []string) {
	t.Helper()
	hits, names := search(t, volumeDir(t, g, site), m.needles(), everything)
	for _, h := range append(hits, onNode(t, g, site, m.needles())...) {
		t.Errorf("%s: %s found in %s", site, h.needle, h.file)
	}
	return names
}

// onNode searches what a pod has on a disk of its node beside its data volume, and the files that have no name any more.
func onNode(t *testing.T, g *stage.Group, site string, needles map[string]string) []hit {
	t.Helper()
	pod, err := g.Pod(t.Context(), site)
	if err != nil {
		t.Fatal(err)
	}
	hits, _ := search(t, filepath.Dir(podVolumes(pod)), needles, func(path string, info fs.FileInfo) bool {
		return !info.IsDir() || filepath.Base(path) != "kubernetes.io~local-volume" && fileSystem(t, path) != tmpfsMagic
	})
	return append(hits, openDeleted(t, g, site, needles)[v1alpha1.TemporaryOnDisk]...)
}

// openDeleted searches the files that mysqld has open and that have no name any more, by what they are on.
func openDeleted(t *testing.T, g *stage.Group, site string, needles map[string]string) map[v1alpha1.TemporaryMedium][]hit {
	t.Helper()
	pid, err := stage.FindProcess(t.Context(), g, site, stage.Mysqld)
	if err != nil {
		t.Fatal(err)
	}
	dir := fmt.Sprintf("/proc/%d/fd", pid)
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	hits, searched, finder := map[v1alpha1.TemporaryMedium][]hit{}, 0, newFinder(t, needles)
	for _, e := range entries {
		file := filepath.Join(dir, e.Name())
		link, err := os.Readlink(file)
		if err != nil {
			continue // closed just now
		}
		// The link says where mysqld sees it: on its data volume, or in the directory for what is temporary.
		path, deleted := strings.CutSuffix(link, " (deleted)")
		if !deleted || !strings.HasPrefix(path, "/var/lib/mysql/") && !strings.HasPrefix(path, "/tmp/") {
			continue
		}
		var st syscall.Statfs_t
		if err := syscall.Statfs(file, &st); err != nil {
			continue // closed just now
		}
		found, err := finder.file(file)
		if err != nil {
			t.Fatal(err)
		}
		searched++
		medium := v1alpha1.TemporaryOnDisk
		if st.Type == tmpfsMagic {
			medium = v1alpha1.TemporaryInMemory
		}
		for _, h := range found {
			hits[medium] = append(hits[medium], hit{link, h.needle})
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

// temporaryIs finds the rows of keepSorting in the pod's directory for what is temporary, and that where it is asked for: those of the
// temporary table in a file with a name, those of the sort in one without.
func temporaryIs(t *testing.T, g *stage.Group, site string, m marks, medium v1alpha1.TemporaryMedium) {
	t.Helper()
	pod, err := g.Pod(t.Context(), site)
	if err != nil {
		t.Fatal(err)
	}
	dir := filepath.Join(podVolumes(pod), "kubernetes.io~empty-dir", "tmp")
	if memory := fileSystem(t, dir) == tmpfsMagic; memory != (medium == v1alpha1.TemporaryInMemory) {
		t.Errorf("%s: %s is in memory: %t", site, dir, memory)
	}
	if err := stage.Poll(t.Context(), time.Minute, "rows of the temporary table in "+dir, func(context.Context) error {
		if hits, _ := search(t, dir, m.needles(), everything); len(hits) == 0 {
			return errors.New("none")
		}
		return nil
	}); err != nil {
		t.Error(err)
	}
	if hits := openDeleted(t, g, site, m.needles())[medium]; len(hits) == 0 {
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
