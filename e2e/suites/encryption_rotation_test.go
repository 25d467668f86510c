// SPDX-License-Identifier: Apache-2.0

//go:build lab

package suites

import (
	"fmt"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/mysql-mfg/mfg/api/v1alpha1"
	"github.com/mysql-mfg/mfg/e2e/demo/stage"
	"github.com/mysql-mfg/mfg/e2e/writer/load"
)

// annotate gives the group an order.
func annotate(t *testing.T, g *stage.Group, annotation, value string) {
	t.Helper()
	group, err := g.Get(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	before := group.DeepCopy()
	if group.Annotations == nil {
		group.Annotations = map[string]string{}
	}
	group.Annotations[annotation] = value
	if err := g.Kube.Patch(t.Context(), group, client.MergeFrom(before)); err != nil {
		t.Fatal(err)
	}
}

// answered waits until an order was taken off the group and returns what came of it.
func answered(t *testing.T, g *stage.Group, annotation, value string, limit time.Duration) v1alpha1.LastRequest {
	t.Helper()
	kind := v1alpha1.RequestOf(annotation)
	group, err := g.Await(t.Context(), limit, "the order "+annotation+"="+value+" to be answered", func(group *v1alpha1.MysqlFailoverGroup) error {
		last := group.Status.LastRequest(kind)
		if group.Annotations[annotation] != "" || last == nil || last.Target != value {
			return fmt.Errorf("the last answer is %+v; keyring %+v; %s", last, keyringOf(group, value), stage.Describe(group))
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return *group.Status.LastRequest(kind)
}

// ownGTIDs are the transactions of a site's own server_uuid.
func ownGTIDs(t *testing.T, g *stage.Group, site string) string {
	t.Helper()
	uuid := query(t, g, site, "SELECT @@server_uuid")
	all := strings.ReplaceAll(query(t, g, site, "SELECT @@gtid_executed"), "\\n", "")
	for set := range strings.SplitSeq(all, ",") {
		if strings.HasPrefix(strings.TrimSpace(set), uuid) {
			return strings.TrimSpace(set)
		}
	}
	return ""
}

// rotate rotates the keyring of a replica by the documented commands and looks at all that has to be so afterwards.
func rotate(t *testing.T, v *vault, site string) {
	t.Helper()
	before := keyringOf(v.sealed(t, comeBack), site)
	own := ownGTIDs(t, v.Group, site)
	out := runbook(t, v, "rotate", site)
	if !strings.Contains(out, site+": Done ") {
		t.Fatalf("the rotation of %s was answered: %s", site, out)
	}
	group := v.sealed(t, resealing)
	after := keyringOf(group, site)
	if after.KeyringVersion <= before.KeyringVersion || after.KeyringDigest == before.KeyringDigest {
		t.Errorf("%s: version %d with %s before, %d with %s after", site,
			before.KeyringVersion, before.KeyringDigest, after.KeyringVersion, after.KeyringDigest)
	}
	checkSealed(t, v, group, site)
	// The version before is kept, as it is.
	old := &corev1.Secret{}
	if err := v.Kube.Get(t.Context(), client.ObjectKey{Namespace: v.Namespace, Name: before.KeyringSecret}, old); err != nil {
		t.Errorf("the version before is gone: %v", err)
	}
	newKeys := keysIn(t, secretData(t, v, after.KeyringSecret))
	for id := range keysIn(t, old.Data["keyring"]) {
		delete(newKeys, id)
	}
	var innodb, binlog bool
	for id := range newKeys {
		innodb = innodb || strings.HasPrefix(id, "INNODBKey-")
		binlog = binlog || strings.HasPrefix(id, "MySQLReplicationKey_")
	}
	if !innodb || !binlog {
		t.Errorf("%s: new master key of InnoDB: %v, of the binary log: %v", site, innodb, binlog)
	}
	if now := ownGTIDs(t, v.Group, site); now != own {
		t.Errorf("%s had the transactions %q of its own, and has %q after the rotation (I20)", site, own, now)
	}
	if got := query(t, v.Group, site, "SELECT COUNT(*) > 0 FROM app.writes"); got != "1" {
		t.Errorf("%s: the rows cannot be read: %s", site, got)
	}
}

func secretData(t *testing.T, v *vault, name string) []byte {
	t.Helper()
	secret := &corev1.Secret{}
	if err := v.Kube.Get(t.Context(), client.ObjectKey{Namespace: v.Namespace, Name: name}, secret); err != nil {
		t.Fatal(err)
	}
	return secret.Data["keyring"]
}

// All sites by the documented procedure: the replicas one after the other, the role to one of them, the former active site.
func rotationUnderLoad(t *testing.T, v *vault) {
	group := v.sealed(t, comeBack)
	active := group.Status.ActiveSite
	w := witnesses(t, v.Group)
	at := load.Now()
	for _, site := range replicas(group) {
		rotate(t, v, site)
		if now, err := v.Get(t.Context()); err != nil || now.Status.ActiveSite != active {
			t.Fatalf("the role moved during a rotation: %v, %v", now.Status.ActiveSite, err)
		}
	}
	moveRole(t, v.Group)
	rotate(t, v, active)
	if err := w.Service.AwaitCommit(t.Context(), time.Minute); err != nil {
		t.Error(err)
	}
	verdict, _ := judge(t, w, at)
	if len(verdict.Missing) > 0 || verdict.Lost > 0 {
		t.Errorf("%d acknowledged rows are missing, %d reported lost", len(verdict.Missing), verdict.Lost)
	}
	group = v.sealed(t, comeBack)
	source := strings.ReplaceAll(query(t, v.Group, group.Status.ActiveSite, "SELECT @@gtid_executed"), "\\n", "")
	for _, site := range replicas(group) {
		if got := query(t, v.Group, site, fmt.Sprintf("SELECT GTID_SUBTRACT(@@gtid_executed, '%s')", source)); got != "" {
			// What was written since is no error: ask again, the other way round in time.
			now := strings.ReplaceAll(query(t, v.Group, group.Status.ActiveSite, "SELECT @@gtid_executed"), "\\n", "")
			if errant := query(t, v.Group, group.Status.ActiveSite, fmt.Sprintf("SELECT GTID_SUBTRACT('%s', '%s')", got, now)); errant != "" {
				t.Errorf("%s has errant transactions: %s", site, errant)
			}
		}
	}
}

func rotationRefused(t *testing.T, v *vault) {
	group := v.sealed(t, comeBack)
	for site, part := range map[string]string{group.Status.ActiveSite: "active", "nowhere": "site"} {
		before := keyringOf(group, site)
		annotate(t, v.Group, v1alpha1.AnnotationRotateKeyring, site)
		outcome := answered(t, v.Group, v1alpha1.AnnotationRotateKeyring, site, time.Minute)
		if outcome.Outcome != v1alpha1.RequestRefused || !strings.Contains(outcome.Message, part) {
			t.Errorf("rotate-keyring=%s was answered: %+v", site, outcome)
		}
		checkEvent(t, v.Group, "KeyringRotationRefused", part)
		if now := keyringOf(v.sealed(t, time.Minute), site); now.KeyringVersion != before.KeyringVersion {
			t.Errorf("%s: version %d, before %d", site, now.KeyringVersion, before.KeyringVersion)
		}
	}
}

// A failover needs nothing of keyrings: how long it takes is logged here, and compared by `make bench-keyring`.
func sealedEmergency(t *testing.T, v *vault) {
	group := v.sealed(t, comeBack)
	w := witnesses(t, v.Group)
	site := group.Status.ActiveSite
	kill := fault(t, "node-kill")
	at, err := v.Break(t.Context(), kill, site)
	if err != nil {
		t.Fatal(err)
	}
	if err := w.AwaitRecovery(t.Context(), kill, 2*time.Minute); err != nil {
		t.Fatal(err)
	}
	if err := w.StopService(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := v.Undo(t.Context(), kill, site); err != nil {
		t.Fatal(err)
	}
	if _, err := v.AwaitExactLoss(t.Context(), comeBack); err != nil {
		t.Error(err)
	}
	verdict, _ := judge(t, w, at)
	checkLoss(t, v.Group, verdict)
	if verdict.From == verdict.To {
		t.Error("the role did not move")
	}
	// The dead node's tmpfs went with its power: what the site has now is projected from its Secret again.
	after, err := v.AwaitReady(t.Context(), comeBack)
	if err != nil {
		if held := siteOf(after, site); held.State != v1alpha1.SiteDiverged {
			t.Fatal(err)
		}
		// It held rows that nobody had: it is cloned, which unseals it, and sealed again.
		recloned(t, v.Group, site)
	}
	checkSealed(t, v, v.sealed(t, resealing), site)
}

func sealedPlanned(t *testing.T, v *vault) {
	v.sealed(t, comeBack)
	w := witnesses(t, v.Group)
	at := load.Now()
	moveRole(t, v.Group)
	if err := w.Service.AwaitCommit(t.Context(), time.Minute); err != nil {
		t.Error(err)
	}
	verdict, _ := judge(t, w, at)
	if len(verdict.Missing) > 0 || verdict.Lost > 0 || verdict.From == verdict.To {
		t.Errorf("%s -> %s, %d acknowledged rows are missing", verdict.From, verdict.To, len(verdict.Missing))
	}
	v.sealed(t, comeBack)
}
