// SPDX-License-Identifier: Apache-2.0

package cmd

import (
	"context"
	"encoding/base64"
	"errors"
	"io"
	"net/http"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/mysql-mfg/mfg/api/v1alpha1"
	"github.com/mysql-mfg/mfg/api/wire"
	"github.com/mysql-mfg/mfg/kubectl-mfg/keyrings"
	"github.com/mysql-mfg/mfg/kubectl-mfg/pods"
)

// keyMaterial is the keyring of every site in these tests. It must be in no output.
const keyMaterial = `{"version":"1.0","elements":[{"data":"5EC2E7C0FFEE5EC2E7","data_id":"INNODBKey-1"}]}`

const (
	lostSecret  = "mysql-orders-frankfurt-keyring-v3"
	secretsPath = "/api/v1/namespaces/shop/secrets"
	eventsPath  = "/api/v1/namespaces/shop/events"
)

// escrowAPI is an API server with an encrypted group whose site frankfurt lost its escrow Secret while its pod runs.
type escrowAPI struct {
	*fakeAPI
	secrets map[string]*corev1.Secret
	events  map[string]*corev1.Event
	pods    []corev1.Pod
	// live is what the pods have in their memory; deaf is one that cannot be asked.
	live, deaf string
	// changes are the requests that change something, and reads of keyrings out of pods, in order.
	changes []string
	// killAt is the change at which the plugin is killed, 1 being the first; killDone lets that one happen before.
	killAt   int
	killDone bool
	dead     bool
	// denied are rights that the user lacks, as "verb resource".
	denied []string
	// corrupt changes what is stored on its way.
	corrupt bool
	// quietRights has the API server say that everything is allowed, and refuse all the same.
	quietRights bool
	// on sees every request before it is served: what others do just then, it does.
	on func(*http.Request)
	// idle has the operator do nothing.
	idle    bool
	version int
	// contents is how often the content of a Secret was read.
	contents int
}

func newEscrowAPI(t *testing.T) *escrowAPI {
	t.Helper()
	f := &escrowAPI{fakeAPI: loadHealthy(t), secrets: map[string]*corev1.Secret{}, events: map[string]*corev1.Event{}, live: keyMaterial, version: 100}
	g := f.group()
	g.UID = "group-uid"
	g.Spec.EncryptionAtRest = &v1alpha1.EncryptionAtRestSpec{Enabled: true, Keyring: v1alpha1.KeyringSpec{DataFileDir: "/run/keys", RetainVersions: 5}}
	e := &v1alpha1.EncryptionAtRestStatus{}
	for i, site := range []string{"paris", "frankfurt", "madrid"} {
		st := v1alpha1.SiteKeyringStatus{Name: site, Phase: v1alpha1.KeyringSealed, KeyringVersion: int64(2 + i),
			KeyringSecret: v1alpha1.KeyringSecret("orders", site, int64(2+i)), KeyringDigest: wire.KeyringDigest([]byte(keyMaterial))}
		e.Sites = append(e.Sites, st)
		if site != "frankfurt" {
			f.store(keyrings.Secret(g, st, []byte(keyMaterial)))
		}
	}
	g.Status.EncryptionAtRest = e
	f.pods = []corev1.Pod{f.pod("mysql-orders-frankfurt-7d9f-abcde", corev1.PodRunning)}
	f.operate()
	return f
}

func (f *escrowAPI) group() *v1alpha1.MysqlFailoverGroup { return &f.groups[0] }

// site is the keyring status of frankfurt.
func (f *escrowAPI) site() *v1alpha1.SiteKeyringStatus {
	return &f.group().Status.EncryptionAtRest.Sites[1]
}

func (f *escrowAPI) pod(name string, phase corev1.PodPhase) corev1.Pod {
	return f.podOf("frankfurt", name, lostSecret, phase)
}

// podOf is a pod that has a Secret mounted as its keyring.
func (f *escrowAPI) podOf(site, name, secret string, phase corev1.PodPhase) corev1.Pod {
	p := corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: name, Labels: map[string]string{
		v1alpha1.LabelGroup: "orders", v1alpha1.LabelName: v1alpha1.NameMySQL, v1alpha1.LabelSite: site,
	}}, Status: corev1.PodStatus{Phase: phase}}
	p.Spec.Volumes = []corev1.Volume{{Name: "keyring", VolumeSource: corev1.VolumeSource{Secret: &corev1.SecretVolumeSource{SecretName: secret}}}}
	p.Spec.Containers = []corev1.Container{{Name: pods.ContainerMySQL, VolumeMounts: []corev1.VolumeMount{{Name: "keyring", MountPath: "/run/keys"}}}}
	if phase == corev1.PodRunning {
		p.Status.ContainerStatuses = []corev1.ContainerStatus{{Name: pods.ContainerMySQL, State: corev1.ContainerState{Running: &corev1.ContainerStateRunning{}}}}
	}
	return p
}

func (f *escrowAPI) next() string { f.version++; return strings.Repeat("1", f.version-99) }

func (f *escrowAPI) store(s *corev1.Secret) {
	s.ResourceVersion, s.UID = f.next(), types.UID("uid-of-"+s.Name)
	s.CreationTimestamp = metav1.NewTime(noon)
	f.secrets[s.Name] = s
}

// operate is the operator's part: it tells of a loss and takes what was restored for what it is.
func (f *escrowAPI) operate() {
	if f.idle {
		return
	}
	st := f.site()
	s := f.secrets[st.KeyringSecret]
	have := s != nil && keyrings.Digest(s) == st.KeyringDigest
	switch {
	case !have && st.Work == "":
		st.Phase, st.Message = v1alpha1.KeyringFailed, "the escrow Secret is missing"
	case have && st.Stage == v1alpha1.KeyringSealing:
		st.Phase, st.Stage, st.Message = v1alpha1.KeyringSealed, "", "" // by way of Escrowed
	case have && st.Work == "":
		st.Phase, st.Message = v1alpha1.KeyringSealed, ""
	}
	if have && keyrings.InEscrow(s) && metav1.GetControllerOf(s) == nil {
		s.OwnerReferences = keyrings.Secret(f.group(), *st, nil).OwnerReferences
	}
}

// complete is what the operator does with a bare Secret that has the right content.
func (f *escrowAPI) complete() {
	st := f.site()
	if s := f.secrets[st.KeyringSecret]; s != nil && keyrings.Digest(s) == st.KeyringDigest && !keyrings.InEscrow(s) {
		want := keyrings.Secret(f.group(), *st, nil)
		s.Labels, s.Annotations, s.Immutable, s.ResourceVersion = want.Labels, want.Annotations, want.Immutable, f.next()
	}
}

// change counts what changes something; false means that the plugin was killed before it.
func (f *escrowAPI) change(what string) (performed bool) {
	if f.dead {
		return false
	}
	f.changes = append(f.changes, what)
	if len(f.changes) == f.killAt {
		f.dead = true
		return f.killDone
	}
	return true
}

func (f *escrowAPI) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if f.dead {
		panic(http.ErrAbortHandler)
	}
	if f.on != nil {
		f.on(r)
	}
	verb := map[string]string{http.MethodGet: "get", http.MethodPost: "create", http.MethodPatch: "patch", http.MethodDelete: "delete"}[r.Method]
	path := r.URL.Path
	switch {
	case strings.HasSuffix(path, "/selfsubjectaccessreviews"):
		f.serveReview(w, r)
	case path == "/api/v1/namespaces/shop/pods":
		f.guarded(w, "list pods", func() { respond(w, http.StatusOK, corev1.PodList{Items: f.pods}) })
	case strings.HasPrefix(path, secretsPath):
		f.guarded(w, verb+" secrets", func() { f.serveSecret(w, r, strings.Trim(strings.TrimPrefix(path, secretsPath), "/")) })
	case strings.HasPrefix(path, eventsPath):
		f.guarded(w, verb+" events", func() { f.serveEvent(w, r, strings.Trim(strings.TrimPrefix(path, eventsPath), "/")) })
	case strings.HasSuffix(path, "/orders/status"):
		f.guarded(w, verb+" status", func() { f.serveStatusPatch(w, r) })
	default:
		f.fakeAPI.ServeHTTP(w, r)
	}
	if f.dead {
		panic(http.ErrAbortHandler) // the answer did not arrive any more
	}
}

func (f *escrowAPI) guarded(w http.ResponseWriter, what string, serve func()) {
	if slices.Contains(f.denied, what) {
		status(http.StatusForbidden, metav1.StatusReasonForbidden, "user may not "+what)(w)
		return
	}
	serve()
}

// reader is the real client, but for containers: what they hold is the test's.
type reader struct {
	Cluster
	f *escrowAPI
	t *testing.T
}

func (r reader) Exec(_ context.Context, e pods.Execution) error {
	if strings.Join(e.Command, " ") != "cat /run/keys/keyring" || e.Container != pods.ContainerMySQL || e.In != nil {
		r.t.Errorf("%+v was run", e)
	}
	if slices.Contains(r.f.denied, "exec") || e.Pod == r.f.deaf {
		return errors.New("unable to upgrade connection")
	}
	if !r.f.change("read pod") || r.f.dead {
		return errors.New("connection reset")
	}
	_, err := io.WriteString(e.Out, r.f.live)
	return err
}

// recovers runs a command line against it; the operator acts whenever something is waited for.
func (f *escrowAPI) recovers(t *testing.T, o runOptions, args ...string) ran {
	t.Helper()
	if o.tick == nil {
		o.tick = func(int) { f.operate() }
	}
	o.cluster = func(c Cluster) Cluster { return reader{c, f, t} }
	got := run(t, f, o, args...)
	for _, text := range []string{got.out, got.errOut} {
		// I11: no byte of a key in any output.
		if strings.Contains(text, "5EC2E7") || strings.Contains(text, base64.StdEncoding.EncodeToString([]byte(keyMaterial))[:30]) {
			t.Errorf("I11: a key was printed:\n%s", text)
		}
	}
	return got
}
