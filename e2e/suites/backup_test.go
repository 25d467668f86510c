// SPDX-License-Identifier: Apache-2.0

//go:build lab

package suites

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"filippo.io/age"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/mysql-mfg/mfg/api/v1alpha1"
	"github.com/mysql-mfg/mfg/e2e/demo/stage"
)

// The groups of these tests. The one that is restored has another name and another namespace than the one that was backed up.
const (
	backupNamespace, backupGroup     = "suite-backup", "shop"
	restoredNamespace, restoredGroup = "suite-restored", "again"
	refusedNamespace, refusedGroup   = "suite-refused", "refused"

	identitySecret = "age-identity"
	backupPrefix   = "lab"
)

const (
	// backupLimit is how long a backup of a few rows may take on a busy machine, its pod included.
	backupLimit = 2 * time.Minute
	// deniedLimit is how long it may take until credentials that are wrong are said to be wrong.
	deniedLimit = 3 * time.Minute
)

// storage is an S3 server that ends with the test.
func storage(t *testing.T, o stage.S3Options) *stage.S3 {
	t.Helper()
	s, err := lab.StartS3(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Remove(context.Background()); err != nil {
			t.Errorf("end the S3 server: %v", err)
		}
	})
	return s
}

func identity(t *testing.T) *age.X25519Identity {
	t.Helper()
	id, err := age.GenerateX25519Identity()
	if err != nil {
		t.Fatal(err)
	}
	return id
}

// ownGroup makes a group that goes with the test. What an earlier run left of it goes first.
func ownGroup(t *testing.T, g *stage.Group, spec v1alpha1.MysqlFailoverGroupSpec) *stage.Group {
	t.Helper()
	t.Cleanup(func() {
		if t.Failed() {
			g.Diagnose(context.Background(), t.Name()+"-"+g.Name)
		}
		if err := g.Delete(context.Background()); err != nil {
			t.Errorf("clean up: %v", err)
		}
	})
	made, err := lab.NewGroup(t.Context(), g.Namespace, g.Name, spec)
	if err != nil {
		t.Fatal(err)
	}
	return made
}

// fresh is a namespace with the Secrets of a storage, and a group in it that is not there yet.
func fresh(t *testing.T, namespace, name string, grant func(context.Context, string) error) *stage.Group {
	t.Helper()
	g := &stage.Group{Stage: lab, Namespace: namespace, Name: name}
	clearOwn(t, g)
	if err := grant(t.Context(), namespace); err != nil {
		t.Fatal(err)
	}
	return g
}

// backedUp is a specification with profiles: "nightly", encrypted; "control", in the clear; "denied", whose credentials are wrong.
func backedUp(s *stage.S3, id *age.X25519Identity, method v1alpha1.BackupMethod) v1alpha1.MysqlFailoverGroupSpec {
	spec := stage.DefaultSpec(backupGroup)
	nightly := v1alpha1.BackupProfile{
		Name: "nightly", Method: method, Storage: s.Storage(backupPrefix),
		// What makes backups has no identity: its Secret is there on the worst day alone.
		Encryption: &v1alpha1.BackupEncryption{Recipients: []string{id.Recipient().String()}, IdentitySecretName: identitySecret},
	}
	control := v1alpha1.BackupProfile{Name: "control", Method: method, Storage: s.Storage(controlPrefix)}
	denied := *nightly.DeepCopy()
	denied.Name, denied.Storage.S3.SecretName = "denied", deniedCredentials
	spec.Backup = &v1alpha1.BackupSpec{Profiles: []v1alpha1.BackupProfile{nightly, control, denied}}
	return spec
}

const (
	controlPrefix     = "control"
	deniedCredentials = "s3-denied"
)

// restored is a specification of a group that is made of what is in the bucket, and of an identity.
func restored(s *stage.S3, name string) v1alpha1.MysqlFailoverGroupSpec {
	spec := stage.DefaultSpec(name)
	from := s.Storage(backupPrefix)
	spec.InitFromBackup = &v1alpha1.InitFromBackupSpec{
		Storage: &from, Encryption: &v1alpha1.RestoreEncryption{IdentitySecretName: identitySecret},
		From: &v1alpha1.RestoreFrom{Namespace: backupNamespace, Group: backupGroup},
	}
	return spec
}

// backupStory is a group that is backed up, lost, and restored by one of the methods.
type backupStory struct {
	s3     *stage.S3
	id     *age.X25519Identity
	marker string
	// digests are those of everything that was backed up, and acked how many rows clients were promised.
	digests map[string]string
	acked   int
}

// A group is lost with its namespace, and comes back from the bucket and the age identity alone, by the commands of docs/disaster.md, word for
// word. The bucket shows nothing of its rows. Credentials that are wrong are said to be wrong, by a backup and by a restore, and nothing opens.
func TestBackupAndRestore(t *testing.T) {
	t.Parallel()
	p := &backupStory{s3: storage(t, stage.S3Options{Name: "s3"}), id: identity(t), marker: fmt.Sprintf("MARKER-%d-PLAINTEXT", time.Now().UnixNano())}
	refused := p.refuse(t) // while the others come up
	source := p.backUp(t, v1alpha1.BackupLogical)
	p.downloads(t, source)
	p.denied(t, source)
	day := p.keepFor(t, source)
	p.lose(t, source)
	p.refused(t, refused)
	day.follow(t, p)
}

// backUp makes the group with rows and backs it up, and once more in the clear.
func (p *backupStory) backUp(t *testing.T, method v1alpha1.BackupMethod) *stage.Group {
	t.Helper()
	ctx := t.Context()
	g := fresh(t, backupNamespace, backupGroup, p.s3.Grant)
	if err := lab.PutSecret(ctx, backupNamespace, deniedCredentials, stage.WrongS3Keys()); err != nil {
		t.Fatal(err)
	}
	g = ownGroup(t, g, backedUp(p.s3, p.id, method))
	group, err := g.AwaitReady(ctx, bringUp)
	if err != nil {
		t.Fatal(err)
	}
	active := group.Status.ActiveSite
	p.fill(t, g, active)
	if err := g.AwaitCaughtUp(ctx, active, comeBack); err != nil {
		t.Fatal(err)
	}
	if p.digests, err = g.Digests(ctx, active); err != nil {
		t.Fatal(err)
	}
	began, seen := time.Now(), watchProcesses(t, p.credentials(t, g))
	b, err := g.MakeBackup(ctx, "first", "nightly", backupLimit)
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("backed up after %s: %s from %s, %d bytes", time.Since(began).Round(100*time.Millisecond), b.Status.Location, b.Status.Site, b.Status.Bytes)
	has := query(t, g, active, fmt.Sprintf("SELECT GTID_SUBSET(@@GLOBAL.gtid_executed, '%s')", b.Status.GTIDExecuted))
	if st := b.Status; has != "1" || !st.Encrypted || st.Method != method || st.Bytes == 0 || st.MySQLVersion == "" || st.Site == active || st.FinishedAt == nil {
		t.Errorf("the status of the backup is not whole, or it lacks what was committed before it: %+v", st)
	}
	seen.judge(t)
	if _, err := g.MakeBackup(ctx, "control", "control", backupLimit); err != nil {
		t.Fatal(err)
	}
	p.nothingReadable(t)
	return g
}

// fill makes rows by a writer behind the Service, and what else a database has.
func (p *backupStory) fill(t *testing.T, g *stage.Group, active string) {
	t.Helper()
	ctx := t.Context()
	if err := g.EnsureApp(ctx); err != nil {
		t.Fatal(err)
	}
	w, err := g.StartServiceWriter(ctx, fmt.Sprintf("rows-%d", time.Now().Unix()%1_000_000), t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	query(t, g, active, strings.Join(stage.OddSchema(p.marker), "; "))
	j, err := w.Stop(ctx)
	if err != nil {
		t.Fatal(err)
	}
	if p.acked = len(j.Commits); p.acked == 0 {
		t.Fatal("no row was acknowledged")
	}
}

// downloads fetches the encrypted backup as docs/backups.md does, and opens it on this machine.
func (p *backupStory) downloads(t *testing.T, g *stage.Group) {
	t.Helper()
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "orders-backup-identity.txt"), []byte(p.id.String()+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	_, commands, _ := strings.Cut(commandsOf(t, "backups.md", "download a backup"), "\n") // the first keeps it encrypted
	runDocumented(t, "download a backup", strings.NewReplacer("orders-nightly-20261124-0200", "first", "nightly.tar", filepath.Join(dir, "nightly.tar"),
		"-n shop", "-n "+g.Namespace).Replace(commands), withPlugin(), "HOME="+dir)
	raw, err := os.ReadFile(filepath.Join(dir, "nightly.tar"))
	if err != nil || len(raw) == 0 || strings.Contains(string(raw), "age-encryption.org") {
		t.Errorf("the backup of %d bytes is not opened: %v", len(raw), err)
	}
}

// denied orders a backup whose credentials the server does not take.
func (p *backupStory) denied(t *testing.T, g *stage.Group) {
	t.Helper()
	if err := g.OrderBackup(t.Context(), "denied", "denied"); err != nil {
		t.Fatal(err)
	}
	b, err := g.AwaitBackup(t.Context(), "denied", deniedLimit, func(b *v1alpha1.MysqlBackup) error {
		if !saysDenied(string(b.Status.Reason), b.Status.Message) {
			return errors.New("nothing is said of the credentials: " + stage.DescribeBackup(b))
		}
		return nil
	})
	if err != nil {
		t.Error(err)
	} else if b.Status.Phase == v1alpha1.BackupCompleted {
		t.Errorf("it was made with credentials that the server does not take: %s", stage.DescribeBackup(b))
	}
}

// saysDenied is true of a reason, or of a message that names it, with what to do.
func saysDenied(reason, message string) bool {
	const denied = "AccessDenied"
	return (reason == denied || strings.Contains(message, denied)) && strings.Contains(message, "credentials")
}

// lose removes the group with its volumes and Secrets, and then its namespace. The bucket is what is left.
func (p *backupStory) lose(t *testing.T, g *stage.Group) {
	t.Helper()
	began := time.Now()
	if err := g.Delete(t.Context()); err != nil {
		t.Fatal(err)
	}
	t.Logf("the namespace was gone after %s", time.Since(began).Round(100*time.Millisecond))
	err := lab.Kube.Get(t.Context(), client.ObjectKey{Name: g.Namespace}, &corev1.Namespace{})
	if !apierrors.IsNotFound(err) {
		t.Fatalf("the namespace is there: %v", err)
	}
	if !exists(filepath.Join(p.dir(t), backupPrefix, backupNamespace, backupGroup, "backups", "first", "manifest.json")) {
		t.Fatal("the backup went with the namespace: whoever deletes a namespace by mistake has lost everything")
	}
}

// isWhole compares every site of a restored group with what was lost, and has it take writes as a new group does.
func (p *backupStory) isWhole(t *testing.T, g *stage.Group, group *v1alpha1.MysqlFailoverGroup) {
	t.Helper()
	ctx := t.Context()
	if st := group.Status.Restore; st.Backup != "first" || st.FinishedAt == nil || st.GTIDExecuted == "" {
		t.Errorf("status.restore is %+v", st)
	}
	if c := meta.FindStatusCondition(group.Status.Conditions, v1alpha1.ConditionRestoreReady); c == nil || c.Status != metav1.ConditionTrue {
		t.Errorf("condition %s: %+v", v1alpha1.ConditionRestoreReady, c)
	}
	for _, site := range stage.Sites {
		got, err := g.Digests(ctx, site)
		if err != nil {
			t.Fatal(err)
		}
		sameDigests(t, site, p.digests, got)
	}
	// A row whose acknowledgement was lost may be there besides.
	if rows, err := strconv.Atoi(query(t, g, group.Status.ActiveSite, "SELECT COUNT(*) FROM app.writes")); err != nil || rows < p.acked {
		t.Errorf("%d rows are there, and %d were acknowledged: %v", rows, p.acked, err)
	}
	// It takes writes as a new group does.
	if err := g.EnsureApp(ctx); err != nil {
		t.Fatal(err)
	}
	w, err := g.StartServiceWriter(ctx, fmt.Sprintf("after-%d", time.Now().Unix()%1_000_000), t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	if _, err := w.Stop(ctx); err != nil {
		t.Error(err)
	}
}

func sameDigests(t *testing.T, site string, want, got map[string]string) {
	t.Helper()
	if maps.Equal(want, got) {
		return
	}
	for name, digest := range want {
		if got[name] != digest {
			t.Errorf("%s: %s is %q, was %q", site, name, got[name], digest)
		}
	}
	for name := range got {
		if _, there := want[name]; !there {
			t.Errorf("%s: %s was not there before", site, name)
		}
	}
}

// refuse makes a group whose restore cannot reach the bucket: the Secret has a wrong key.
func (p *backupStory) refuse(t *testing.T) *stage.Group {
	t.Helper()
	g := fresh(t, refusedNamespace, refusedGroup, p.s3.GrantWrong)
	if err := lab.PutIdentity(t.Context(), refusedNamespace, identitySecret, p.id.String()); err != nil {
		t.Fatal(err)
	}
	spec := restored(p.s3, refusedGroup)
	spec.Sites = spec.Sites[:2]
	return ownGroup(t, g, spec)
}

// refused checks that the reason is said, and that no site opened: an empty database that takes writes would be worse than none.
func (p *backupStory) refused(t *testing.T, g *stage.Group) {
	t.Helper()
	group, err := g.AwaitRestore(t.Context(), deniedLimit, "the restore to say that the credentials are wrong", func(group *v1alpha1.MysqlFailoverGroup) error {
		if r := group.Status.Restore; r == nil || !saysDenied(string(r.Reason), r.Message) {
			return errors.New("nothing is said of the credentials: " + stage.DescribeRestore(group))
		}
		return nil
	})
	if err != nil {
		t.Error(err)
	}
	if group == nil {
		return
	}
	if group.Status.ActiveSite != "" || meta.IsStatusConditionTrue(group.Status.Conditions, v1alpha1.ConditionAvailable) {
		t.Errorf("the group opened without its data: %s", stage.Describe(group))
	}
	pods, err := g.Pods(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for _, pod := range pods {
		for _, c := range pod.Status.ContainerStatuses {
			if c.Name == "mysql" && c.Started != nil && *c.Started {
				t.Errorf("mysqld runs in %s without data", pod.Name)
			}
		}
	}
}
