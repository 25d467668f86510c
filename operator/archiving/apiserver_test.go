// SPDX-License-Identifier: Apache-2.0

package archiving

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	applymetav1 "k8s.io/client-go/applyconfigurations/meta/v1"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/envtest"

	"github.com/mysql-mfg/mfg/api/v1alpha1"
	applyv1alpha1 "github.com/mysql-mfg/mfg/api/v1alpha1/applyconfiguration/api/v1alpha1"
	"github.com/mysql-mfg/mfg/api/wire"
	"github.com/mysql-mfg/mfg/operator/pitr"
	"github.com/mysql-mfg/mfg/operator/scope/scopetest"
)

// Status against a real API server: it is accepted whole, beside what others own of it, the column tells its age, and what is turned off
// is taken back and nothing else.
func TestStatusAgainstAPIServer(t *testing.T) {
	c, config := newClient(t)
	ctx := t.Context()
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	must(c.Create(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: scopetest.Key.Namespace}}))
	group := scopetest.Group(archived)
	group.UID, group.Generation = "", 0
	must(c.Create(ctx, group))
	// The others: what backups say, and a condition of somebody else.
	of := applyv1alpha1.MysqlFailoverGroup(group.Name, group.Namespace)
	must(c.Status().Apply(ctx, of.WithStatus(applyv1alpha1.MysqlFailoverGroupStatus().
		WithBackup(applyv1alpha1.BackupStatus().WithProfiles(applyv1alpha1.BackupProfileStatus().WithName("nightly").WithBackups(3))).
		WithConditions(applymetav1.Condition().WithType(v1alpha1.ConditionBackupReady).WithStatus(metav1.ConditionTrue).WithReason("X").WithMessage("m").WithLastTransitionTime(metav1.Now()))),
		client.FieldOwner(v1alpha1.ManagerBackupStatus), client.ForceOwnership))

	a := New(Options{Client: c})
	now := time.Now().UTC().Truncate(time.Second)
	look := pitr.Look{Now: now, Group: group, Place: placeOf(group), Interval: 30 * time.Second, Image: true, Active: "a", Heard: &wire.ArchiverStatus{
		At: now, State: wire.ArchiverArchiving, Site: "a", Latest: now.Add(-3 * time.Hour), ArchivedGTID: uuid + ":1-9", GapCount: 1, Bytes: 9,
		Gaps: []wire.ArchiverGap{{GTIDs: uuid + ":5", Transactions: 1, After: now.Add(-time.Hour), Before: now.Add(-time.Minute), Epoch: 2, Site: "b"}},
	}}
	state := pitr.Decide(look)
	if written, err := a.write(ctx, group, &state); written || err != nil {
		t.Errorf("over what others wrote meanwhile: %t, %v", written, err)
	}
	must(c.Get(ctx, scopetest.Key, group))
	must(done(a.write(ctx, group, &state)))
	got := &v1alpha1.MysqlFailoverGroup{}
	must(c.Get(ctx, scopetest.Key, got))
	if b := got.Status.Backup; b == nil || b.PITR == nil || len(b.Profiles) != 1 || len(b.PITR.Gaps) != 1 || !b.PITR.Gaps[0].Before.Equal(state.Status.Gaps[0].Before) ||
		meta.FindStatusCondition(got.Status.Conditions, v1alpha1.ConditionPITRReady) == nil {
		t.Fatalf("%+v, %+v", got.Status.Backup, got.Status.Conditions)
	}
	if a.due(got, &memory{written: a.Now()}, state) {
		t.Error("what stands is written again")
	}
	if age := column(t, config, "Recoverable"); age != "3h" && age != "179m" && age != "180m" {
		t.Errorf("the column says %q", age)
	}
	must(done(a.write(ctx, got, nil)))
	got = &v1alpha1.MysqlFailoverGroup{}
	must(c.Get(ctx, scopetest.Key, got))
	if b := got.Status.Backup; b == nil || b.PITR != nil || len(b.Profiles) != 1 || tells(got) || len(got.Status.Conditions) != 1 {
		t.Errorf("turned off: %+v, %+v", b, got.Status.Conditions)
	}
	// One that was made again is not written to.
	must(c.Delete(ctx, got))
	again := scopetest.Group(archived)
	again.UID, again.Generation = "", 0
	must(c.Create(ctx, again))
	if written, err := a.write(ctx, got, &state); written || err != nil {
		t.Errorf("the status of a group that is gone was written to its successor: %t, %v", written, err)
	}
}

func done(written bool, err error) error {
	if err == nil && !written {
		err = errors.New("nothing was written")
	}
	return err
}

// column asks for the table that kubectl prints.
func column(t *testing.T, config *rest.Config, name string) string {
	t.Helper()
	config = rest.CopyConfig(config)
	config.GroupVersion, config.APIPath, config.NegotiatedSerializer = &v1alpha1.GroupVersion, "/apis", clientgoscheme.Codecs.WithoutConversion()
	config.AcceptContentTypes = "application/json;as=Table;v=v1;g=meta.k8s.io"
	r, err := rest.RESTClientFor(config)
	if err != nil {
		t.Fatal(err)
	}
	table := &metav1.Table{}
	raw, err := r.Get().Namespace(scopetest.Key.Namespace).Resource("mysqlfailovergroups").Name(scopetest.Key.Name).
		SetHeader("Accept", config.AcceptContentTypes).DoRaw(context.Background())
	if err != nil {
		t.Fatal(err)
	}
	if err := runtime.DecodeInto(clientgoscheme.Codecs.UniversalDeserializer(), raw, table); err != nil {
		t.Fatal(err)
	}
	at := slices.IndexFunc(table.ColumnDefinitions, func(d metav1.TableColumnDefinition) bool { return d.Name == name })
	if at < 0 || len(table.Rows) != 1 {
		t.Fatalf("no column %s in %+v", name, table.ColumnDefinitions)
	}
	text, _ := table.Rows[0].Cells[at].(string)
	return text
}

func newClient(t *testing.T) (client.Client, *rest.Config) {
	t.Helper()
	if os.Getenv("KUBEBUILDER_ASSETS") == "" {
		t.Skip("KUBEBUILDER_ASSETS does not say where kube-apiserver and etcd are")
	}
	env := &envtest.Environment{CRDDirectoryPaths: []string{filepath.Join("..", "..", "config", "crd")}, ErrorIfCRDPathMissing: true, ControlPlaneStartTimeout: 2 * time.Minute}
	config, err := env.Start()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := env.Stop(); err != nil {
			t.Error(err)
		}
	})
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{clientgoscheme.AddToScheme, v1alpha1.AddToScheme, metav1.AddMetaToScheme} {
		if err := add(scheme); err != nil {
			t.Fatal(err)
		}
	}
	c, err := client.New(config, client.Options{Scheme: scheme})
	if err != nil {
		t.Fatal(err)
	}
	return c, config
}
