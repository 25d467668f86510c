// SPDX-License-Identifier: Apache-2.0

//go:build lab

package suites

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/mysql-mfg/mfg/api/v1alpha1"
	"github.com/mysql-mfg/mfg/e2e/demo/stage"
)

// A version that the data does not need any more, and one that it needs: after a rotation the older one does not open the
// data, the site does not come up, and naming the newer one again brings it back, with nothing lost.
func rolledBack(t *testing.T, v *vault) {
	group := v.sealed(t, comeBack)
	site := replicas(group)[0]
	older := keyringOf(group, site)
	out := runbook(t, v, "rotate with the plugin", site, withPlugin())
	newer := keyringOf(v.sealed(t, comeBack), site)
	if newer.KeyringVersion <= older.KeyringVersion || newer.KeyringDigest == older.KeyringDigest || !strings.Contains(out, fmt.Sprintf("%s v%d -> v%d", site, older.KeyringVersion, newer.KeyringVersion)) {
		t.Fatalf("version %d before, %d after the documented commands, which said:\n%s", older.KeyringVersion, newer.KeyringVersion, out)
	}
	rows := query(t, v.Group, site, "SELECT COUNT(*) FROM app.writes")

	runbook(t, v, "roll back", site, "SECRET="+older.KeyringSecret)
	if _, err := v.Await(t.Context(), resealing, "a pod with the older keyring that does not start", func(group *v1alpha1.MysqlFailoverGroup) error {
		if k := keyringOf(group, site); k.KeyringSecret != older.KeyringSecret || k.Phase == v1alpha1.KeyringSealed {
			return fmt.Errorf("%s is %s", k.KeyringSecret, k.Phase)
		}
		return doesNotStart(t.Context(), v, site, older.KeyringSecret)
	}); err != nil {
		t.Fatal(err)
	}
	plugin(t, "keyring", "list", v.Name, "-n", v.Namespace).says(t, "Newer")

	runbook(t, v, "roll back", site, "SECRET="+newer.KeyringSecret)
	group = v.sealed(t, resealing)
	if now := keyringOf(group, site); now.KeyringSecret != newer.KeyringSecret || now.KeyringDigest != newer.KeyringDigest {
		t.Errorf("%s is sealed with %s, want %s", site, now.KeyringSecret, newer.KeyringSecret)
	}
	checkSealed(t, v, group, site)
	if got := query(t, v.Group, site, "SELECT COUNT(*) FROM app.writes"); got != rows {
		t.Errorf("%s has %s rows, before %s", site, got, rows)
	}
}

// doesNotStart is nil if the site's pod has a Secret mounted and a container of it ended with an error.
func doesNotStart(ctx context.Context, v *vault, site, secret string) error {
	pod, err := v.Pod(ctx, site)
	if err != nil {
		return err
	}
	has := false
	for _, volume := range pod.Spec.Volumes {
		has = has || volume.Secret != nil && volume.Secret.SecretName == secret
	}
	if !has {
		return errors.New("the pod is not replaced yet")
	}
	for _, all := range [][]corev1.ContainerStatus{pod.Status.InitContainerStatuses, pod.Status.ContainerStatuses} {
		for _, c := range all {
			if ended := c.LastTerminationState.Terminated; ended != nil && ended.ExitCode != 0 {
				return nil
			}
		}
	}
	return errors.New("no container ended yet")
}

// Everything is gone with the namespace, keyrings too. What was dumped before does not depend on any of them: a new
// encrypted group of the same name takes it.
func namespaceLost(t *testing.T, v *vault) {
	group := v.sealed(t, comeBack)
	before := map[string]string{}
	for _, site := range stage.Sites {
		before[site] = keyringOf(group, site).KeyringDigest
	}
	const table = "CREATE DATABASE IF NOT EXISTS app; CREATE TABLE IF NOT EXISTS app.kept (id INT PRIMARY KEY, words VARCHAR(40))"
	query(t, v.Group, group.Status.ActiveSite, table+"; REPLACE INTO app.kept VALUES (1, 'one'), (2, 'two''s'), (3, 'three')")
	dump := query(t, v.Group, group.Status.ActiveSite, "SELECT CONCAT('REPLACE INTO app.kept VALUES (', id, ', ', QUOTE(words), ')') FROM app.kept")

	loseNamespace(t, v)
	g, err := lab.NewGroup(t.Context(), v.Namespace, v.Name, stage.EncryptedSpec(v.Name))
	if err != nil {
		t.Fatal(err)
	}
	v.Group = g
	group = v.sealed(t, bringUp)
	if err := g.EnsureApp(t.Context()); err != nil {
		t.Fatal(err)
	}
	// A dump prints a backslash as two: mysql in batch mode escapes it.
	query(t, g, group.Status.ActiveSite, table+"; "+strings.ReplaceAll(strings.ReplaceAll(dump, `\\`, `\`), "\n", "; "))
	for _, site := range stage.Sites {
		if now := keyringOf(group, site); now.KeyringDigest == before[site] {
			t.Errorf("%s has the keyring of the lost namespace", site)
		}
		if err := stage.Poll(t.Context(), time.Minute, "the rows on "+site, func(ctx context.Context) error {
			got, err := g.RootSQL(ctx, site, "SELECT GROUP_CONCAT(words ORDER BY id) FROM app.kept")
			if err == nil && strings.TrimSpace(got) != "one,two's,three" {
				err = fmt.Errorf("it has %q", got)
			}
			return err
		}); err != nil {
			t.Error(err)
		}
	}
	if _, err := g.Await(t.Context(), time.Minute, "status to say that all is covered", notCovered); err != nil {
		t.Error(err)
	}
}

// loseNamespace deletes it, and waits until it is gone.
func loseNamespace(t *testing.T, v *vault) {
	t.Helper()
	ns := &corev1.Namespace{}
	ns.Name = v.Namespace
	if err := v.Kube.Delete(t.Context(), ns); err != nil {
		t.Fatal(err)
	}
	if err := stage.Poll(t.Context(), 4*time.Minute, "namespace "+ns.Name+" to go", func(ctx context.Context) error {
		err := v.Kube.Get(ctx, client.ObjectKey{Name: ns.Name}, ns)
		if apierrors.IsNotFound(err) {
			return nil
		}
		return errors.Join(err, errors.New("it is still there"))
	}); err != nil {
		t.Fatal(err)
	}
	if _, err := v.Lab.RecycleVolumes(t.Context()); err != nil {
		t.Fatal(err)
	}
}
