// SPDX-License-Identifier: Apache-2.0

//go:build lab && long

package suites

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/mysql-mfg/mfg/api/v1alpha1"
	"github.com/mysql-mfg/mfg/e2e/demo/stage"
)

// Nothing is left but the bucket and what was kept: the namespace is gone, the operator, its definitions, and every volume. docs/disaster.md
// is followed word for word, and once more without the group's YAML. It is no part of `make test`: the definitions take every other group of
// the lab along.
func TestBackupWorstDay(t *testing.T) {
	p := &backupStory{s3: storage(t, stage.S3Options{Name: "s3"}), id: identity(t), marker: fmt.Sprintf("MARKER-%d-PLAINTEXT", time.Now().UnixNano())}
	nobodyElse(t)
	source := p.backUp(t, v1alpha1.BackupLogical)
	day := p.keepFor(t, source)
	loseEverything(t, source)
	g := day.follow(t, p)
	day.do(t, "afterwards")
	movedOut(t, g)

	// The YAML is gone too.
	if err := g.Delete(t.Context()); err != nil {
		t.Fatal(err)
	}
	day.byHand(t, p.s3)
	for _, step := range []string{"secrets", "bucket alone"} {
		day.do(t, step)
	}
	g = p.taken(t)
	group, err := g.Await(t.Context(), bringUp, "the group to be whole", stage.NotUpdated)
	if err != nil {
		t.Fatal(err)
	}
	for _, site := range group.Spec.Sites {
		got, err := g.Digests(t.Context(), site.Name)
		if err != nil {
			t.Fatal(err)
		}
		sameDigests(t, site.Name, p.digests, got)
	}
}

// nobodyElse removes every other group of the lab: they would go with their definition, and leave volumes behind.
func nobodyElse(t *testing.T) {
	t.Helper()
	var all v1alpha1.MysqlFailoverGroupList
	if err := lab.Kube.List(t.Context(), &all); err != nil {
		t.Fatal(err)
	}
	for _, g := range all.Items {
		if err := (&stage.Group{Stage: lab, Namespace: g.Namespace, Name: g.Name}).Delete(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
}

var definitions = []string{crd, "mysqlbackups.mysql-mfg.io"}

// loseEverything takes the operator first, so that nobody tidies up: a cluster that is lost runs no finalizer.
func loseEverything(t *testing.T, g *stage.Group) {
	t.Helper()
	ctx := t.Context()
	t.Cleanup(func() {
		if err := lab.InstallOperator(context.Background()); err != nil {
			t.Errorf("install the lab's operator again: %v", err)
		}
	})
	if _, err := lab.Lab.Helm(ctx, "uninstall", stage.OperatorRelease, "--namespace", stage.OperatorNamespace, "--wait", "--timeout", "2m"); err != nil {
		t.Fatal(err)
	}
	if err := lab.Kube.Delete(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: g.Namespace}}); err != nil {
		t.Fatal(err)
	}
	if err := stage.Poll(ctx, 3*time.Minute, "namespace "+g.Namespace+" to go", func(ctx context.Context) error {
		if err := noFinalizers(ctx, g.Namespace); err != nil {
			return err
		}
		err := lab.Kube.Get(ctx, client.ObjectKey{Name: g.Namespace}, &corev1.Namespace{})
		if apierrors.IsNotFound(err) {
			return nil
		}
		return errors.Join(err, errors.New("it is still there"))
	}); err != nil {
		t.Fatal(err)
	}
	if _, err := lab.Lab.Kubectl(ctx, append([]string{"delete", "crd", "--wait", "--timeout=1m"}, definitions...)...); err != nil {
		t.Fatal(err)
	}
	if _, err := lab.Lab.RecycleVolumes(ctx); err != nil {
		t.Fatal(err)
	}
	if out, err := lab.Lab.Kubectl(ctx, "get", "mysqlfailovergroups", "-A"); err == nil {
		t.Fatalf("the definitions are still there: %s", out)
	}
}

// noFinalizers lets go of what the operator would have dealt with.
func noFinalizers(ctx context.Context, namespace string) error {
	var groups v1alpha1.MysqlFailoverGroupList
	var backups v1alpha1.MysqlBackupList
	if err := errors.Join(lab.Kube.List(ctx, &groups, client.InNamespace(namespace)), lab.Kube.List(ctx, &backups, client.InNamespace(namespace))); err != nil {
		return err
	}
	var all []client.Object
	for i := range groups.Items {
		all = append(all, &groups.Items[i])
	}
	for i := range backups.Items {
		all = append(all, &backups.Items[i])
	}
	none := client.RawPatch("application/merge-patch+json", []byte(`{"metadata":{"finalizers":null}}`))
	for _, o := range all {
		if err := lab.Kube.Patch(ctx, o, none); client.IgnoreNotFound(err) != nil {
			return err
		}
	}
	return nil
}

// byHand writes the two files that the page has for the day on which group.yaml is gone too, with the lab's names in the place of the
// page's.
func (d *worstDay) byHand(t *testing.T, s *stage.S3) {
	t.Helper()
	page, err := os.ReadFile(filepath.Join(lab.Repo, "docs", disasterPage))
	if err != nil {
		t.Fatal(err)
	}
	place := s.Storage(backupPrefix).S3
	instead := strings.NewReplacer(
		"{name: orders}", "{name: "+backupGroup+"}", "name: paris, role: primary-candidate", "name: "+stage.Sites[0]+", role: primary-candidate, nodeSelector: {topology.kubernetes.io/zone: "+stage.Sites[0]+"}",
		"name: frankfurt, role: primary-candidate", "name: "+stage.Sites[1]+", role: primary-candidate, nodeSelector: {topology.kubernetes.io/zone: "+stage.Sites[1]+"}",
		"spec:\n", "spec:\n  image: "+stage.MySQLImage+"\n  imagePullPolicy: Never\n",
		"prefix: prod", "prefix: "+backupPrefix, "https://s3.example.org:9000", place.Endpoint, "mfg-backup-s3", stage.S3Credentials, "mfg-backup-ca", stage.S3CA,
	)
	for _, name := range []string{"group.yaml", "storage.yaml"} {
		block := regexp.MustCompile("(?s)```yaml\n# " + regexp.QuoteMeta(name) + "(.*?\n)```\n").FindSubmatch(page)
		if block == nil {
			t.Fatalf("docs/%s has no %s", disasterPage, name)
		}
		d.write(t, name, []byte(instead.Replace("# "+name+string(block[1]))))
	}
}

// movedOut checks that the restored group writes its backups below another place than the lost one, whose place is that one's for good.
func movedOut(t *testing.T, g *stage.Group) {
	t.Helper()
	group, err := g.Get(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for _, profile := range group.Spec.Backup.Profiles {
		if prefix := profile.Storage.S3.Prefix; !strings.Contains(prefix, "/since-") {
			t.Errorf("profile %s writes to %s, the place of the lost group", profile.Name, prefix)
		}
	}
	var all v1alpha1.MysqlBackupList
	if err := g.Kube.List(t.Context(), &all, client.InNamespace(g.Namespace)); err != nil {
		t.Fatal(err)
	}
	for _, b := range all.Items {
		if b.Status.Phase != v1alpha1.BackupCompleted || b.Status.Verified == nil || b.Status.Verified.Outcome != v1alpha1.BackupPassed {
			t.Errorf("the new group's first backup is not proven: %s", stage.DescribeBackup(&b))
		}
	}
	if len(all.Items) != 1 {
		t.Errorf("the new group has %d backups", len(all.Items))
	}
}
