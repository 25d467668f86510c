// SPDX-License-Identifier: Apache-2.0

//go:build lab && long

package suites

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/mysql-mfg/mfg/api/v1alpha1"
	"github.com/mysql-mfg/mfg/e2e/demo/stage"
)

// loses cuts the active site off from the other sites alone, so that it goes on and archives, and then takes its node away: what it wrote
// meanwhile is lost, and `kubectl mfg backup lost` has all of it.
func (a *archiveStory) loses(t *testing.T) {
	ctx := t.Context()
	active, group := a.active(t)
	a.holdsAll(t, active)
	for _, other := range replicas(group) {
		if err := lab.Lab.CutNet(ctx, active, other, false); err != nil {
			t.Fatal(err)
		}
	}
	const marker = "lost by the failover"
	for range 3 {
		query(t, a.Group, active, "INSERT INTO "+storyTable+" (label, b) VALUES ('"+marker+"', 'few bytes')")
	}
	a.holdsAll(t, active)
	kill := fault(t, "node-kill")
	if _, err := a.Break(ctx, kill, active); err != nil {
		t.Fatal(err)
	}
	now, err := a.Await(ctx, 2*time.Minute, "another site to be active", func(group *v1alpha1.MysqlFailoverGroup) error {
		if group.Status.ActiveSite == active || group.Status.ActiveSite == "" || group.Status.Transition != nil {
			return errors.New(stage.Describe(group))
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(lab.Lab.HealAllNet(ctx), a.Undo(ctx, kill, active)); err != nil {
		t.Fatal(err)
	}
	record, err := a.AwaitExactLoss(ctx, comeBack)
	if err != nil {
		t.Fatal(err)
	}
	if record.LostTransactions < 3 {
		t.Fatalf("%d transactions were lost, and 3 at least were written behind the cut", record.LostTransactions)
	}
	diverged(t, a.Group, active)
	a.write(t, now.Status.ActiveSite, "after the emergency", 1)
	a.holdsAll(t, now.Status.ActiveSite)
	var found struct {
		Items []struct {
			GTID  string `json:"gtid"`
			Epoch int64  `json:"epoch"`
		} `json:"items"`
	}
	plugin(t, "-n", storyNamespace, "backup", "lost", storyGroup, "-o", "json").want(t, 3, &found)
	if int64(len(found.Items)) != record.LostTransactions {
		t.Errorf("the archive has %d of the lost transactions, and %d were lost", len(found.Items), record.LostTransactions)
	}
	for _, x := range found.Items {
		if x.Epoch != record.Epoch-1 {
			t.Errorf("%s is said to be of epoch %d, and epoch %d was lost", x.GTID, x.Epoch, record.Epoch-1)
		}
	}
	plugin(t, "-n", storyNamespace, "backup", "lost", storyGroup, "-o", "sql").want(t, 3, nil).says(t, "INSERT INTO", marker)
	if len(found.Items) > 0 {
		plugin(t, "-n", storyNamespace, "restore", "nowhere", "--from", storyGroup, "--at", found.Items[0].GTID).want(t, 5, nil).says(t, "lost")
	}
	if outcome := reclone(t, a.Group, active+":confirm", resealing); outcome.Outcome != v1alpha1.RequestDone {
		t.Fatalf("the order was answered: %+v", outcome)
	}
	if _, err := a.AwaitReady(ctx, resealing); err != nil {
		t.Fatal(err)
	}
}

// beside makes a group out of the archive by `kubectl mfg restore --at --apply`, with the origin's specification, archive and all. Both live on.
func (a *archiveStory) beside(t *testing.T) {
	ctx := t.Context()
	active, group := a.active(t)
	a.holdsAll(t, active)
	want, err := a.Digests(ctx, active)
	if err != nil {
		t.Fatal(err)
	}
	g := fresh(t, besideNamespace, restoredGroup, a.s3.Grant)
	if err := errors.Join(lab.PutIdentity(ctx, besideNamespace, identitySecret, a.id.String()), lab.CertificateFor(ctx, besideNamespace, restoredGroup, group.Spec)); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if t.Failed() {
			g.Diagnose(context.Background(), "archive-beside")
		}
		if err := g.Delete(context.Background()); err != nil {
			t.Errorf("clean up: %v", err)
		}
	})
	plugin(t, "-n", besideNamespace, "restore", restoredGroup, "--from", storyGroup, "--from-namespace", storyNamespace, "--at", "latest", "--apply").want(t, 0, nil)
	if g, err = lab.TakeGroup(ctx, besideNamespace, restoredGroup); err != nil {
		t.Fatal(err)
	}
	now := settled(t, g, 3*bringUp)
	t.Logf("restored: %+v", now.Status.Restore)
	for _, s := range now.Spec.Sites {
		got, err := g.Digests(ctx, s.Name)
		if err != nil {
			t.Fatal(err)
		}
		sameDigests(t, s.Name, want, got)
	}
	archivesStill(t, a.Group, active, a.gaps)
	archivesStill(t, g, now.Status.ActiveSite, 0)
	archivesStill(t, a.Group, active, a.gaps)
	if got := query(t, a.Group, active, "SELECT COUNT(*) FROM "+storyTable+" WHERE label = 'still'"); got != "2048" {
		t.Errorf("the origin has %s rows that were written since, and 2048 were", got)
	}
}

// keyringsLost takes every keyring of the group: the pods' and the escrow's. No site starts any more, and another group comes out of the bucket.
func (a *archiveStory) keyringsLost(t *testing.T) {
	ctx := t.Context()
	active, group := a.active(t)
	a.write(t, active, "the last rows", 1)
	a.holdsAll(t, active)
	want, err := a.Digests(ctx, active)
	if err != nil {
		t.Fatal(err)
	}
	// The operator would put into escrow again what a pod still has in memory.
	if err := lab.ScaleOperator(ctx, 0); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := lab.ScaleOperator(context.Background(), 1); err != nil {
			t.Errorf("start the operator again: %v", err)
		}
	})
	v := &vault{Group: a.Group}
	for _, s := range group.Spec.Sites {
		deleteEscrow(t, v, keyringOf(group, s.Name).KeyringSecret)
		pod, err := a.Pod(ctx, s.Name)
		if err != nil {
			t.Fatal(err)
		}
		if err := a.Kube.Delete(ctx, pod, client.GracePeriodSeconds(0)); err != nil {
			t.Fatal(err)
		}
	}
	if err := lab.ScaleOperator(ctx, 1); err != nil {
		t.Fatal(err)
	}
	if _, err := a.Await(ctx, comeBack, "the loss of all keyrings to be told", func(group *v1alpha1.MysqlFailoverGroup) error {
		for _, s := range group.Spec.Sites {
			if k := keyringOf(group, s.Name); k.Phase != v1alpha1.KeyringFailed {
				return fmt.Errorf("the keyring of %s is %q", s.Name, k.Phase)
			}
		}
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	a.outOfTheBucket(t, want)
}

// outOfTheBucket restores an encrypted group from the bucket and the identity, and compares every site.
func (a *archiveStory) outOfTheBucket(t *testing.T, want map[string]string) {
	t.Helper()
	ctx := t.Context()
	g := fresh(t, restoredNamespace, restoredGroup, a.s3.Grant)
	if err := lab.PutIdentity(ctx, restoredNamespace, identitySecret, a.id.String()); err != nil {
		t.Fatal(err)
	}
	spec := stage.EncryptedSpec(restoredGroup)
	spec.Sites = spec.Sites[:2]
	from, latest := a.s3.Storage(storyPrefix), true
	spec.InitFromBackup = &v1alpha1.InitFromBackupSpec{
		Storage: &from, Encryption: &v1alpha1.RestoreEncryption{IdentitySecretName: identitySecret},
		From:        &v1alpha1.RestoreFrom{Namespace: storyNamespace, Group: storyGroup},
		PointInTime: &v1alpha1.PointInTime{Latest: &latest},
	}
	began := time.Now()
	g = ownGroup(t, g, spec)
	if _, err := g.AwaitRestore(ctx, bringUp, "the restore", stage.RestoreNotDone); err != nil {
		t.Fatal(err)
	}
	group := settled(t, g, 3*bringUp)
	t.Logf("the group was whole after %s, without a keyring of the old one: %+v", time.Since(began).Round(100*time.Millisecond), group.Status.Restore)
	for _, s := range group.Spec.Sites {
		got, err := g.Digests(ctx, s.Name)
		if err != nil {
			t.Fatal(err)
		}
		sameDigests(t, s.Name, want, got)
	}
	var secrets corev1.SecretList
	if err := lab.Kube.List(ctx, &secrets, client.InNamespace(storyNamespace)); err != nil {
		t.Fatal(err)
	}
	for _, s := range secrets.Items {
		if len(s.Data["keyring"]) > 0 {
			t.Errorf("Secret %s has a keyring: they were not all lost", s.Name)
		}
	}
}
