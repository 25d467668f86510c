// SPDX-License-Identifier: Apache-2.0

package monitor

import (
	"context"
	"crypto/ed25519"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/mysql-mfg/mfg/api/v1alpha1"
	"github.com/mysql-mfg/mfg/api/wire"
	"github.com/mysql-mfg/mfg/operator/authority"
	"github.com/mysql-mfg/mfg/operator/failover"
	"github.com/mysql-mfg/mfg/operator/signing"
)

// pushes is a Pusher that answers with a fixed report and counts.
type pushes struct {
	report wire.Report
	count  int
}

func (p *pushes) PushActiveSite(context.Context, string, wire.ActiveSite) (wire.Answer, error) {
	p.count++
	return wire.Answer{Report: p.report}, nil
}

// noWork is a LongWork without any.
type noWork struct{}

func (noWork) Leaving(string, string, string) (string, bool) { return "", false }

func (noWork) Busy(string, string, string) (string, bool) { return "", false }
func (noWork) Windows(string, string) []wire.Window       { return nil }

// reader is an API server that knows one group.
type reader struct {
	client.Reader
	group *v1alpha1.MysqlFailoverGroup
	err   error
}

func (r reader) Get(_ context.Context, _ client.ObjectKey, obj client.Object, _ ...client.GetOption) error {
	if group, ok := obj.(*v1alpha1.MysqlFailoverGroup); ok && r.err == nil {
		*group = *r.group
	}
	return r.err
}

func testLoop(t *testing.T, push Pusher, live client.Reader) *loop {
	t.Helper()
	m := New(Options{Push: push, Live: live, Keys: &signing.Keys{Live: live, Namespace: "mfg-system"}, LongWork: noWork{}, Log: slog.New(slog.DiscardHandler)})
	l := newLoop(m, types.NamespacedName{Namespace: "shop", Name: "orders"}, func() {})
	l.authority = testAuthority(t)
	l.signer.authority = l.authority
	return l
}

func testAuthority(t *testing.T) *authority.Authority {
	t.Helper()
	_, private, err := ed25519.GenerateKey(nil)
	if err != nil {
		t.Fatal(err)
	}
	a := authority.New()
	a.SetSigner(func(s wire.Statement) (wire.Signed, error) { return wire.Sign(private, s) })
	a.SetSites([]string{"east", "south", "west"})
	return a
}

func statement(active string, epoch int64, hold bool) wire.Statement {
	return wire.Statement{Namespace: "shop", Group: "orders", ActiveSite: active, Epoch: epoch, Hold: hold}
}

// TestOnlyTheReportOfThePodThatWasMeantCounts covers I12: an address can belong to another pod by now.
func TestOnlyTheReportOfThePodThatWasMeantCounts(t *testing.T) {
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{UID: "pod-1"}, Status: corev1.PodStatus{PodIP: "10.0.0.1"}}
	for name, c := range map[string]struct {
		report wire.Report
		want   bool
	}{
		"the pod that was meant":    {wire.Report{Site: "east", PodUID: "pod-1"}, true},
		"another site's pod":        {wire.Report{Site: "west", PodUID: "pod-1"}, false},
		"an older pod of the site":  {wire.Report{Site: "east", PodUID: "pod-0"}, false},
		"somebody without identity": {wire.Report{}, false},
	} {
		l := testLoop(t, &pushes{report: c.report}, nil)
		if got := l.client.push(t.Context(), nil, asking{pod, "east", ""}).Answered; got != c.want {
			t.Errorf("I12: %s: counts %t, want %t", name, got, c.want)
		}
	}
}

func begun(epoch int64) failover.Decision {
	return failover.Decision{Persist: true, Hold: true, Effects: []failover.Effect{failover.Announce{Drain: "west"}},
		Status: failover.Durable{Epoch: epoch, ActiveSite: "west", Transition: &failover.Transition{To: "west", From: "east"}}}
}

// TestNothingIsDoneBeforeItIsDurable covers I2: if the epoch cannot be persisted, the old statement stands, on hold, and
// nobody hears of the new one.
func TestNothingIsDoneBeforeItIsDurable(t *testing.T) {
	group := &v1alpha1.MysqlFailoverGroup{ObjectMeta: metav1.ObjectMeta{UID: "u"}}
	overtaken := group.DeepCopy()
	overtaken.Status.Epoch, overtaken.Status.ActiveSite = 9, "south"
	recreated := group.DeepCopy()
	recreated.UID, recreated.Status.Epoch, recreated.Status.ActiveSite = "other", 3, "east"
	for name, live := range map[string]reader{
		"the API server is away":          {err: errors.New("away")},
		"somebody else changed the epoch": {group: overtaken},
		"the group is another one":        {group: recreated},
	} {
		push := &pushes{}
		l := testLoop(t, push, live)
		l.durable, l.loaded = failover.Durable{Epoch: 3, ActiveSite: "east"}, true
		l.authority.Set(statement("east", 3, false), nil, time.Now())
		if err := l.carryOut(t.Context(), group, failover.Snapshot{Status: l.durable}, begun(4)); err == nil {
			t.Errorf("I2: %s: no error", name)
		}
		s := l.authority.Statement()
		if s.Epoch != 3 || s.ActiveSite != "east" || !s.Hold || push.count != 0 {
			t.Errorf("I2: %s: statement %+v after %d pushes; want epoch 3 on hold, none", name, s, push.count)
		}
		if l.loaded {
			t.Errorf("I9: %s: the loop goes on with what it knew", name)
		}
	}
}

// TestAFrozenProcessDoesNotAnswer covers I4: a process that slept while another became the leader answers nobody, also
// after its heart beats again.
func TestAFrozenProcessDoesNotAnswer(t *testing.T) {
	l := testLoop(t, &pushes{}, nil)
	l.authority.Set(statement("east", 3, false), nil, time.Now())
	l.m.running = t.Context()
	l.m.loops[l.key] = l
	answer := func() error {
		_, err := l.m.Answer(wire.Ask{Namespace: "shop", Group: "orders", Site: "east", Nonce: "n"})
		return err
	}
	l.m.pulse.Beat(time.Now())
	if err := answer(); err != nil {
		t.Fatalf("a steady process does not answer: %v", err)
	}
	l.m.pulse = authority.Pulse{}
	l.m.pulse.Beat(time.Now().Add(-9 * time.Second))
	if err := answer(); !errors.Is(err, wire.ErrNotLeading) {
		t.Errorf("I4: a frozen process answers: %v", err)
	}
	l.m.pulse.Beat(time.Now())
	if err := answer(); !errors.Is(err, wire.ErrNotLeading) {
		t.Errorf("I4: a process that was just frozen answers: %v", err)
	}
	l.m.pulse = authority.Pulse{}
	for _, ago := range []time.Duration{23 * time.Second, 13 * time.Second, 6 * time.Second, 0} { // it stood still until 13 s ago
		l.m.pulse.Beat(time.Now().Add(-ago))
	}
	if err := answer(); err != nil {
		t.Errorf("a process that still leads after it was frozen does not answer: %v", err)
	}
}

// TestASiteThatLeftTheSpecStaysInSight covers I4: its pod could still vouch.
func TestASiteThatLeftTheSpecStaysInSight(t *testing.T) {
	group := &v1alpha1.MysqlFailoverGroup{}
	group.Spec.Sites = []v1alpha1.Site{{Name: "west", Role: v1alpha1.PrimaryCandidate}}
	group.Status.Sites = []v1alpha1.SiteStatus{{Name: "south"}, {Name: "west"}}
	durable := failover.Durable{Transition: &failover.Transition{From: "east", To: "west"}}
	if all := sitesOf(group, failover.Durable{Transition: &failover.Transition{To: "west"}}, nil); len(all) != 2 || all[0].Name != "south" {
		t.Errorf("at the first opening in sight are %+v; want south and west", all)
	}
	var got []string
	for _, site := range sitesOf(group, durable, map[string][]*corev1.Pod{"north": {}}) {
		if site.Name != "west" && !site.Removed {
			t.Errorf("I6: %s left the spec and counts as in it", site.Name)
		}
		got = append(got, site.Name)
	}
	if !slices.Equal(got, []string{"east", "north", "south", "west"}) {
		t.Errorf("I4: in sight are %v; want east, north, south and west", got)
	}
}

// TestARemovedSiteMayBeAskedI4: the pods that run tell whom their sidecars ask.
func TestARemovedSiteMayBeAskedI4(t *testing.T) {
	group := &v1alpha1.MysqlFailoverGroup{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "orders"}}
	group.Spec.Sites = []v1alpha1.Site{{Name: "west"}, {Name: "east"}}
	group.Status.Sites = []v1alpha1.SiteStatus{{Name: "north"}, {Name: "south", Provisioned: true}, {Name: "west", Provisioned: true}}
	always := corev1.ContainerRestartPolicyAlways
	asks := func(peers string) *corev1.Pod {
		return &corev1.Pod{Spec: corev1.PodSpec{InitContainers: []corev1.Container{{Name: v1alpha1.ContainerSidecar, RestartPolicy: &always,
			Env: []corev1.EnvVar{{Name: v1alpha1.EnvPeers, Value: peers}}}}}}
	}
	runs := func(pod *corev1.Pod) *corev1.Pod {
		pod.Status.InitContainerStatuses = []corev1.ContainerStatus{{Name: v1alpha1.ContainerSidecar,
			State: corev1.ContainerState{Running: &corev1.ContainerStateRunning{}}}}
		return pod
	}
	elsewhere := func(pod *corev1.Pod) *corev1.Pod { pod.Spec.NodeName = "n2"; return pod }
	const south, east = "mysql-orders-south.shop.svc:8090", "mysql-orders-east.shop.svc:8090"
	for name, c := range map[string]struct {
		pods map[string][]*corev1.Pod
		want bool
	}{
		"no pod at all":          {nil, false},
		"not by the new pods":    {map[string][]*corev1.Pod{"west": {asks(east)}}, false},
		"by a pod that is left":  {map[string][]*corev1.Pod{"west": {asks(east)}, "east": {asks(""), asks(east + "," + south)}}, true},
		"by one that has ended":  {map[string][]*corev1.Pod{"east": {runs(asks("")), asks(south)}}, false},
		"by one that runs":       {map[string][]*corev1.Pod{"east": {runs(asks(south)), asks("")}}, true},
		"by one on another node": {map[string][]*corev1.Pod{"east": {runs(asks("")), elsewhere(asks(south))}}, true},
		"by one that may run":    {map[string][]*corev1.Pod{"east": {asks(""), asks(south + ",mysql-orders-west.shop.svc:8090")}}, true},
		"by itself":              {map[string][]*corev1.Pod{"west": {asks(east)}, "south": {asks(south)}}, false},
	} {
		for _, site := range sitesOf(group, failover.Durable{}, c.pods) {
			if site.Name == "south" && site.Listed != c.want {
				t.Errorf("I4: %s: it is listed: %t", name, site.Listed)
			}
			if site.Provisioned != (site.Name == "south" || site.Name == "west") || site.Name == "west" && site.Listed {
				t.Errorf("I4: %s: %+v", name, site)
			}
		}
	}
}

// TestANewSiteThatNobodyAsksI4: what status says of it, and what is seen of pods, are told apart.
func TestANewSiteThatNobodyAsksI4(t *testing.T) {
	group := &v1alpha1.MysqlFailoverGroup{}
	group.Spec.Sites = []v1alpha1.Site{{Name: "west"}, {Name: "east"}}
	group.Status.Sites = []v1alpha1.SiteStatus{{Name: "west", Provisioned: true}, {Name: "east", Unlisted: true}}
	asked := map[string][]*corev1.Pod{"west": {ptr.To(podOf("west", "w", "n1", "1"))}}
	asked["west"][0].Spec.InitContainers[0].Env = []corev1.EnvVar{{Name: v1alpha1.EnvPeers, Value: "mysql--east..svc:8090"}}
	if sites := sitesOf(group, failover.Durable{}, asked); !sites[0].Listed || sites[1].Listed {
		t.Errorf("I4: somebody asks east: %+v", sites)
	}
	for _, site := range sitesOf(group, failover.Durable{}, nil) {
		if site.Unlisted != (site.Name == "east") || site.Listed {
			t.Errorf("I4: %+v", site)
		}
	}
}

// TestWhoseEscrowSecretIsGone covers I16: only a site that cannot write its keyring depends on the Secret that status names.
func TestWhoseEscrowSecretIsGone(t *testing.T) {
	st := func(phase v1alpha1.KeyringPhase, secret string, work v1alpha1.KeyringWork, stage v1alpha1.KeyringStage) v1alpha1.SiteKeyringStatus {
		return v1alpha1.SiteKeyringStatus{Name: "west", Phase: phase, KeyringSecret: secret, Work: work, Stage: stage}
	}
	for name, c := range map[string]struct {
		status *v1alpha1.EncryptionAtRestStatus
		want   bool
	}{
		"not encrypted":                       {nil, false},
		"another site":                        {&v1alpha1.EncryptionAtRestStatus{Sites: []v1alpha1.SiteKeyringStatus{{Name: "east", Phase: v1alpha1.KeyringFailed, KeyringSecret: "v1"}}}, false},
		"sealed":                              {one(st(v1alpha1.KeyringSealed, "v1", "", "")), false},
		"sealed, its Secret is gone":          {one(st(v1alpha1.KeyringFailed, "v1", "", "")), true},
		"about to be sealed, Secret is gone":  {one(st(v1alpha1.KeyringFailed, "v1", v1alpha1.KeyringBootstrap, v1alpha1.KeyringSealing)), true},
		"about to be sealed":                  {one(st(v1alpha1.KeyringEscrowed, "v1", v1alpha1.KeyringBootstrap, v1alpha1.KeyringSealing)), false},
		"unsealed, its escrow takes too long": {one(st(v1alpha1.KeyringFailed, "v1", v1alpha1.KeyringRotation, "")), false},
		"failed, and never had one":           {one(st(v1alpha1.KeyringFailed, "", "", "")), false},
		"new, its escrow takes too long":      {one(st(v1alpha1.KeyringFailed, "", v1alpha1.KeyringBootstrap, "")), false},
	} {
		group := &v1alpha1.MysqlFailoverGroup{}
		group.Spec.Sites = []v1alpha1.Site{{Name: "west", Role: v1alpha1.PrimaryCandidate}}
		group.Status.EncryptionAtRest = c.status
		if got := sitesOf(group, failover.Durable{}, nil)[0].EscrowMissing; got != c.want {
			t.Errorf("I16: %s: its escrow Secret is missing: %t, want %t", name, got, c.want)
		}
	}
}

func one(st v1alpha1.SiteKeyringStatus) *v1alpha1.EncryptionAtRestStatus {
	return &v1alpha1.EncryptionAtRestStatus{Sites: []v1alpha1.SiteKeyringStatus{st}}
}

// TestWhatAnotherLeaderAnsweredIsNotKnown covers I4 and I9 (simulation, seed 5054): a leader that was deposed, stood still and
// goes on must not count leases from its own last answers.
func TestWhatAnotherLeaderAnsweredIsNotKnown(t *testing.T) {
	moved := &v1alpha1.MysqlFailoverGroup{}
	moved.Status.Epoch, moved.Status.ActiveSite, moved.Status.Transition = 8, "west", &v1alpha1.Transition{Step: v1alpha1.TransitionOpening}
	at := func(epoch int64, active string, step v1alpha1.TransitionStep) failover.Durable {
		return failover.Durable{Epoch: epoch, ActiveSite: active, Transition: &failover.Transition{Step: step}}
	}
	stands := at(8, "west", v1alpha1.TransitionOpening)
	for name, c := range map[string]struct {
		known, tried failover.Durable
		want         bool
	}{
		"what it wrote itself":              {stands, failover.Durable{}, false},
		"what it tried to write":            {at(7, "east", ""), stands, false},
		"what somebody else wrote":          {at(7, "east", ""), at(7, "east", ""), true},
		"of another epoch":                  {at(7, "west", v1alpha1.TransitionOpening), failover.Durable{}, true},
		"of another site":                   {at(8, "east", v1alpha1.TransitionOpening), failover.Durable{}, true},
		"another step":                      {at(8, "west", v1alpha1.TransitionFencing), failover.Durable{}, true},
		"the end of it":                     {failover.Durable{Epoch: 8, ActiveSite: "west"}, failover.Durable{}, true},
		"the first look counts from itself": {failover.Durable{}, failover.Durable{}, false},
	} {
		l := testLoop(t, &pushes{}, reader{group: moved})
		began := time.Now().Add(-time.Hour)
		l.started, l.durable, l.tried, l.loaded = began, c.known, c.tried, false
		if err := l.load(t.Context(), moved); err != nil {
			t.Fatal(err)
		}
		if got := l.started.After(began); got != c.want {
			t.Errorf("I9: %s: counts anew %t, want %t", name, got, c.want)
		}
	}
}

// TestADivergedSiteIsRememberedWhateverElseItIs covers I10 (simulation, seed 3303): it may have been silent, and called that, when
// the operator that found it restarted.
func TestADivergedSiteIsRememberedWhateverElseItIs(t *testing.T) {
	const errant = "aaaaaaaa-0000-0000-0000-000000000001:1-3"
	group := &v1alpha1.MysqlFailoverGroup{}
	group.Status.Sites = []v1alpha1.SiteStatus{{Name: "east", State: v1alpha1.SiteUnreachable, Errant: errant}, {Name: "west", State: v1alpha1.SiteReplica}}
	l := testLoop(t, &pushes{}, reader{group: group})
	if err := l.load(t.Context(), group); err != nil {
		t.Fatal(err)
	}
	if set := l.memory.Of("east").Diverged; set.String() != errant || !l.memory.Of("west").Diverged.IsEmpty() {
		t.Errorf("I10: what is known to have diverged after a restart is %v, %v", set, l.memory.Of("west").Diverged)
	}
}

// TestWhatWakesALoop: a first opening waits for what the controller notes, and what the loop writes itself must not wake it.
func TestWhatWakesALoop(t *testing.T) {
	with := func(change func(*v1alpha1.MysqlFailoverGroup)) *v1alpha1.MysqlFailoverGroup {
		group := &v1alpha1.MysqlFailoverGroup{}
		group.Status.Sites = []v1alpha1.SiteStatus{{Name: "east"}, {Name: "west"}}
		change(group)
		return group
	}
	for name, c := range map[string]struct {
		change func(*v1alpha1.MysqlFailoverGroup)
		want   bool
	}{
		"nothing": {func(*v1alpha1.MysqlFailoverGroup) {}, false},
		"what the loop writes": {func(g *v1alpha1.MysqlFailoverGroup) {
			g.Status.Epoch, g.Status.Sites[0].State = 2, v1alpha1.SitePrimary
		}, false},
		"the specification": {func(g *v1alpha1.MysqlFailoverGroup) { g.Generation = 2 }, true},
		"an order": {func(g *v1alpha1.MysqlFailoverGroup) {
			g.Annotations = map[string]string{v1alpha1.AnnotationForceFailover: "west"}
		}, true},
		"the name of a volume":  {func(g *v1alpha1.MysqlFailoverGroup) { g.Status.Sites[0].VolumeID = "v" }, true},
		"a site that got data":  {func(g *v1alpha1.MysqlFailoverGroup) { g.Status.Sites[1].Provisioned = true }, true},
		"where a clone has got": {func(g *v1alpha1.MysqlFailoverGroup) { g.Status.Sites[1].Clone = &v1alpha1.CloneProgress{Percent: 5} }, false},
	} {
		if got := relevant(with(func(*v1alpha1.MysqlFailoverGroup) {}), with(c.change)); got != c.want {
			t.Errorf("%s wakes: %t", name, got)
		}
	}
}

// TestGroupsHaveTurns: each group has its own moment of the interval, whenever its last poll ended, so that they do not fall into step.
func TestGroupsHaveTurns(t *testing.T) {
	const interval = 2 * time.Second
	now := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	moments := map[time.Duration]bool{}
	for _, name := range []string{"orders", "invoices", "stock", "people"} {
		key := types.NamespacedName{Namespace: "shop", Name: name}
		first := turn(key, interval, now)
		if first <= 0 || first > interval {
			t.Errorf("%s: its turn is in %v", name, first)
		}
		moments[first] = true
		for _, ended := range []time.Duration{time.Millisecond, 300 * time.Millisecond, interval - time.Nanosecond} {
			if next := ended + turn(key, interval, now.Add(first+ended)); next != interval {
				t.Errorf("%s: a poll that took %v is followed by one after %v", name, ended, next)
			}
		}
	}
	if len(moments) != 4 {
		t.Errorf("4 groups have %d moments", len(moments))
	}
}

// TestStatusIsComparedOncePerVersion: a status that somebody changed is found out, also when what is to be said has not changed.
func TestStatusIsComparedOncePerVersion(t *testing.T) {
	l := testLoop(t, &pushes{}, reader{})
	group := &v1alpha1.MysqlFailoverGroup{}
	group.ResourceVersion = "7"
	group.Status.ActiveSite = "east"
	meant := v1alpha1.MysqlFailoverGroupStatus{ActiveSite: "east"}
	for range 2 {
		if !l.stands(group, meant) {
			t.Error("what stands was not recognised")
		}
	}
	group.Status.ActiveSite, group.ResourceVersion = "west", "8"
	if l.stands(group, meant) {
		t.Error("a change by somebody else was not seen")
	}
	group.ResourceVersion, l.said.agreed = "", ""
	group.Status.ActiveSite = "east"
	if !l.stands(group, meant) {
		t.Error("what stands was not recognised")
	}
	if group.Status.ActiveSite = "west"; l.stands(group, meant) {
		t.Error("a group without a version was not compared")
	}
}

// pods is a client that has the pods of a group, and counts who labels them.
type pods struct {
	client.Client
	names   []string
	patched []string
}

func (c *pods) List(_ context.Context, list client.ObjectList, _ ...client.ListOption) error {
	all, _ := list.(*corev1.PodList)
	for _, name := range c.names {
		all.Items = append(all.Items, corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{v1alpha1.LabelSite: name}}})
	}
	return nil
}

func (c *pods) Patch(_ context.Context, obj client.Object, _ client.Patch, _ ...client.PatchOption) error {
	c.patched = append(c.patched, obj.GetName())
	return nil
}

// TestLabelsStayWhileNobodyIsHeard: a poll in which no site answers at all, as after a stall of this process, teaches nothing. What
// must not be evicted is protected all the same: that an escrow Secret is gone is known from elsewhere.
func TestLabelsStayWhileNobodyIsHeard(t *testing.T) {
	now := time.Now()
	s := failover.Snapshot{Now: now, Policy: failover.Policy{Threshold: 3}, Sites: []failover.Site{{Name: "east"}}}
	d := failover.Decision{Memory: failover.Memory{Sites: map[string]*failover.SiteMemory{"east": {SilentPolls: 1, DownSince: now}}}}
	for name, tc := range map[string]struct {
		heard, protected bool
		want             int
	}{
		"it answers":           {heard: true, want: 1},
		"it does not":          {},
		"it is to be kept now": {protected: true, want: 1},
	} {
		l := testLoop(t, &pushes{}, reader{})
		c := &pods{names: []string{"east"}}
		l.m.Client = c
		s.Sites[0].Sidecar.Answered = tc.heard
		d.Views = []failover.View{{Name: "east", Role: v1alpha1.RoleReplica, Protected: tc.protected}}
		l.labels(t.Context(), &v1alpha1.MysqlFailoverGroup{}, s, d)
		if len(c.patched) != tc.want {
			t.Errorf("%s: labelled %v, want %d", name, c.patched, tc.want)
		}
	}
}

// TestHastyPollsAreBounded: one group that is not well is polled four times as often, a thousand are not.
func TestHastyPollsAreBounded(t *testing.T) {
	l := testLoop(t, &pushes{}, reader{})
	p := failover.Policy{PollInterval: time.Hour}
	hasty := 0
	// One whose turn is far away, or it would be polled soon anyway.
	for i := 0; turn(l.key, p.PollInterval, time.Now()) < p.PollInterval/2; i++ {
		l.key.Name = fmt.Sprint("orders", i)
	}
	for range 10 * idlePerSecond {
		if l.next(failover.Decision{Topology: failover.TopologyAllUnreachable}, p, nil) <= p.PollInterval/4 {
			hasty++
		}
	}
	if hasty < idlePerSecond || hasty > 5*idlePerSecond {
		t.Errorf("%d of %d polls were hasty", hasty, 10*idlePerSecond)
	}
	if next := l.next(failover.Decision{Topology: failover.TopologyActiveSilent}, p, nil); next > p.PollInterval/4 {
		t.Errorf("groups where nobody can take over keep one where somebody must from being polled: %v", next)
	}
	hasty = 0
	for range 10 * hastyPerSecond {
		if l.next(failover.Decision{Topology: failover.TopologyActiveSilent}, p, nil) <= p.PollInterval/4 {
			hasty++
		}
	}
	if hasty > 5*hastyPerSecond {
		t.Errorf("%d of %d polls were hasty where somebody must take over", hasty, 10*hastyPerSecond)
	}
	if next := l.next(failover.Decision{Topology: failover.TopologyHealthy}, p, nil); next < p.PollInterval/4 || next > p.PollInterval {
		t.Errorf("a group that is well is polled after %v", next)
	}
}

// TestAMissedTurnIsLeftOut: after this process stood still, groups that are well wait for their next turn, and others are looked at at once.
func TestAMissedTurnIsLeftOut(t *testing.T) {
	l := testLoop(t, &pushes{}, reader{})
	missed := time.Now().Add(-time.Minute)
	l.next(failover.Decision{Topology: failover.TopologyActiveSilent}, failover.Policy{PollInterval: time.Hour}, nil)
	l.await(t.Context(), missed) // or it takes up to an hour
	l.next(failover.Decision{Topology: failover.TopologyHealthy, Next: time.Second}, failover.Policy{PollInterval: time.Hour}, nil)
	l.await(t.Context(), missed)

	l.next(failover.Decision{Topology: failover.TopologyHealthy}, failover.Policy{PollInterval: 24 * time.Hour}, nil)
	over := make(chan struct{})
	go func() {
		l.await(t.Context(), missed)
		close(over)
	}()
	select {
	case <-over:
		t.Error("a missed turn was made up for at once")
	case <-time.After(50 * time.Millisecond):
	}
	l.wakeUp()
	<-over
}
