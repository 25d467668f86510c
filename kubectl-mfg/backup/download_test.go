// SPDX-License-Identifier: Apache-2.0

package backup

import (
	"archive/tar"
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"filippo.io/age"
	"github.com/google/go-cmp/cmp"
	"github.com/klauspost/compress/zstd"
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
	utilexec "k8s.io/client-go/util/exec"

	"github.com/mysql-mfg/mfg/api/v1alpha1"
	"github.com/mysql-mfg/mfg/kubectl-mfg/cli"
	"github.com/mysql-mfg/mfg/kubectl-mfg/pods"
)

// parts are what the backup of the tests holds.
var parts = []struct{ name, text string }{{"facts", `{"tables":[]}`}, {"dump", strings.Repeat("INSERT INTO t VALUES (1);\n", 500)}}

// entry is one file of the tar that a pod sends.
type entry struct {
	name string
	raw  []byte
}

// stored is a backup as the program sends it: small objects, so that each part has several.
func stored(t *testing.T, to age.Recipient) []entry {
	t.Helper()
	m := manifest{Name: "monday", Encrypted: to != nil}
	var files []entry
	for _, p := range parts {
		raw := sealed(t, to, p.text)
		var all []object
		for i := 0; len(raw) > 0; i++ {
			piece := raw[:min(len(raw), 100)]
			raw = raw[len(piece):]
			sum := sha256.Sum256(piece)
			key := fmt.Sprintf("0123456789abcdef/%s.%05d", p.name, i)
			all = append(all, object{Key: key, Bytes: int64(len(piece)), SHA256: hex.EncodeToString(sum[:])})
			files = append(files, entry{filepath.Base(key), piece})
		}
		m.Parts = append(m.Parts, struct {
			Name    string   `json:"name"`
			Bytes   int64    `json:"bytes"`
			Objects []object `json:"objects"`
		}{p.name, int64(len(p.text)), all})
	}
	raw, err := json.Marshal(m)
	if err != nil {
		t.Fatal(err)
	}
	return append([]entry{{manifestName, raw}}, files...)
}

func sealed(t *testing.T, to age.Recipient, text string) []byte {
	t.Helper()
	var buf bytes.Buffer
	var dst io.Writer = &buf
	var closers []io.Closer
	if to != nil {
		w, err := age.Encrypt(&buf, to)
		if err != nil {
			t.Fatal(err)
		}
		dst, closers = w, append(closers, w)
	}
	z, err := zstd.NewWriter(dst)
	if err != nil {
		t.Fatal(err)
	}
	_, err = io.WriteString(z, text)
	err = errors.Join(err, z.Close())
	for _, c := range closers {
		err = errors.Join(err, c.Close())
	}
	if err != nil {
		t.Fatal(err)
	}
	return buf.Bytes()
}

func packed(t *testing.T, files []entry) []byte {
	t.Helper()
	var buf bytes.Buffer
	w := tar.NewWriter(&buf)
	for _, f := range files {
		if err := w.WriteHeader(&tar.Header{Name: f.name, Mode: 0o600, Size: int64(len(f.raw))}); err != nil {
			t.Fatal(err)
		}
		if _, err := w.Write(f.raw); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return buf.Bytes()
}

// world is a cluster whose pod sends what it is given.
type world struct {
	group  *v1alpha1.MysqlFailoverGroup
	backup *v1alpha1.MysqlBackup
	kube   *fake.Clientset
	sends  []byte
	says   string
	err    error
	pod    *corev1.Pod
	ran    pods.Execution
}

func (w *world) Kube() kubernetes.Interface { return w.kube }
func (w *world) Group(context.Context, string, string) (*v1alpha1.MysqlFailoverGroup, error) {
	return w.group, nil
}
func (w *world) Backup(context.Context, string, string) (*v1alpha1.MysqlBackup, error) {
	return w.backup, nil
}
func (w *world) Backups(context.Context, string, string) ([]v1alpha1.MysqlBackup, error) {
	return nil, nil
}
func (w *world) CreateBackup(context.Context, *v1alpha1.MysqlBackup) (*v1alpha1.MysqlBackup, error) {
	return nil, errors.New("not here")
}
func (w *world) AnnotateBackup(context.Context, *v1alpha1.MysqlBackup, map[string]string) (*v1alpha1.MysqlBackup, error) {
	return nil, errors.New("not here")
}
func (w *world) DeleteBackup(context.Context, *v1alpha1.MysqlBackup) error {
	return errors.New("not here")
}

// Exec goes on until all is sent, or until it is called off, if nobody takes what it sends: the real one reads to the end then.
func (w *world) Exec(ctx context.Context, e pods.Execution) error {
	w.ran = e
	if _, err := e.Out.Write(w.sends); err != nil {
		<-ctx.Done()
		return ctx.Err()
	}
	_, _ = io.WriteString(e.ErrOut, w.says)
	return w.err
}

func newWorld(t *testing.T, sends []byte) *world {
	t.Helper()
	w := &world{sends: sends,
		backup: &v1alpha1.MysqlBackup{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "monday"}, Spec: v1alpha1.MysqlBackupSpec{Group: "orders", Profile: "nightly"},
			Status: v1alpha1.MysqlBackupStatus{Phase: v1alpha1.BackupCompleted, Encrypted: true}},
		group: &v1alpha1.MysqlFailoverGroup{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "orders"}, Spec: v1alpha1.MysqlFailoverGroupSpec{Backup: &v1alpha1.BackupSpec{Profiles: []v1alpha1.BackupProfile{
			{Name: "nightly", Storage: v1alpha1.BackupStorage{S3: &v1alpha1.S3Storage{Bucket: "b", Prefix: "p", Endpoint: "https://s3", SecretName: "keys", CASecretName: "ca"}}}}}}},
		kube: fake.NewClientset(&appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: "mfg-system", Name: "mfg-operator", Labels: map[string]string{"app.kubernetes.io/name": "mfg", "app.kubernetes.io/component": "operator"}},
			Spec: appsv1.DeploymentSpec{Template: corev1.PodTemplateSpec{Spec: corev1.PodSpec{Containers: []corev1.Container{{Args: []string{"--x", "--backup-image=example.org/backup:1"}}}}}}}),
	}
	w.kube.PrependReactor("create", "pods", func(action k8stesting.Action) (bool, runtime.Object, error) {
		create, is := action.(k8stesting.CreateAction)
		if !is {
			return false, nil, nil
		}
		pod, is := create.GetObject().(*corev1.Pod)
		if !is {
			return false, nil, nil
		}
		w.pod = pod
		pod.Name, pod.Status.Phase = "download-monday-x", corev1.PodRunning
		return false, nil, nil
	})
	return w
}

// TestDownload: what arrives is what the manifest says, or nothing is kept.
func TestDownload(t *testing.T) {
	id, err := age.GenerateX25519Identity()
	if err != nil {
		t.Fatal(err)
	}
	other, err := age.GenerateX25519Identity()
	if err != nil {
		t.Fatal(err)
	}
	encrypted, plain := stored(t, id.Recipient()), stored(t, nil)
	changed := func(files []entry, change func([]entry) []entry) []byte {
		var copied []entry
		for _, f := range files {
			copied = append(copied, entry{f.name, bytes.Clone(f.raw)})
		}
		return packed(t, change(copied))
	}
	flip := func(f []entry) []entry { f[len(f)-1].raw[3] ^= 1; return f }
	text := []entry{{parts[0].name, []byte(parts[0].text)}, {parts[1].name, []byte(parts[1].text)}}
	whole := packed(t, encrypted)
	for name, tc := range map[string]struct {
		sends []byte
		with  *age.X25519Identity
		clear bool
		want  []entry
		says  string
	}{
		"AsItIs":        {sends: whole, want: encrypted},
		"Opened":        {sends: whole, with: id, want: append([]entry{encrypted[0]}, text...)},
		"InTheClear":    {sends: packed(t, plain), clear: true, want: append([]entry{plain[0]}, text...)},
		"OtherIdentity": {sends: whole, with: other, says: "the identity does not open this backup"},
		"Flipped":       {sends: changed(encrypted, flip), says: "what came is not what its manifest says"},
		"FlippedOpened": {sends: changed(encrypted, flip), with: id, says: "what came is not what its manifest says"},
		"FlippedClear":  {sends: changed(plain, flip), clear: true, says: "part"},
		"Truncated":     {sends: whole[:len(whole)/2], says: "what came is not"},
		"OneLess":       {sends: changed(encrypted, func(f []entry) []entry { return f[:len(f)-1] }), says: "what came is not"},
		"OneLessOpened": {sends: changed(encrypted, func(f []entry) []entry { return f[:len(f)-1] }), with: id, says: "what came is not"},
		"OneMore":       {sends: changed(encrypted, func(f []entry) []entry { return append(f, entry{"dump.99999", []byte("x")}) }), says: "what came is not"},
		"Swapped":       {sends: changed(encrypted, func(f []entry) []entry { f[1].raw, f[2].raw = f[2].raw, f[1].raw; return f }), says: "what came is not"},
		"OfAnother": {sends: changed(encrypted, func(f []entry) []entry {
			f[0].raw = bytes.Replace(f[0].raw, []byte("monday"), []byte("friday"), 1)
			return f
		}), says: "what came is not"},
		"NoManifest": {sends: changed(encrypted, func(f []entry) []entry { return f[1:] }), says: "what came is not"},
		"Nothing":    {sends: nil, says: "what came is not"},
		"Longer": {sends: changed(plain, func(f []entry) []entry {
			f[0].raw = bytes.Replace(f[0].raw, []byte(fmt.Sprintf(`"bytes":%d`, len(parts[1].text))), []byte(fmt.Sprintf(`"bytes":%d`, len(parts[1].text)+1)), 1)
			return f
		}), clear: true, says: "what came is not"},
		"Shorter": {sends: changed(plain, func(f []entry) []entry {
			f[0].raw = bytes.Replace(f[0].raw, []byte(fmt.Sprintf(`"bytes":%d`, len(parts[1].text))), []byte(fmt.Sprintf(`"bytes":%d`, len(parts[1].text)-1)), 1)
			return f
		}), clear: true, says: "what came is not"},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, tc.sends)
			w.backup.Status.Encrypted = !tc.clear
			op := download(t)
			if tc.with != nil {
				op.Identity = filepath.Join(t.TempDir(), "id")
				if err := os.WriteFile(op.Identity, []byte(tc.with.String()+"\n"), 0o600); err != nil {
					t.Fatal(err)
				}
			}
			_, err := op.Run(t.Context(), environment(), w)
			raw, missing := os.ReadFile(op.File)
			if tc.says != "" {
				if err == nil || !strings.Contains(err.Error(), tc.says) || missing == nil || strings.Contains(err.Error(), "SECRET-KEY") {
					t.Errorf("%v, kept %d bytes", err, len(raw))
				}
			} else if diff := cmp.Diff(unpacked(t, raw), tc.want, cmp.AllowUnexported(entry{})); err != nil || diff != "" {
				t.Errorf("%v (-got +want):\n%s", err, diff)
			}
			if left, _ := w.kube.CoreV1().Pods("shop").List(t.Context(), metav1.ListOptions{}); len(left.Items) > 0 {
				t.Error("the pod is left behind")
			}
		})
	}
}

func download(t *testing.T) *Download {
	t.Helper()
	return &Download{Common: Common{Namespace: "shop", Timeout: time.Minute}, Name: "monday", File: filepath.Join(t.TempDir(), "monday.tar"), OperatorNamespace: "mfg-system"}
}

func environment() cli.Environment {
	return cli.Environment{IOStreams: genericiooptions.IOStreams{In: strings.NewReader(""), Out: &bytes.Buffer{}, ErrOut: &bytes.Buffer{}}, Now: time.Now}
}

func unpacked(t *testing.T, raw []byte) (files []entry) {
	t.Helper()
	for r := tar.NewReader(bytes.NewReader(raw)); ; {
		head, err := r.Next()
		if errors.Is(err, io.EOF) {
			return files
		} else if err != nil {
			t.Fatal(err)
		}
		content, err := io.ReadAll(r)
		if err != nil {
			t.Fatal(err)
		}
		files = append(files, entry{head.Name, content})
	}
}

// TestDownloadPod: the pod has the profile's Secrets as files, no identity, no token, and no rights beyond.
func TestDownloadPod(t *testing.T) {
	w := newWorld(t, packed(t, stored(t, nil)))
	w.group.Spec.ImagePullSecrets = []corev1.LocalObjectReference{{Name: "registry"}}
	if _, err := download(t).Run(t.Context(), environment(), w); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(w.group.Spec.ImagePullSecrets, w.pod.Spec.ImagePullSecrets); diff != "" {
		t.Errorf("a private registry refuses the image (-want +got):\n%s", diff)
	}
	if group, has := w.pod.Labels[v1alpha1.LabelGroup]; has || w.pod.Labels[v1alpha1.LabelInstance] != "orders" {
		t.Errorf("with podProtection nobody but the operator may make a pod that has the label of the group: %q, labels %v", group, w.pod.Labels)
	}
	spec, c := w.pod.Spec, w.pod.Spec.Containers[0]
	if c.Image != "example.org/backup:1" || *spec.AutomountServiceAccountToken || !*spec.SecurityContext.RunAsNonRoot || *c.SecurityContext.AllowPrivilegeEscalation || *spec.ActiveDeadlineSeconds < 60 {
		t.Errorf("%+v", spec)
	}
	want := `{"backup":"monday","bucket":{"caFile":"/etc/mfg-backup/ca/ca.crt","credentialsDir":"/etc/mfg-backup/credentials","group":"orders","namespace":"shop","prefix":"p","s3":{"bucket":"b","endpoint":"https://s3","region":"us-east-1"}},"timeoutSeconds":60}`
	if diff := cmp.Diff(want, c.Env[0].Value); diff != "" || strings.Join(w.ran.Command, " ") != "/backup fetch" || w.pod.Labels[v1alpha1.LabelName] != v1alpha1.NameBackup {
		t.Errorf("%v (-want +got):\n%s", w.ran.Command, diff)
	}
	for want, s := range map[string]v1alpha1.BackupStorage{
		`"gcs":{"bucket":"g"}`:           {GCS: &v1alpha1.GCSStorage{Bucket: "g", SecretName: "s"}},
		`"azure":{"container":"c"}`:      {Azure: &v1alpha1.AzureStorage{Container: "c", SecretName: "s"}},
		`"folder":"/var/lib/mfg-backup"`: {Volume: &v1alpha1.VolumeStorage{ClaimName: "v", SubPath: "x"}},
	} {
		w.group.Spec.Backup.Profiles[0].Storage = s
		if _, err := download(t).Run(t.Context(), environment(), w); err != nil || !strings.Contains(w.pod.Spec.Containers[0].Env[0].Value, want) || len(w.pod.Spec.Volumes) != 1 {
			t.Errorf("%v, %s lacks %s", err, w.pod.Spec.Containers[0].Env[0].Value, want)
		}
	}
}

// TestDownloadRefused: nothing is begun, or kept, that cannot be ended.
func TestDownloadRefused(t *testing.T) {
	ended := func(phase corev1.PodPhase) func(*world, *Download) {
		return func(w *world, _ *Download) {
			w.kube.PrependReactor("get", "pods", func(k8stesting.Action) (bool, runtime.Object, error) {
				return true, &corev1.Pod{Status: corev1.PodStatus{Phase: phase, Reason: "DeadlineExceeded", ContainerStatuses: []corev1.ContainerStatus{{State: corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: "ErrImagePull"}}}}}}, nil
			})
		}
	}
	for name, tc := range map[string]struct {
		change func(*world, *Download)
		code   int
		says   string
	}{
		"NotComplete": {func(w *world, _ *Download) { w.backup.Status.Phase = v1alpha1.BackupFailed }, cli.ExitRefused, "is not complete"},
		"NoProfile":   {func(w *world, _ *Download) { w.group.Spec.Backup = nil }, cli.ExitRefused, "has no profile nightly any more"},
		"NoImage":     {func(w *world, _ *Download) { w.kube = fake.NewClientset() }, cli.ExitRefused, "--image IMAGE"},
		"MayNotAsk": {func(w *world, _ *Download) {
			w.kube.PrependReactor("list", "deployments", func(k8stesting.Action) (bool, runtime.Object, error) {
				return true, nil, apierrors.NewForbidden(schema.GroupResource{Resource: "deployments"}, "", errors.New("no"))
			})
		}, 0, "--image IMAGE"},
		"MayNotMake": {func(w *world, _ *Download) {
			w.kube.PrependReactor("create", "pods", func(k8stesting.Action) (bool, runtime.Object, error) {
				return true, nil, apierrors.NewForbidden(schema.GroupResource{Resource: "pods"}, "", errors.New("no"))
			})
		}, 0, "kubectl auth can-i create pods -n shop"},
		"MayNotExec": {func(w *world, _ *Download) {
			w.sends, w.err = nil, apierrors.NewForbidden(schema.GroupResource{Resource: "pods/exec"}, "", errors.New("no"))
		}, 0, "kubectl auth can-i create pods/exec -n shop"},
		"Taken":      {func(_ *world, op *Download) { _ = os.WriteFile(op.File, []byte("mine"), 0o600) }, cli.ExitRefused, "nothing is overwritten"},
		"NoFolder":   {func(_ *world, op *Download) { op.File += "/x/y" }, 0, "write the backup"},
		"NoIdentity": {func(_ *world, op *Download) { op.Identity = "/missing" }, 0, "no such file"},
		"NotIdentity": {func(_ *world, op *Download) {
			op.Identity = op.File + ".id"
			_ = os.WriteFile(op.Identity, []byte("AGE-SECRET-KEY-1NOT"), 0o600)
		}, 0, "is no age identity"},
		"Program": {func(w *world, _ *Download) {
			w.sends, w.says, w.err = nil, "{}\n{\"error\":\"AccessDenied\x1b[2J\"}\n", utilexec.CodeExitError{Code: 10, Err: errors.New("x")}
		}, 0, `fetch backup monday: {"error":"AccessDenied[2J"}`},
		"PodEnds":  {ended(corev1.PodFailed), 0, "ended before it was told anything: DeadlineExceeded"},
		"PodWaits": {func(w *world, op *Download) { op.Timeout = 10 * time.Millisecond; ended(corev1.PodPending)(w, op) }, 0, "did not start: ErrImagePull"},
	} {
		t.Run(name, func(t *testing.T) {
			w, op := newWorld(t, packed(t, stored(t, nil))), download(t)
			w.backup.Status.Encrypted = false
			tc.change(w, op)
			_, err := op.Run(t.Context(), environment(), w)
			var own *cli.Error
			if err == nil || !strings.Contains(err.Error(), tc.says) || tc.code != 0 && (!errors.As(err, &own) || own.Code != tc.code) || strings.Contains(err.Error(), "1NOT") {
				t.Errorf("%v", err)
			}
			if raw, err := os.ReadFile(op.File); err == nil && string(raw) != "mine" {
				t.Errorf("%d bytes were kept", len(raw))
			}
		})
	}
	for _, op := range []*Download{{Common: Common{Timeout: 1}, OperatorNamespace: "x"}, {File: "x", OperatorNamespace: "x"}, {File: "x", Common: Common{Timeout: 1}}} {
		if op.Validate() == nil {
			t.Errorf("%+v is taken", op)
		}
	}
}
