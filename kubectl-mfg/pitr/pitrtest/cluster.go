// SPDX-License-Identifier: Apache-2.0

// Package pitrtest is a cluster for tests, in which a pod gives prepared answers about an archive.
package pitrtest

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/kubernetes/fake"
	k8stesting "k8s.io/client-go/testing"

	"github.com/mysql-mfg/mfg/api/v1alpha1"
	"github.com/mysql-mfg/mfg/api/wire"
	"github.com/mysql-mfg/mfg/kubectl-mfg/cli"
	"github.com/mysql-mfg/mfg/kubectl-mfg/pods"
)

// Noon is the time in the tests.
var Noon = time.Date(2026, 11, 25, 12, 0, 0, 0, time.UTC)

// PullSecrets are those of the group.
var PullSecrets = []corev1.LocalObjectReference{{Name: "registry"}}

// Cluster is a cluster with one group, orders in the namespace shop.
type Cluster struct {
	Origin *v1alpha1.MysqlFailoverGroup
	Known  []v1alpha1.MysqlBackup
	Fake   *fake.Clientset
	// Lines are what the pod answers, Raw what it writes instead; Err is how the exec ends.
	Lines []wire.InspectLine
	Raw   []byte
	// Hangs has the exec go on after that until it is called off.
	Hangs bool
	Err   error

	// Pod, Ran and Asked record what was made, run and asked. Made is a group that was made or rehearsed.
	Pod   *corev1.Pod
	Ran   pods.Execution
	Asked wire.InspectRequest
	Made  *v1alpha1.MysqlFailoverGroup
}

// New makes a group with an encrypted archive.
func New(t testing.TB, lines ...wire.InspectLine) *Cluster {
	t.Helper()
	c := &Cluster{Lines: lines}
	c.Origin = &v1alpha1.MysqlFailoverGroup{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "orders"}}
	c.Origin.Spec.ImagePullSecrets = PullSecrets
	c.Origin.Spec.Sites = []v1alpha1.Site{{Name: "paris"}, {Name: "rome"}}
	c.Origin.Spec.Backup = &v1alpha1.BackupSpec{
		Profiles: []v1alpha1.BackupProfile{{Name: "nightly", Storage: v1alpha1.BackupStorage{S3: &v1alpha1.S3Storage{Bucket: "b", Prefix: "p", Endpoint: "https://s3", SecretName: "keys", CASecretName: "ca"}},
			Encryption: &v1alpha1.BackupEncryption{Recipients: []string{"age1x"}, IdentitySecretName: "identity"}}},
		PITR: &v1alpha1.PITRSpec{Enabled: true, Profile: "nightly"},
	}
	secret := func(name string, keys ...string) *corev1.Secret {
		s := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: name}, Data: map[string][]byte{}}
		for _, k := range keys {
			s.Data[k] = []byte("hush")
		}
		return s
	}
	c.Fake = fake.NewClientset(&appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: "mfg-system", Name: "mfg-operator", Labels: map[string]string{"app.kubernetes.io/name": "mfg", "app.kubernetes.io/component": "operator"}},
		Spec: appsv1.DeploymentSpec{Template: corev1.PodTemplateSpec{Spec: corev1.PodSpec{Containers: []corev1.Container{{Args: []string{"--backup-image=example.org/backup:1"}}}}}}},
		secret("keys", v1alpha1.BackupAccessKeyID, v1alpha1.BackupSecretKey), secret("ca", v1alpha1.BackupCAKey), secret("identity", v1alpha1.BackupIdentityKey), secret(PullSecrets[0].Name))
	c.Fake.PrependReactor("create", "pods", func(action k8stesting.Action) (bool, runtime.Object, error) {
		create, is := action.(k8stesting.CreateAction)
		if !is {
			return false, nil, nil
		}
		if pod, is := create.GetObject().(*corev1.Pod); is {
			c.Pod = pod.DeepCopy()
			pod.Name, pod.Status.Phase = "archive-orders-x", corev1.PodRunning
		}
		return false, nil, nil
	})
	return c
}

// Kube is everything else.
func (c *Cluster) Kube() kubernetes.Interface { return c.Fake }

// Group is the only one.
func (c *Cluster) Group(_ context.Context, _, name string) (*v1alpha1.MysqlFailoverGroup, error) {
	if c.Origin == nil || name != c.Origin.Name {
		return nil, apierrors.NewNotFound(schema.GroupResource{Resource: "mysqlfailovergroups"}, name)
	}
	return c.Origin, nil
}

// Backups returns the known ones.
func (c *Cluster) Backups(context.Context, string, string) ([]v1alpha1.MysqlBackup, error) {
	return c.Known, nil
}

// CreateGroup records the group.
func (c *Cluster) CreateGroup(_ context.Context, g *v1alpha1.MysqlFailoverGroup, _ bool) (*v1alpha1.MysqlFailoverGroup, error) {
	c.Made = g
	return g, nil
}

// Exec answers.
func (c *Cluster) Exec(ctx context.Context, e pods.Execution) error {
	c.Ran = e
	raw, err := io.ReadAll(e.In)
	if err != nil {
		return err
	}
	if err := json.Unmarshal(raw, &c.Asked); err != nil {
		return err
	}
	out := json.NewEncoder(e.Out)
	for _, l := range c.Lines {
		if err := out.Encode(l); err != nil {
			<-ctx.Done() // the real one reads to the end, whether or not anybody takes it
			return ctx.Err()
		}
	}
	if _, err := e.Out.Write(c.Raw); err != nil {
		<-ctx.Done()
		return ctx.Err()
	}
	if c.Hangs {
		<-ctx.Done()
		return ctx.Err()
	}
	return c.Err
}

// Output is what was written.
type Output struct{ Out, Err bytes.Buffer }

// Environment writes into an Output, on a terminal so wide; 0 is none.
func Environment(out *Output, width int) cli.Environment {
	return cli.Environment{IOStreams: genericiooptions.IOStreams{In: &bytes.Buffer{}, Out: &out.Out, ErrOut: &out.Err}, Getenv: func(string) string { return "" },
		Now: func() time.Time { return Noon }, Wait: func(context.Context, time.Duration) bool { return true }, Terminal: func() (int, bool) { return width, width > 0 },
		Interactive: func() bool { return false }}
}

// End is the end of an answer.
func End() wire.InspectLine {
	return wire.InspectLine{End: &wire.InspectEnd{Reason: wire.BackupSucceeded, Files: 2, Bytes: 1 << 20, Transactions: 1234}}
}

// Timeline returns one with three epochs, a loss and a gap.
func Timeline() *wire.ArchiveTimeline {
	at := func(minutes int) time.Time { return Noon.Add(time.Duration(minutes) * time.Minute) }
	return &wire.ArchiveTimeline{
		Location: "s3://b/p/shop/orders", Earliest: at(-180), Latest: at(0).Add(-7123456 * time.Microsecond), Files: 41, Bytes: 3 << 30,
		Epochs: []wire.ArchiveEpoch{
			{Epoch: 1, Site: "paris", Kind: "Initial", PromotedAt: at(-181), First: at(-180), Last: at(-121), SeenAt: at(-120), Transactions: 90000, Files: 20, Bytes: 1 << 30},
			{Epoch: 2, Site: "rome", Kind: "Planned", PromotedAt: at(-120), First: at(-180), Last: at(-60), SeenAt: at(-60), Transactions: 70000, Lost: 5,
				LostGTIDs: "3e11fa47-71ca-11e1-9e33-c80aa9429562:70001-70005", Files: 11, Bytes: 1 << 30},
			{Epoch: 3, Site: "paris", Kind: "Emergency", PromotedAt: at(-58), First: at(-58), Last: at(-1), SeenAt: at(0), Transactions: 50000, Files: 10, Bytes: 1 << 30},
		},
		Gaps: []wire.ArchiveGap{{GTIDs: "3e11fa47-71ca-11e1-9e33-c80aa9429562:95000-95006", Transactions: 7, After: at(-30), Before: at(-28), Epoch: 3, Site: "paris"}},
		Backups: []wire.ArchiveBackup{
			{Name: "orders-nightly-2", Profile: "nightly", Method: "Logical", Site: "rome", Epoch: 3, FinishedAt: at(-10), Bytes: 4 << 30, Reaches: true},
			{Name: "orders-nightly-1", Profile: "nightly", Method: "Logical", Site: "paris", Epoch: 1, FinishedAt: at(-170), Bytes: 4 << 30, Reaches: true},
			{Name: "orders-nightly-0", Profile: "nightly", Method: "Logical", Site: "paris", Epoch: 1, FinishedAt: at(-175), Bytes: 4 << 30, Why: "the backup holds 5 transactions that a failover lost"},
		},
		Heart: &wire.ArchiveHeartbeat{Site: "paris", Epoch: 3, At: at(0)},
	}
}
