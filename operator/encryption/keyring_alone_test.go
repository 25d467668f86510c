// SPDX-License-Identifier: Apache-2.0

package encryption

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/mysql-mfg/mfg/api/v1alpha1"
	"github.com/mysql-mfg/mfg/api/wire"
	"github.com/mysql-mfg/mfg/operator/keyring"
	"github.com/mysql-mfg/mfg/operator/render"
	"github.com/mysql-mfg/mfg/operator/scope"
	"github.com/mysql-mfg/mfg/operator/scope/scopetest"
)

// going is a group whose site c was unsealed to have its master keys rotated, and has them in its pod alone. Site b is sealed.
type going struct {
	*shell
	group *v1alpha1.MysqlFailoverGroup
	// s is what a look sees; its time is that of all looks.
	s *scope.Scope
	// ensured counts how often the poll loop was asked for.
	ensured int
}

// goingPort is the rest of the reconcile, for which a look sees what the test says.
type goingPort struct {
	*rest
	g *going
}

func (p goingPort) NewScope(group *v1alpha1.MysqlFailoverGroup) *scope.Scope {
	return &scope.Scope{Group: group, Key: scope.KeyOf(group), Now: p.g.s.Now}
}

func (p goingPort) Observe(_ context.Context, s *scope.Scope) error {
	if p.observes != nil {
		return p.observes
	}
	from := p.g.s
	s.Pods, s.Deployments, s.Facts, s.Known, s.Provisioned = from.Pods, from.Deployments, from.Facts, from.Known, from.Provisioned
	return nil
}

func (p goingPort) Ensure(types.NamespacedName) { p.g.ensured++ }

// escrowedAs is a version in escrow, with a content of which the digest is given.
func escrowedAs(site string, number int64, digest string) keyring.Version {
	return keyring.Version{Name: v1alpha1.KeyringSecret("orders", site, number), Number: number, Digest: digest, Annotated: digest}
}

func newGoing(t *testing.T, options ...scopetest.Option) *going {
	t.Helper()
	group := scopetest.Group(append([]scopetest.Option{scopetest.Running, scopetest.WithEncryption}, options...)...)
	group.Status.EncryptionAtRest = &v1alpha1.EncryptionAtRestStatus{Sites: []v1alpha1.SiteKeyringStatus{
		{Name: "b", Phase: v1alpha1.KeyringSealed, KeyringSecret: v1alpha1.KeyringSecret("orders", "b", 1), KeyringVersion: 1, KeyringDigest: "of b"},
		{
			Name: "c", Phase: v1alpha1.KeyringUnsealed, Work: v1alpha1.KeyringRotation, Round: 3, SeedVersion: 1, SeedDigest: "one",
			KeyringSecret: v1alpha1.KeyringSecret("orders", "c", 1), KeyringVersion: 1, KeyringDigest: "one",
		},
	}}
	g := &going{shell: newShell(t, group), group: group}
	g.escrow.versions = []keyring.Version{escrowedAs("b", 1, "of b"), escrowedAs("c", 1, "one")}
	pod := func(site, round string) *corev1.Pod {
		p := &corev1.Pod{
			ObjectMeta: metav1.ObjectMeta{
				Namespace: scopetest.Key.Namespace, Name: "pod-" + site, UID: types.UID("uid-" + site), Annotations: map[string]string{v1alpha1.AnnotationSpecHash: "h"},
			},
			Spec: corev1.PodSpec{NodeName: "node"},
		}
		if round != "" {
			p.Annotations[v1alpha1.AnnotationKeyringRound] = round
		}
		return p
	}
	wanted := func() *appsv1.Deployment {
		return &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Annotations: map[string]string{v1alpha1.AnnotationSpecHash: "h"}}}
	}
	g.s = &scope.Scope{
		Group: group, Key: scopetest.Key, Now: time.Date(2026, 11, 27, 12, 0, 0, 0, time.UTC), Again: time.Hour, Known: true,
		Pods:        map[string]*corev1.Pod{"b": pod("b", ""), "c": pod("c", "3")},
		Deployments: map[string]*appsv1.Deployment{"b": wanted(), "c": wanted()},
		Provisioned: map[string]bool{"a": true, "b": true, "c": true},
		// The reports are of a time at which all has been calm for long, whatever the clock of the test is.
		Facts: scope.GroupFacts{Sites: map[string]scope.SiteFacts{
			"b": {PodUID: "uid-b", ReportedAt: time.Now().Add(time.Hour), Keyring: &wire.KeyringReport{Sealed: true, Digest: "of b"}},
			"c": {PodUID: "uid-c", ReportedAt: time.Now().Add(time.Hour), Keyring: &wire.KeyringReport{Digest: "two"}},
		}},
	}
	g.Port = goingPort{g.rest, g}
	return g
}

// keyring changes the status of c's keyring.
func (g *going) keyring(change func(*v1alpha1.SiteKeyringStatus)) {
	for i := range g.group.Status.EncryptionAtRest.Sites {
		if st := &g.group.Status.EncryptionAtRest.Sites[i]; st.Name == "c" {
			change(st)
		}
	}
}

// seal has c sealed with what is in escrow, in another pod.
func (g *going) seal() {
	g.keyring(func(st *v1alpha1.SiteKeyringStatus) {
		st.Phase, st.Work, st.Round, st.SeedVersion, st.SeedDigest = v1alpha1.KeyringSealed, "", 0, 0, ""
	})
	delete(g.s.Pods["c"].Annotations, v1alpha1.AnnotationKeyringRound)
	g.report(&wire.KeyringReport{Sealed: true, Digest: "one"})
}

// report is what the sidecar of c says; nil is nothing.
func (g *going) report(k *wire.KeyringReport) {
	f := g.s.Facts.Sites["c"]
	f.Keyring = k
	g.s.Facts.Sites["c"] = f
}

// bootstrap is how the init container of c is that starts from its keyring.
func (g *going) bootstrap(state corev1.ContainerState) {
	g.s.Pods["c"].Status.InitContainerStatuses = []corev1.ContainerStatus{{Name: render.ContainerBootstrap, State: state}}
}

// neverRan is a container that has not run yet.
var neverRan = corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{}}

// A pod is kept as long as it has, or may have, the only copy of the keyring that reads a volume that stays, and no longer: a site that
// left the specification and a group that is being deleted wait for that.
func TestWhatIsInAPodAlone(t *testing.T) {
	const alone, unsaid, isGone = "is in its pod alone", "its sidecar has not said yet", "is gone, and only its pod has the keyring"
	only := func(versions ...keyring.Version) func(*going) { return func(g *going) { g.escrow.versions = versions } }
	silent := func(g *going) { g.report(nil) }
	sealed := (*going).seal
	for name, tt := range map[string]struct {
		happens []func(*going)
		want    string
	}{
		"rotated":                  {nil, alone},
		"rotated, and in escrow":   {[]func(*going){only(escrowedAs("c", 1, "one"), escrowedAs("c", 2, "two"))}, ""},
		"rotated, and silent":      {[]func(*going){silent}, unsaid},
		"no pod":                   {[]func(*going){func(g *going) { delete(g.s.Pods, "c") }}, ""},
		"its pod waits for a node": {[]func(*going){func(g *going) { g.s.Pods["c"].Spec.NodeName = "" }}, ""},
		"no data that counts":      {[]func(*going){only(), func(g *going) { g.s.Provisioned["c"] = false }}, ""},
		"nothing came into escrow": {[]func(*going){only()}, alone},
		// A new group of the same name would start it from what is in escrow.
		"cloned just now": {[]func(*going){func(g *going) { g.s.Provisioned["c"] = false }}, alone},
		"sealed":          {[]func(*going){sealed}, ""},
		// Its keyring is in escrow.
		"sealed, and silent": {[]func(*going){sealed, silent}, ""},
		// Nobody decides on phases any more, so its own does not say so.
		"sealed, its Secret gone":             {[]func(*going){sealed, only()}, isGone},
		"sealed, its Secret gone, and silent": {[]func(*going){sealed, only(), silent}, unsaid},
		"sealed, its Secret gone, never began": {[]func(*going){sealed, only(), silent, func(g *going) {
			g.bootstrap(neverRan)
		}}, ""},
		"the Secret of before is gone": {[]func(*going){only(escrowedAs("c", 2, "two")), func(g *going) {
			g.keyring(func(st *v1alpha1.SiteKeyringStatus) { st.SeedVersion, st.SeedDigest = 0, "" })
		}}, ""},
		"silent, and its keyring was lost": {[]func(*going){silent, func(g *going) {
			g.bootstrap(corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{ExitCode: 1, Message: wire.MarkKeyringLost}})
		}}, ""},
		"silent, and never began": {[]func(*going){silent, func(g *going) { g.bootstrap(neverRan) }}, ""},
		// No next pod comes that has to be sealed with what was made in this one.
		"its keys were made in it, and are in escrow": {[]func(*going){func(g *going) {
			g.report(&wire.KeyringReport{Digest: "one"})
			g.keyring(func(st *v1alpha1.SiteKeyringStatus) { st.Rotated, st.SeedVersion, st.SeedDigest = true, 0, "" })
		}}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			g := newGoing(t)
			for _, happens := range tt.happens {
				happens(g)
			}
			why, err := g.inPodAlone(t.Context(), g.s, "c")
			if err != nil || !strings.Contains(why, tt.want) || (why == "") != (tt.want == "") {
				t.Errorf("%q, %v; want %q", why, err, tt.want)
			}
		})
	}
	g := newGoing(t)
	g.escrow.fails["versions c"] = errAway
	if why, err := g.inPodAlone(t.Context(), g.s, "c"); why != "" || !errors.Is(err, errAway) {
		t.Errorf("who could not look says %q, %v", why, err)
	}
}

// TestACopyWhoseVolumeGoesLeavesTheOtherAlone: the keys of b are not risked for a copy on c that is gone when its pod ends.
func TestACopyWhoseVolumeGoesLeavesTheOtherAlone(t *testing.T) {
	replica := scope.SiteFacts{MysqlUp: true, Following: true}
	s := &scope.Scope{Group: scopetest.Group(), Provisioned: map[string]bool{"b": true, "c": true}}
	s.Group.Status.ActiveSite = "a"
	s.Facts.Sites = map[string]scope.SiteFacts{"b": replica, "c": replica}
	for _, terminating := range []bool{false, true} {
		s.Terminating = map[string]bool{"c": terminating}
		if alone(s, "b") != terminating {
			t.Errorf("the claim of c is being deleted %t: b is alone %t", terminating, alone(s, "b"))
		}
	}
}
