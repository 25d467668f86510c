// SPDX-License-Identifier: Apache-2.0

//go:build lab && more

package suites

import (
	"context"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	corev1 "k8s.io/api/core/v1"

	"github.com/mysql-mfg/mfg/api/v1alpha1"
	"github.com/mysql-mfg/mfg/e2e/demo/stage"
)

// oneRow is what `TABLE t` prints of the row that the quickstart writes.
const oneRow = "id\n1"

// quickNamespace is where the quickstart is typed: its page names the namespace of README's demo.
const quickNamespace = "suite-quick"

// newcomer follows docs/quickstart.md on a cluster without the operator. What a person brings is in dir: the file of the backups, the
// access key, and the programs of the plugin.
type newcomer struct {
	dir   string
	began time.Time
}

// docs/quickstart.md is typed on a cluster without the operator, from its first command to its last. Nothing is left of it but the
// definitions and the operator's namespace.
func TestQuickstart(t *testing.T) {
	ctx := t.Context()
	g := &stage.Group{Stage: lab, Namespace: quickNamespace, Name: "orders"}
	clearOwn(t, g) // while there is an operator
	s3 := storage(t, stage.S3Options{Name: "quick"})
	n := &newcomer{dir: t.TempDir()}
	n.brings(t, s3)
	t.Cleanup(func() {
		if t.Failed() {
			g.Diagnose(context.Background(), t.Name())
		}
		// With the lab's own operator again, which also ends what the page has left.
		if err := lab.InstallOperator(context.Background()); err != nil {
			t.Errorf("install the lab's operator again: %v", err)
		}
		if err := g.Delete(context.Background()); err != nil {
			t.Errorf("clean up: %v", err)
		}
	})
	if _, err := lab.Lab.Helm(ctx, "uninstall", stage.OperatorRelease, "--namespace", stage.OperatorNamespace, "--wait", "--timeout", "2m"); err != nil {
		t.Fatal(err)
	}
	n.began = time.Now()
	n.do(t, "operator")
	n.do(t, "group")
	n.do(t, "wait")
	n.do(t, "plugin")
	if out := n.do(t, "row"); strings.TrimSpace(out) != oneRow {
		t.Errorf("no row was written: %q", out)
	}
	n.watchesAFailover(t)

	n.do(t, "credentials")
	// The authority of the lab's storage: a storage with a public certificate needs none.
	if err := lab.PutSecret(ctx, quickNamespace, stage.S3CA, s3.CA()); err != nil {
		t.Fatal(err)
	}
	n.do(t, "backup")
	n.looksAtBackups(t, g)
	n.do(t, "restore")
	if out := n.do(t, "restored row"); strings.TrimSpace(out) != oneRow {
		t.Errorf("the row is not in the restored group: %q", out)
	}
	t.Logf("the quickstart took %s", time.Since(n.began).Round(time.Second))

	if out := n.do(t, "remove"); !strings.Contains(out, crd) {
		t.Errorf("helm uninstall does not say that the CustomResourceDefinition stays: %q", out)
	}
	if err := lab.Kube.Get(ctx, client.ObjectKey{Name: quickNamespace}, &corev1.Namespace{}); !apierrors.IsNotFound(err) {
		t.Errorf("the namespace is still there: %v", err)
	}
}

// brings writes the files of a person. The page's file names a bucket; the rest of it is as it is there.
func (n *newcomer) brings(t *testing.T, s3 *stage.S3) {
	t.Helper()
	var values struct {
		Backup v1alpha1.BackupSpec `json:"backup"`
	}
	if err := yaml.UnmarshalStrict([]byte(commandsOf(t, "quickstart.md", "backup.yaml")), &values); err != nil {
		t.Fatal(err)
	}
	named := values.Backup.Profiles[0].Storage.S3.SecretName
	values.Backup.Profiles[0].Storage = s3.Storage("try")
	values.Backup.Profiles[0].Storage.S3.SecretName = named
	raw, err := yaml.Marshal(values)
	if err != nil {
		t.Fatal(err)
	}
	files := map[string][]byte{"backup.yaml": raw}
	for key, value := range s3.Keys() {
		files[key] = value
	}
	for name, content := range files {
		if err := os.WriteFile(filepath.Join(n.dir, name), content, 0o600); err != nil {
			t.Fatal(err)
		}
	}
}

// looksAtBackups types what docs/backups.md has for one that is there, and makes the key for the next.
func (n *newcomer) looksAtBackups(t *testing.T, g *stage.Group) {
	t.Helper()
	var all v1alpha1.MysqlBackupList
	if err := lab.Kube.List(t.Context(), &all, client.InNamespace(g.Namespace)); err != nil || len(all.Items) != 1 {
		t.Fatalf("%d backups: %v", len(all.Items), err)
	}
	here := strings.NewReplacer("orders-nightly-20261124-0200", all.Items[0].Name, "nightly.tar", filepath.Join(n.dir, "nightly.tar"))
	for _, name := range []string{"key of backups", "look at backups", "restore plan", "download a backup"} {
		commands := here.Replace(n.there(t, "backups.md", name))
		if name == "download a backup" {
			commands, _, _ = strings.Cut(commands, "\n") // the second opens an encrypted one: see downloads
		}
		runDocumented(t, "backups: "+name, commands, append(n.env(), "HOME="+n.dir)...)
	}
	if st, err := os.Stat(filepath.Join(n.dir, "nightly.tar")); err != nil || st.Size() == 0 {
		t.Errorf("the backup was not downloaded: %v", err)
	}
}

// commands are those of the page.
func (n *newcomer) commands(t *testing.T, name string) string {
	t.Helper()
	return n.there(t, "quickstart.md", name)
}

// there are the commands of any page, with the files of this person and in the namespace of this test.
func (n *newcomer) there(t *testing.T, page, name string) string {
	t.Helper()
	text := commandsOf(t, page, name)
	for _, file := range []string{"accessKeyID", "secretAccessKey"} {
		text = strings.ReplaceAll(text, "./"+file, filepath.Join(n.dir, file))
	}
	text = strings.ReplaceAll(text, "-f backup.yaml", "-f "+filepath.Join(n.dir, "backup.yaml"))
	return strings.NewReplacer("-n shop", "-n "+quickNamespace, "namespace shop", "namespace "+quickNamespace).Replace(text)
}

// env has the plugin that `go install` made, before any other. It is compiled as the Makefile compiles, or everything that it needs would be
// compiled once more.
func (n *newcomer) env() []string {
	return slices.Concat(labInstead, []string{"GOFLAGS=-trimpath", "CGO_ENABLED=0", "GOBIN=" + n.dir, "PATH=" + n.dir + ":" + lab.Lab.Tools() + ":" + os.Getenv("PATH")})
}

func (n *newcomer) do(t *testing.T, name string) string {
	t.Helper()
	out := runDocumented(t, "quickstart: "+name, n.commands(t, name), n.env()...)
	t.Logf("%s after %s", name, time.Since(n.began).Round(time.Second))
	return out
}

// watchesAFailover types the failover on one terminal, and sees it on the dashboard, on another.
func (n *newcomer) watchesAFailover(t *testing.T) {
	t.Helper()
	terminalWith := func(name string) *screen {
		return onScreen(t, name, append(lab.Lab.Environ(), n.env()...), "bash", "-c", n.commands(t, name))
	}
	watching := terminalWith("dashboard")
	watching.until(t, time.Minute, "the dashboard", "", func(frame string) error { return lacks(frame, "Status    Ready", "* a") })
	typing := terminalWith("failover")
	typing.until(t, time.Minute, "the plan", "", func(frame string) error { return lacks(frame, "Move the role to b now? [y/N]") })
	typing.press(t, "y", "Enter")
	watching.until(t, time.Minute, "the failover on the dashboard", "", func(frame string) error {
		return lacks(frame, "Failover  planned a → b", "* b", "opened")
	})
	typing.ends(t)
	watching.quit(t)
}
