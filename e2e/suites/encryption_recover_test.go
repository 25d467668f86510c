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
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/mysql-mfg/mfg/api/v1alpha1"
	"github.com/mysql-mfg/mfg/api/wire"
	"github.com/mysql-mfg/mfg/e2e/demo/stage"
)

// loss is a site whose escrow Secret is gone while its pod runs.
type loss struct {
	v      *vault
	site   string
	secret *corev1.Secret
	pod    *corev1.Pod
}

// lose deletes the escrow Secret of a replica and waits until that is told.
func lose(t *testing.T, v *vault) *loss {
	t.Helper()
	return loseOf(t, v, replicas(v.sealed(t, comeBack))[0])
}

// loseOf is lose for a site.
func loseOf(t *testing.T, v *vault, site string) *loss {
	t.Helper()
	group := v.sealed(t, comeBack)
	l := &loss{v: v, site: site, secret: &corev1.Secret{}}
	name := keyringOf(group, l.site).KeyringSecret
	if err := v.Kube.Get(t.Context(), client.ObjectKey{Namespace: v.Namespace, Name: name}, l.secret); err != nil {
		t.Fatal(err)
	}
	pod, err := v.Pod(t.Context(), l.site)
	if err != nil {
		t.Fatal(err)
	}
	l.pod = pod
	t.Cleanup(func() {
		if !t.Failed() {
			return
		}
		back := l.secret.DeepCopy() // the next stories must not wait for it in vain
		back.ResourceVersion, back.UID, back.CreationTimestamp, back.ManagedFields = "", "", metav1.Time{}, nil
		if err := v.Kube.Create(context.Background(), back); err != nil && !apierrors.IsAlreadyExists(err) {
			t.Logf("give %s back: %v", back.Name, err)
		}
	})
	loseSecret(t, v, l.site)
	v.failed(t, l.site)
	return l
}

// recovers runs the plugin's recover-keyring for it.
func (l *loss) recovers(t *testing.T, more ...string) answer {
	t.Helper()
	return plugin(t, append([]string{"recover-keyring", l.v.Name, l.site, "-n", l.v.Namespace, "--yes"}, more...)...)
}

// now is the Secret as it is; nil if it is gone.
func (l *loss) now(t *testing.T) *corev1.Secret {
	t.Helper()
	s := &corev1.Secret{}
	err := l.v.Kube.Get(t.Context(), client.ObjectKeyFromObject(l.secret), s)
	if apierrors.IsNotFound(err) {
		return nil
	}
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// samePod fails the test if the pod that held the only copy was touched.
func (l *loss) samePod(t *testing.T) {
	t.Helper()
	pod, err := l.v.Pod(t.Context(), l.site)
	if err != nil {
		t.Fatal(err)
	}
	if pod.UID != l.pod.UID || pod.Status.ContainerStatuses[0].RestartCount != l.pod.Status.ContainerStatuses[0].RestartCount {
		t.Errorf("the pod of %s was replaced or restarted", l.site)
	}
}

// restored fails the test unless the Secret is as the operator made it, and the site is sealed with it.
func (l *loss) restored(t *testing.T) {
	t.Helper()
	group := l.v.sealed(t, comeBack)
	l.samePod(t)
	checkSealed(t, l.v, group, l.site)
	s := l.now(t)
	if s == nil {
		t.Fatal("the Secret is gone again")
	}
	same := map[string][2]any{
		"labels": {l.secret.Labels, s.Labels}, "annotations": {l.secret.Annotations, s.Annotations}, "type": {l.secret.Type, s.Type},
		"immutable": {l.secret.Immutable, s.Immutable}, "owners": {l.secret.OwnerReferences, s.OwnerReferences},
	}
	for what, is := range same {
		if !equality.Semantic.DeepEqual(is[0], is[1]) {
			t.Errorf("%s of %s: %v, before %v", what, s.Name, is[1], is[0])
		}
	}
	if !equality.Semantic.DeepEqual(l.secret.Data, s.Data) {
		t.Errorf("%s has another content", s.Name) // which is not for a log
	}
	event := &corev1.Event{}
	key := client.ObjectKey{Namespace: l.v.Namespace, Name: fmt.Sprintf("%s.keyring-%s", l.v.Name, s.UID)}
	if err := l.v.Kube.Get(t.Context(), key, event); err != nil || event.Reason != "KeyringRecovered" {
		t.Errorf("event %s: %v", event.Reason, err)
	}
	plugin(t, "keyring", "verify", l.v.Name, "-n", l.v.Namespace).want(t, 0, nil).says(t, "same")
}

// unchanged fails the test if the group tells something else of the keyring than before, or a Secret is there.
func (l *loss) unchanged(t *testing.T, before v1alpha1.SiteKeyringStatus) {
	t.Helper()
	group, err := l.v.Get(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	now := keyringOf(group, l.site)
	if now.Phase != before.Phase || now.KeyringSecret != before.KeyringSecret || now.KeyringDigest != before.KeyringDigest {
		t.Errorf("status says %s, %s, %s; before %s, %s, %s", now.Phase, now.KeyringSecret, now.KeyringDigest, before.Phase, before.KeyringSecret, before.KeyringDigest)
	}
	if l.now(t) != nil {
		t.Errorf("%s is there", l.secret.Name)
	}
	l.samePod(t)
}

// The plugin is lost at each step, before it or right after it, and a second run finishes.
func recoverInterrupted(t *testing.T, v *vault) {
	for _, at := range []string{"read pod", "create Secret", "patch Secret", "patch status", "create Event"} {
		for _, done := range []bool{false, true} {
			if at == "read pod" && done {
				continue // it changes nothing
			}
			t.Run(fmt.Sprintf("%s done=%t", at, done), func(t *testing.T) {
				l := lose(t, v)
				s := sabotage(t)
				s.at, s.done = at, done
				if a := l.recovers(t, "--server", s.url, "--timeout", "30s"); a.code == 0 || !s.met {
					t.Fatalf("it was not lost (%t):\n%s%s", s.met, a.out, a.errOut)
				}
				l.recovers(t).want(t, 0, nil)
				l.restored(t)
				l.recovers(t).want(t, 0, nil).says(t, "nothing is missing")
			})
		}
	}
	t.Run("while it waits for the operator", func(t *testing.T) {
		l := lose(t, v)
		t.Cleanup(func() { _ = lab.ScaleOperator(context.Background(), 1) })
		if err := lab.ScaleOperator(t.Context(), 0); err != nil {
			t.Fatal(err)
		}
		a := l.recovers(t, "--timeout", "10s")
		if err := lab.ScaleOperator(t.Context(), 1); err != nil {
			t.Fatal(err)
		}
		a.want(t, 4, nil)
		l.recovers(t).want(t, 0, nil)
		l.restored(t)
	})
}

// What is stored and is not what is missing is deleted again, with an exit code of its own, and nothing else is changed.
func recoverWrongDigest(t *testing.T, v *vault) {
	l := lose(t, v)
	group, err := v.Get(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	before := keyringOf(group, l.site)
	plugin(t, "keyring", "verify", v.Name, "-n", v.Namespace).want(t, 3, nil).says(t, "is missing", "kubectl mfg recover-keyring "+v.Name+" "+l.site)
	l.recovers(t, "--dry-run=client").want(t, 0, nil).says(t, "redacted", "nothing was sent")
	l.recovers(t, "--dry-run=server").want(t, 0, nil).says(t, "redacted", "the API server would take every change")
	l.unchanged(t, before)

	s := sabotage(t)
	s.corrupt = true
	l.recovers(t, "--server", s.url).want(t, 5, nil).says(t, "was deleted again; nothing else was changed")
	l.unchanged(t, before)

	// Lost right after the wrong one was made: the next run takes it away and stops.
	s = sabotage(t)
	s.corrupt, s.at, s.done = true, "create Secret", true
	if a := l.recovers(t, "--server", s.url); a.code == 0 || l.now(t) == nil {
		t.Fatalf("the wrong Secret is not there:\n%s%s", a.out, a.errOut)
	}
	l.recovers(t).want(t, 5, nil).says(t, "was deleted again")
	l.unchanged(t, before)

	// Status names another keyring than the pod has: nothing is made.
	l.nameDigest(t, "sha256:"+strings.Repeat("0", 64))
	a := l.recovers(t)
	l.nameDigest(t, before.KeyringDigest)
	a.want(t, 5, nil).says(t, "this is another keyring", "nothing was changed")
	l.unchanged(t, before)

	// By the documented command at last.
	runbook(t, v, "recover with the plugin", l.site, withPlugin())
	l.restored(t)
	if out := runbook(t, v, "check the keyrings", "", withPlugin()); !strings.Contains(out, l.secret.Name) {
		t.Errorf("the documented commands do not show %s:\n%s", l.secret.Name, out)
	}
}

// nameDigest patches the digest that status names.
func (l *loss) nameDigest(t *testing.T, digest string) {
	t.Helper()
	group, err := l.v.Get(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for i, s := range group.Status.EncryptionAtRest.Sites {
		if s.Name != l.site {
			continue
		}
		patch := fmt.Sprintf(`[{"op":"replace","path":"/status/encryptionAtRest/sites/%d/keyringDigest","value":%q}]`, i, digest)
		if err := l.v.Kube.Status().Patch(t.Context(), group, client.RawPatch("application/json-patch+json", []byte(patch))); err != nil {
			t.Fatal(err)
		}
	}
}

// Who lacks a right is told which, before anything is changed. Without the right to patch status it works all the same.
func recoverRights(t *testing.T, v *vault) {
	l := lose(t, v)
	group, err := v.Get(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	look := rbacv1.PolicyRule{APIGroups: []string{v1alpha1.GroupVersion.Group}, Resources: []string{"mysqlfailovergroups"}, Verbs: []string{"get", "list"}}
	pods := rbacv1.PolicyRule{APIGroups: []string{""}, Resources: []string{"pods"}, Verbs: []string{"get", "list"}}
	secrets := rbacv1.PolicyRule{APIGroups: []string{""}, Resources: []string{"secrets"}, Verbs: []string{"get", "list", "create", "patch", "delete"}}
	exec := rbacv1.PolicyRule{APIGroups: []string{""}, Resources: []string{"pods/exec"}, Verbs: []string{"get", "create"}}
	readable := secrets
	readable.Verbs = []string{"get", "list"}
	allow(t, v.Namespace, "looker", look)
	allow(t, v.Namespace, "keeper", look, pods, readable)
	allow(t, v.Namespace, "restorer", look, pods, secrets, exec)
	l.recovers(t, "--as", "looker").want(t, 1, nil).says(t, "forbidden", "can-i get secrets")
	l.recovers(t, "--as", "keeper").want(t, 1, nil).says(t, "you have no right to", "create pods/exec", "create secrets", "nothing was changed")
	l.unchanged(t, keyringOf(group, l.site))
	l.recovers(t, "--as", "restorer").want(t, 0, nil).says(t, "the operator sets it", "no event was recorded")
	// Whoever may records what is not recorded yet.
	l.recovers(t).want(t, 0, nil)
	l.restored(t)
}

// The first and the third row of the table: a pod that is gone is nothing while its Secret is there; without the Secret the
// plugin refuses, and what it says is what helps.
func recoverPodGone(t *testing.T, v *vault) {
	group := v.sealed(t, comeBack)
	site := replicas(group)[0]
	before := keyringOf(group, site)
	gone(t, v, site)
	if err := stage.Poll(t.Context(), comeBack, "the new pod of "+site+" with its keyring", func(ctx context.Context) error {
		out, err := v.Exec(ctx, site, "cat", keyringPath)
		if err == nil && wire.KeyringDigest([]byte(out)) != before.KeyringDigest {
			err = errors.New("it has another keyring")
		}
		return err
	}); err != nil {
		t.Fatal(err)
	}
	after := keyringOf(v.sealed(t, comeBack), site)
	if after.KeyringSecret != before.KeyringSecret || after.KeyringDigest != before.KeyringDigest {
		t.Errorf("a new pod has %s, the one before had %s", after.KeyringSecret, before.KeyringSecret)
	}
	plugin(t, "recover-keyring", v.Name, site, "-n", v.Namespace).want(t, 0, nil).says(t, "nothing is missing")

	l := lose(t, v)
	gone(t, v, l.site)
	l.recloned(t)
}

// The same for a site that was the active one when it lost both. Its node died, so its volume was told of no newer statement and still
// names it; a person has said that what it alone had may go, and it is cloned from the site that took over.
func recoverActiveGone(t *testing.T, v *vault) {
	l := loseOf(t, v, v.sealed(t, comeBack).Status.ActiveSite)
	kill := fault(t, "node-kill")
	if _, err := v.Break(t.Context(), kill, l.site); err != nil {
		t.Fatal(err)
	}
	if _, err := v.Await(t.Context(), 2*time.Minute, "another active site", func(group *v1alpha1.MysqlFailoverGroup) error {
		if s := group.Status.ActiveSite; s == l.site || group.Status.Transition != nil {
			return fmt.Errorf("the active site is %s", s)
		}
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	if err := v.Undo(t.Context(), kill, l.site); err != nil {
		t.Fatal(err)
	}
	gone(t, v, l.site)
	l.recloned(t)
}

// recloned fails the test unless the plugin says that the pod is gone, and what it says helps.
func (l *loss) recloned(t *testing.T) {
	t.Helper()
	v := l.v
	v.failed(t, l.site)
	l.recovers(t).want(t, 5, nil).says(t, "is gone", "kubectl mfg reclone "+v.Name+" "+l.site+" -n "+v.Namespace+" --confirm-data-loss")
	if l.now(t) != nil {
		t.Error("a Secret was made")
	}
	plugin(t, "reclone", v.Name, l.site, "-n", v.Namespace, "--confirm-data-loss", "--yes", "--wait=false").want(t, 0, nil)
	if outcome := answered(t, v.Group, v1alpha1.AnnotationRecloneSite, l.site+":confirm", 2*resealing); outcome.Outcome != v1alpha1.RequestDone {
		t.Fatalf("the order was answered: %+v", outcome)
	}
	checkSealed(t, v, v.sealed(t, resealing), l.site)
	plugin(t, "keyring", "verify", v.Name, "-n", v.Namespace).want(t, 0, nil)
}

// gone deletes a site's pod and waits until nothing of it is left.
func gone(t *testing.T, v *vault, site string) {
	t.Helper()
	old, err := v.Pod(t.Context(), site)
	if err != nil {
		t.Fatal(err)
	}
	if err := stage.DeletePod(t.Context(), v.Group, site); err != nil {
		t.Fatal(err)
	}
	if err := stage.Poll(t.Context(), 2*time.Minute, "pod "+old.Name+" to go", func(ctx context.Context) error {
		pods, err := v.Pods(ctx)
		for _, p := range pods {
			if p.UID == old.UID {
				return errors.New("it is still there")
			}
		}
		return err
	}); err != nil {
		t.Fatal(err)
	}
}
