// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"encoding/json"
	"slices"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/mysql-mfg/mfg/api/v1alpha1"
	"github.com/mysql-mfg/mfg/api/wire"
	"github.com/mysql-mfg/mfg/operator/scope"
	"github.com/mysql-mfg/mfg/operator/scope/scopetest"
	"github.com/mysql-mfg/mfg/operator/work"
)

func fromBackup(g *v1alpha1.MysqlFailoverGroup) {
	g.CreationTimestamp = metav1.NewTime(time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC))
	g.Spec.InitFromBackup = &v1alpha1.InitFromBackupSpec{
		Storage: &v1alpha1.BackupStorage{S3: &v1alpha1.S3Storage{Bucket: "backups", SecretName: "keys"}},
		From:    &v1alpha1.RestoreFrom{Namespace: "old"},
	}
}

// restoringWorld is a world whose operator can load backups.
func restoringWorld(t *testing.T, group *v1alpha1.MysqlFailoverGroup, others ...client.Object) *world {
	t.Helper()
	w := newWorld(t, group, others...)
	w.r.Install.BackupImage = "backup:test"
	return w
}

// starts makes the pod of a site, whose init containers are in some state.
func (w *world) starts(site string, load, bootstrap corev1.ContainerState) {
	w.t.Helper()
	var d appsv1.Deployment
	w.get(&d, v1alpha1.SiteName(scopetest.Key.Name, site))
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{
		Namespace: scopetest.Key.Namespace, Name: d.Name + "-starting", UID: types.UID("starting-" + site),
		Labels: d.Spec.Template.Labels, Annotations: d.Spec.Template.Annotations,
	}, Spec: *d.Spec.Template.Spec.DeepCopy()}
	pod.Status.InitContainerStatuses = []corev1.ContainerStatus{
		{Name: v1alpha1.ContainerLoad, State: load}, {Name: v1alpha1.ContainerBootstrap, State: bootstrap},
	}
	w.must(w.c.DeleteAllOf(w.ctx, &corev1.Pod{}, siteLabels(site)...))
	w.must(w.c.Create(w.ctx, pod))
}

func endedWith(exit int32, message string) corev1.ContainerState {
	return corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{ExitCode: exit, Message: message}}
}

func (w *world) sites() []string {
	w.t.Helper()
	return scope.Sorted(w.deployments())
}

func (w *world) restoring() v1alpha1.RestoreStatus {
	w.t.Helper()
	if st := w.group().Status.Restore; st != nil {
		return *st
	}
	return v1alpha1.RestoreStatus{}
}

// loads tells whether the pod of a site begins with a backup.
func (w *world) loads(site string) bool {
	w.t.Helper()
	var d appsv1.Deployment
	w.get(&d, v1alpha1.SiteName(scopetest.Key.Name, site))
	return slices.ContainsFunc(d.Spec.Template.Spec.InitContainers, func(c corev1.Container) bool { return c.Name == v1alpha1.ContainerLoad })
}

const wasLoaded = `{"reason":"Succeeded","backup":"orders-nightly-1","method":"Logical","gtidExecuted":"u:1-9","seconds":30}`

// I25: the first site has the backup before any other is made, and what was chosen is durable before anything is made of it.
func TestTheFirstSiteIsRestoredAloneI25(t *testing.T) {
	w := restoringWorld(t, scopetest.Group(fromBackup))
	w.reconcile()
	if st := w.restoring(); st.Site != "a" || st.Phase != v1alpha1.RestorePending || len(w.sites()) != 0 {
		t.Fatalf("first look: %+v, made %v", st, w.sites())
	}
	w.reconcile()
	if got := w.sites(); !slices.Equal(got, []string{"a"}) || !w.loads("a") {
		t.Fatalf("made %v", got)
	}
	w.starts("a", corev1.ContainerState{Running: &corev1.ContainerStateRunning{}}, corev1.ContainerState{})
	for range 3 {
		w.reconcile()
	}
	if st, c := w.restoring(), w.condition(v1alpha1.ConditionRestoreReady); st.Phase != v1alpha1.RestoreLoading || c.Reason != v1alpha1.ReasonRestoreLoading ||
		c.Status != metav1.ConditionFalse || st.Location != "s3://backups/old/orders" {
		t.Errorf("loading: %+v, %+v", st, c)
	}
	if c := w.condition(v1alpha1.ConditionUnbuiltFeatures); c.Type != "" {
		t.Errorf("%+v", c)
	}
	w.starts("a", endedWith(0, wasLoaded), endedWith(0, ""))
	w.reconcile()
	if st := w.restoring(); st.Phase != v1alpha1.RestoreCompleted || st.Backup != "orders-nightly-1" || st.Progress != 100 || len(w.sites()) != 1 {
		t.Errorf("loaded: %+v, made %v", st, w.sites())
	}
	w.reconcile()
	if got := w.sites(); !slices.Equal(got, []string{"a", "b", "c"}) || w.loads("b") || !w.loads("a") {
		t.Errorf("the others: %v", got)
	}
	if c := w.condition(v1alpha1.ConditionRestoreReady); c.Status != metav1.ConditionTrue {
		t.Errorf("%+v", c)
	}
	if w.said.Count(v1alpha1.ReasonRestoreStarted) != 1 || w.said.Count(v1alpha1.ReasonRestoreCompleted) != 1 || w.said.Count(v1alpha1.ReasonRestoreFailed) != 0 {
		t.Errorf("said %v", w.said.List)
	}
}

// I25: a try that fails is told with its reason, and makes no other site.
func TestARestoreThatFailsI25(t *testing.T) {
	w := restoringWorld(t, scopetest.Group(fromBackup))
	w.reconcile()
	w.reconcile()
	w.starts("a", endedWith(14, `{"reason":"WrongIdentity","message":"give the age identity","seconds":1}`), corev1.ContainerState{})
	for range 3 {
		w.reconcile()
	}
	st, c := w.restoring(), w.condition(v1alpha1.ConditionRestoreReady)
	if st.Phase != v1alpha1.RestoreFailed || c.Reason != v1alpha1.ReasonWrongIdentity || c.Status != metav1.ConditionFalse || len(w.sites()) != 1 {
		t.Errorf("%+v, %+v, made %v", st, c, w.sites())
	}
	if c := w.condition(v1alpha1.ConditionProgressing); c.Reason != v1alpha1.ReasonWrongIdentity {
		t.Errorf("%+v", c)
	}
	if w.said.Count(v1alpha1.ReasonRestoreFailed) != 1 {
		t.Errorf("said %v", w.said.List)
	}
	// A person corrects it: the pod is made again.
	hash := w.deployments()["a"]
	w.change(func(g *v1alpha1.MysqlFailoverGroup) {
		g.Spec.InitFromBackup.Encryption = &v1alpha1.RestoreEncryption{IdentitySecretName: "id"}
	})
	w.reconcile()
	if w.deployments()["a"] == hash {
		t.Error("the pod is not replaced")
	}
}

func TestARestoreThatCannotBegin(t *testing.T) {
	old := &corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{
		Namespace: scopetest.Key.Namespace, Name: "mysql-orders-b-data", CreationTimestamp: metav1.NewTime(time.Date(2025, 1, 1, 12, 0, 0, 0, time.UTC)),
	}}
	w := restoringWorld(t, scopetest.Group(fromBackup), old)
	for range 3 {
		w.reconcile()
	}
	if st := w.restoring(); st.Reason != v1alpha1.ReasonRestoreVolumeNotNew || len(w.sites()) != 0 {
		t.Errorf("over living data: %+v, made %v", st, w.sites())
	}
	w = newWorld(t, scopetest.Group(fromBackup))
	for range 3 {
		w.reconcile()
	}
	if st := w.restoring(); st.Reason != v1alpha1.ReasonRestoreImageMissing || len(w.sites()) != 0 {
		t.Errorf("without the image: %+v, made %v", st, w.sites())
	}
	w = restoringWorld(t, scopetest.Group(fromBackup, func(g *v1alpha1.MysqlFailoverGroup) {
		g.Spec.InitFromBackup.PointInTime = &v1alpha1.PointInTime{Latest: new(true)}
	}))
	for range 3 {
		w.reconcile()
	}
	if c := w.condition(v1alpha1.ConditionUnbuiltFeatures); c.Reason != v1alpha1.ReasonNotBuilt || len(w.sites()) != 0 {
		t.Errorf("a point in time: %+v, made %v", c, w.sites())
	}
}

// Once it is proven, a group begins with a point in time: the program is told it, and nothing else is made before it is reached.
func TestAPointInTimeOnceItIsProvenI25(t *testing.T) {
	at := v1alpha1.NewMoment(time.Date(2026, 1, 1, 11, 0, 0, 123456000, time.UTC))
	w := restoringWorld(t, scopetest.Group(fromBackup, func(g *v1alpha1.MysqlFailoverGroup) {
		g.Spec.InitFromBackup.PointInTime = &v1alpha1.PointInTime{Time: &at}
	}))
	w.r.Proven = v1alpha1.Proven{PITR: true}
	w.reconcile()
	w.reconcile()
	var d appsv1.Deployment
	w.get(&d, v1alpha1.SiteName(scopetest.Key.Name, "a"))
	var config wire.BackupConfig
	for _, c := range d.Spec.Template.Spec.InitContainers {
		for _, e := range c.Env {
			if c.Name == v1alpha1.ContainerLoad && e.Name == wire.EnvBackupConfig {
				w.must(json.Unmarshal([]byte(e.Value), &config))
			}
		}
	}
	if p := config.PointInTime; p == nil || p.Time == nil || !p.Time.Equal(at.Time) || p.GTID != "" || p.Latest {
		t.Fatalf("the program is told %+v", config.PointInTime)
	}
	w.starts("a", endedWith(14, `{"reason":"TargetBeforeBackup","message":"the backup is younger","seconds":1}`), corev1.ContainerState{})
	w.reconcile()
	if st, c := w.restoring(), w.condition(v1alpha1.ConditionRestoreReady); st.Phase != v1alpha1.RestoreFailed || c.Reason != v1alpha1.ReasonTargetBeforeBackup || len(w.sites()) != 1 {
		t.Errorf("refused: %+v, %+v, made %v", st, c, w.sites())
	}
	w.starts("a", endedWith(0, `{"reason":"Succeeded","backup":"orders-nightly-1","gtidExecuted":"u:1-9","replayed":4,"replayedTo":"2026-01-01T10:59:59.5Z","seconds":30}`), endedWith(0, ""))
	w.reconcile()
	w.reconcile()
	if st := w.restoring(); st.Phase != v1alpha1.RestoreCompleted || st.Target != "until 2026-01-01T11:00:00.123456Z" || st.Replayed != 4 || st.ReplayedTo == nil || len(w.sites()) != 3 {
		t.Errorf("reached: %+v, made %v", st, w.sites())
	}
	if c := w.condition(v1alpha1.ConditionUnbuiltFeatures); c.Type != "" {
		t.Errorf("%+v", c)
	}
}

// open has the group be open under its first epoch.
func (w *world) opens(site string) {
	w.t.Helper()
	w.monitorStatus(site, 1)
	w.facts.Open(site)
	w.facts.Under(1)
}

// restoredWorld is one whose first site has its backup, and all sites run.
func restoredWorld(t *testing.T, options ...scopetest.Option) *world {
	t.Helper()
	w := restoringWorld(t, scopetest.Group(append([]scopetest.Option{fromBackup}, options...)...))
	w.reconcile()
	w.reconcile()
	w.starts("a", endedWith(0, wasLoaded), endedWith(0, ""))
	w.reconcile()
	w.reconcile()
	w.settle(w.sites()...)
	w.reconcile()
	return w
}

// The pod of the active site is not replaced only to take its way to the backup off; it goes with the next change, or with the role.
func TestTheRestoredSiteIsNotReplacedForNothing(t *testing.T) {
	w := restoredWorld(t)
	hash := w.deployments()["a"]
	w.opens("a")
	w.settle("a", "b", "c")
	for _, site := range []string{"b", "c"} {
		w.ended(site, work.Outcome{Verdict: work.VerdictAdopt, Cloned: true})
	}
	for range 3 {
		w.reconcile()
	}
	if w.deployments()["a"] != hash || !w.loads("a") {
		t.Error("the pod of the active site was replaced")
	}
	if c := w.condition(v1alpha1.ConditionRestoreReady); c.Status != metav1.ConditionTrue {
		t.Errorf("%+v", c)
	}
	w.opens("b")
	w.settle("a", "b", "c")
	for _, site := range []string{"a", "b", "c"} {
		w.facts.Change(site, func(f *scope.SiteFacts) { f.Writable, f.Following = site == "b", site != "b" })
	}
	for range 3 {
		w.reconcile()
	}
	if w.loads("a") {
		t.Errorf("a site that is no longer the active one still begins with the backup: %+v", w.condition(v1alpha1.ConditionProgressing))
	}
}

// What the pod mounts from a volume must not keep the active site from starting.
func TestTheVolumeOfBackupsIsTakenOff(t *testing.T) {
	w := restoredWorld(t, func(g *v1alpha1.MysqlFailoverGroup) {
		g.Spec.InitFromBackup.Storage = &v1alpha1.BackupStorage{Volume: &v1alpha1.VolumeStorage{ClaimName: "nfs"}}
		g.Spec.Sites = g.Spec.Sites[:1]
	})
	w.opens("a")
	w.settle("a")
	for range 3 {
		w.reconcile()
	}
	if w.loads("a") {
		t.Error("the active site cannot start without the volume of the backups")
	}
}

// I25: what went with the memory of a pod before it was in escrow is loaded again, and only a new pod does that.
func TestALostRestoreIsLoadedAgainI25(t *testing.T) {
	w := restoringWorld(t, scopetest.Group(fromBackup))
	w.reconcile()
	w.reconcile()
	w.starts("a", endedWith(0, wasLoaded), endedWith(1, wire.MarkRestoreLost))
	w.reconcile()
	err := w.c.Get(w.ctx, types.NamespacedName{Namespace: scopetest.Key.Namespace, Name: "mysql-orders-a-starting"}, &corev1.Pod{})
	if !apierrors.IsNotFound(err) || w.said.Count(v1alpha1.ReasonRestoreAgain) != 1 {
		t.Errorf("the pod is there: %v, said %v", err, w.said.List)
	}
	if st := w.restoring(); st.Phase == v1alpha1.RestoreCompleted || len(w.sites()) != 1 {
		t.Errorf("%+v, made %v", st, w.sites())
	}
}

// The time in which a keyring has to be in escrow does not run while a backup is loaded, and a keyring of an earlier group is no start.
func TestAnEncryptedRestore(t *testing.T) {
	encrypted := func(others ...client.Object) *world {
		w := restoringWorld(t, scopetest.Group(fromBackup, scopetest.WithEncryption), others...)
		w.r.encryption.Escrow, w.r.encryption.EscrowURL, w.r.Install.EscrowURL = vault{w.c}, "https://operator:8443", "https://operator:8443"
		return w
	}
	w := encrypted()
	for range 4 {
		w.reconcile()
	}
	if got := w.sites(); !slices.Equal(got, []string{"a"}) || !w.loads("a") {
		t.Fatalf("made %v, %+v", got, w.restoring())
	}
	w.starts("a", corev1.ContainerState{Running: &corev1.ContainerStateRunning{}}, corev1.ContainerState{})
	w.must(w.c.Status().Patch(w.ctx, w.group(), client.RawPatch(types.JSONPatchType,
		[]byte(`[{"op":"replace","path":"/status/encryptionAtRest/sites/0/since","value":"2020-01-01T00:00:00.000000Z"}]`))))
	for range 3 {
		w.reconcile()
	}
	if st := w.group().Status.EncryptionAtRest.Sites; len(st) != 1 || st[0].Phase != v1alpha1.KeyringUnsealed || w.said.Count(v1alpha1.ReasonKeyringNotEscrowed) != 0 {
		t.Errorf("keyrings %+v, said %v", st, w.said.List)
	}
	w = encrypted(secret("b", 1, "of an earlier group"))
	for range 3 {
		w.reconcile()
	}
	if st := w.restoring(); st.Reason != v1alpha1.ReasonRestoreVolumeNotNew || len(w.sites()) != 0 {
		t.Errorf("over a keyring of before: %+v, made %v", st, w.sites())
	}
}
