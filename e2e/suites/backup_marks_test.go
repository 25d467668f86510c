// SPDX-License-Identifier: Apache-2.0

//go:build lab && long

package suites

import (
	"bufio"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/mysql-mfg/mfg/api/v1alpha1"
	"github.com/mysql-mfg/mfg/e2e/demo/stage"
)

// A group with data-at-rest encryption is backed up by both methods, and verified, on Kubernetes: neither its rows nor any credential is on a
// disk of any node, in the bucket, in a log, an event or status, nor in the arguments or the environment of a process, meanwhile and afterwards.
// A group in the clear, whose rows the same search finds, shows what the search is worth.
func TestBackupLeavesNoPlaintext(t *testing.T) {
	p := &backupStory{s3: storage(t, stage.S3Options{Name: "s3-marks", Slowable: true}), id: identity(t), marker: fmt.Sprintf("MARKER-%d-PLAINTEXT", time.Now().UnixNano())}
	keepLogs(t)
	g := fresh(t, backupNamespace, backupGroup, p.s3.Grant)
	if err := lab.PutIdentity(t.Context(), backupNamespace, identitySecret, p.id.String()); err != nil {
		t.Fatal(err)
	}
	spec := stage.EncryptedSpec(backupGroup)
	spec.Backup = backedUp(p.s3, p.id, v1alpha1.BackupLogical).Backup
	spec.Backup.Profiles = spec.Backup.Profiles[:1]
	copies := *spec.Backup.Profiles[0].DeepCopy()
	copies.Name, copies.Method = "copies", v1alpha1.BackupPhysical
	spec.Backup.Profiles = append(spec.Backup.Profiles, copies)
	g = ownGroup(t, g, spec)
	group, err := g.AwaitReady(t.Context(), bringUp)
	if err != nil {
		t.Fatal(err)
	}
	active := group.Status.ActiveSite
	query(t, g, active, strings.Join(stage.OddSchema(p.marker), "; "))
	makeRandom(t, g, active, 16)
	if err := g.AwaitCaughtUp(t.Context(), active, comeBack); err != nil {
		t.Fatal(err)
	}
	needles := p.credentials(t, g)
	needles[p.marker] = "a row"
	p.searchFinds(t)
	for _, profile := range []string{"nightly", "copies"} {
		w := watchProcesses(t, needles)
		p.whileRunning(t, g, profile, func() { nowhere(t, needles) })
		if a := plugin(t, "backup", "verify", g.Name, profile+"-1", "-n", g.Namespace); a.code != 0 {
			t.Errorf("verify: %s%s", a.out, a.errOut)
		}
		w.judge(t)
		nowhere(t, needles)
	}
}

// whileRunning makes a backup into a storage that takes it slowly, and does something while its bytes are on their way.
func (p *backupStory) whileRunning(t *testing.T, g *stage.Group, profile string, do func()) {
	t.Helper()
	if err := p.s3.SetRate(t.Context(), 512<<10); err != nil {
		t.Fatal(err)
	}
	sleep(t, time.Second)
	name := profile + "-1"
	if err := g.OrderBackup(t.Context(), name, profile); err != nil {
		t.Fatal(err)
	}
	uploads := filepath.Join(filepath.Dir(p.dir(t)), stage.S3Bucket, ".sgwtmp", "multipart")
	if _, err := g.AwaitBackup(t.Context(), name, backupLimit, func(b *v1alpha1.MysqlBackup) error {
		parts, _ := filepath.Glob(filepath.Join(uploads, "*", "*", "*"))
		if b.Status.Phase == v1alpha1.BackupCompleted || len(parts) > 0 {
			return nil
		}
		return errors.New(stage.DescribeBackup(b))
	}); err != nil {
		t.Fatal(err)
	}
	do()
	if b, err := g.Backup(t.Context(), name); err != nil || b.Status.Phase != v1alpha1.BackupRunning {
		t.Errorf("the backup did not run while the disks were searched: %v, %v", stage.DescribeBackup(b), err)
	}
	if err := p.s3.SetRate(t.Context(), 0); err != nil {
		t.Fatal(err)
	}
	if _, err := g.AwaitBackup(t.Context(), name, backupLimit, stage.BackupNotCompleted); err != nil {
		t.Fatal(err)
	}
}

// searchFinds is the control: the rows of a group in the clear are on its volumes, and the search finds them there.
func (p *backupStory) searchFinds(t *testing.T) {
	t.Helper()
	marker := p.marker + "-CONTROL"
	spec := stage.DefaultSpec("clear")
	spec.Sites = spec.Sites[:2]
	g := ownGroup(t, &stage.Group{Stage: lab, Namespace: "suite-clear", Name: "clear"}, spec)
	group, err := g.AwaitReady(t.Context(), bringUp)
	if err != nil {
		t.Fatal(err)
	}
	query(t, g, group.Status.ActiveSite, "CREATE DATABASE control; CREATE TABLE control.t (id INT PRIMARY KEY, v VARCHAR(100)); "+
		"INSERT INTO control.t VALUES (1, '"+marker+"'); FLUSH TABLES control.t FOR EXPORT; UNLOCK TABLES")
	if hits := onDisks(t, map[string]string{marker: "a row in the clear"}); len(hits) == 0 {
		t.Error("a row in the clear is found on no disk: the search proves nothing")
	}
	if err := g.Delete(t.Context()); err != nil {
		t.Fatal(err)
	}
}

// nowhere searches the disks of all nodes, with the bucket and the logs that are on them, the lab's own logs, and what the API server shows.
func nowhere(t *testing.T, needles map[string]string) {
	t.Helper()
	for _, h := range onDisks(t, needles) {
		t.Errorf("%s is in %s", h.needle, h.file)
	}
	hits, _ := search(t, filepath.Join(lab.Lab.Dir(), "logs"), needles, everything)
	for _, h := range hits {
		t.Errorf("%s is in %s", h.needle, h.file)
	}
	finder := newFinder(t, needles)
	for _, args := range [][]string{
		{"get", "events", "-A", "-o", "json"}, {"get", "mysqlfailovergroups,mysqlbackups", "-A", "-o", "json"}, {"get", "pods,jobs,configmaps,deployments", "-A", "-o", "json"},
	} {
		out, err := lab.Lab.Kubectl(t.Context(), args...)
		if err != nil {
			t.Fatal(err)
		}
		finder.in([]byte(out), func(needle string) { t.Errorf("%s is in what kubectl %v shows", needles[needle], args) })
	}
}

// onDisks searches the volumes of all nodes, what the kubelets keep of pods, logs of pods, and what containers have written into their own file
// systems. What is in memory is none of a disk's, and images are what they were.
func onDisks(t *testing.T, needles map[string]string) (hits []hit) {
	t.Helper()
	nodes := filepath.Join(lab.Lab.Dir(), "nodes")
	onDisk := func(path string, info fs.FileInfo) bool {
		// The volumes of sites are searched where they are, once.
		return !info.IsDir() || filepath.Base(path) != "kubernetes.io~local-volume" && fileSystem(t, path) != tmpfsMagic
	}
	var roots []string
	for _, of := range []string{"volumes", "kubelet", "podlogs"} {
		found, err := filepath.Glob(filepath.Join(nodes, "*", of))
		if err != nil || len(found) == 0 {
			t.Fatalf("no %s of nodes: %v", of, err)
		}
		roots = append(roots, found...)
	}
	upper := upperDirs(t, nodes)
	if len(upper) == 0 {
		t.Error("no container has a file system of its own: the wrong place is searched")
	}
	for _, root := range append(roots, upper...) {
		found, _ := search(t, root, needles, onDisk)
		hits = append(hits, found...)
	}
	return hits
}

// upperDirs are where the containers of the lab write.
func upperDirs(t *testing.T, below string) (dirs []string) {
	t.Helper()
	file, err := os.Open("/proc/mounts")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = file.Close() }()
	lines := bufio.NewScanner(file)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		_, rest, found := strings.Cut(lines.Text(), "upperdir=")
		dir, _, _ := strings.Cut(rest, ",")
		if found && strings.HasPrefix(dir, below) && exists(dir) {
			dirs = append(dirs, dir)
		}
	}
	return dirs
}
