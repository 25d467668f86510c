// SPDX-License-Identifier: Apache-2.0

package monitor

import (
	"context"
	"errors"
	"maps"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"

	"github.com/mysql-mfg/mfg/api/v1alpha1"
	"github.com/mysql-mfg/mfg/api/wire"
	"github.com/mysql-mfg/mfg/internal/mysql"
	"github.com/mysql-mfg/mfg/operator/authority"
	"github.com/mysql-mfg/mfg/operator/failover"
)

// sidecars answer by address with the report of their site, and keep what they were told.
type sidecars struct {
	mu      sync.Mutex
	reports map[string]wire.Report
	told    map[string][]wire.Signed
	err     error
}

func (s *sidecars) PushActiveSite(_ context.Context, addr string, push wire.ActiveSite) (wire.Answer, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.told == nil {
		s.told = map[string][]wire.Signed{}
	}
	s.told[addr] = append(s.told[addr], push.Statement)
	r, has := s.reports[addr]
	if !has {
		return wire.Answer{}, errors.New("no route to host")
	}
	return wire.Answer{Report: r}, s.err
}

// busy is work on some sites.
type busy struct {
	noWork
	sites, leaving map[string]string
}

func (b busy) Busy(_, _, site string) (string, bool) { return b.sites[site], b.sites[site] != "" }

func (b busy) Leaving(_, _, site string) (string, bool) {
	return b.leaving[site], b.leaving[site] != ""
}

// podOf is a pod of a site that runs on a node.
func podOf(site, uid, node, ip string) corev1.Pod {
	always := corev1.ContainerRestartPolicyAlways
	return corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: uid, UID: types.UID(uid), Labels: map[string]string{v1alpha1.LabelSite: site}},
		Spec: corev1.PodSpec{NodeName: node, InitContainers: []corev1.Container{{Name: v1alpha1.ContainerSidecar, RestartPolicy: &always,
			Env: []corev1.EnvVar{{Name: v1alpha1.EnvLeaseTimeout, Value: "20s"}}}}},
		Status: corev1.PodStatus{Phase: corev1.PodRunning, PodIP: ip, InitContainerStatuses: []corev1.ContainerStatus{
			{Name: v1alpha1.ContainerSidecar, State: corev1.ContainerState{Running: &corev1.ContainerStateRunning{}}}}},
	}
}

func readyNode(name string) *corev1.Node {
	return &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name, UID: types.UID(name)},
		Status: corev1.NodeStatus{NodeInfo: corev1.NodeSystemInfo{SystemUUID: "s"}, Conditions: []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionTrue}}}}
}

// TestALookSeesWhatThereIs: a site with all its witnesses, one without MySQL, one without a sidecar, one without a pod, and one that
// left the spec.
func TestALookSeesWhatThereIs(t *testing.T) {
	east, west := startSQLServer(t), startSQLServer(t)
	east.superReadOnly, east.executed = false, someSet.String()
	west.source, west.received, west.receiver = siteHost(&v1alpha1.MysqlFailoverGroup{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "orders"}}, "east"), someSet.String(), "ON"
	west.clock, west.delay, west.filtered = "1700000005", "60", true
	group := &v1alpha1.MysqlFailoverGroup{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "orders"}}
	group.Spec.Sites = []v1alpha1.Site{{Name: "west", Priority: 7}, {Name: "east"}, {Name: "south", Role: v1alpha1.DROnly}, {Name: "new"}}
	group.Status.Sites = []v1alpha1.SiteStatus{
		{Name: "east", Node: "n0", Provisioned: true, VolumeID: "v-east"}, {Name: "west", Provisioned: true, VolumeID: "v-other"}, {Name: "south", Provisioned: true},
	}
	api := &apiServer{group: group, nodes: map[string]*corev1.Node{"n1": readyNode("n1"), "n2": readyNode("n2"), "n3": readyNode("n3")}, pods: []corev1.Pod{
		podOf("east", "east-1", "n1", "10.0.0.1"), podOf("west", "west-1", "n2", "10.0.0.2"), podOf("south", "south-1", "n3", "10.0.0.3"),
		podOf("left", "left-1", "n3", "10.0.0.4"),
	}}
	api.nodes["n2"].Spec.Unschedulable = true
	side := &sidecars{reports: map[string]wire.Report{
		"10.0.0.1:8090": {Site: "east", PodUID: "east-1", VolumeID: "v-east", Answered: true, Writable: true},
		"10.0.0.3:8090": {Site: "south", PodUID: "south-1", VolumeID: "v-south", Answered: true, SuperReadOnly: true, OfflineMode: true, ServerUUID: "u",
			GTIDExecuted: someSet.String()},
		"10.0.0.4:8090": {Site: "left", PodUID: "left-1", Answered: true, GTIDExecuted: "?"},
	}}
	l := testLoop(t, side, nil)
	l.m.Client, l.m.LongWork = api, busy{sites: map[string]string{"south": failover.WorkRotation}, leaving: map[string]string{"east": "an update waits"}}
	l.m.Access = &sqlAccess{servers: map[string]*sqlServer{"east": east, "west": west}}
	l.authority.SetSites([]string{"east"})
	l.authority.Set(statement("west", 2, false), nil, time.Now())
	answer(t, l, "east")
	l.authority.Set(statement("east", 3, false), nil, time.Now())
	answer(t, l, "east")
	l.durable = failover.Durable{Epoch: 3, ActiveSite: "east", Transition: &failover.Transition{}, Runs: map[string][]failover.Run{"east": {{UID: "gone", Node: "n9"}}}}
	gone := &siteLink{}
	l.sites["gone"] = gone
	gone.db = openTo(t, east)
	l.fenced.Store("west", failover.SQLFence{Epoch: 3})
	before := time.Now()
	s := l.gather(t.Context(), group)

	run := func(uid, node string) []failover.SeenRun {
		return []failover.SeenRun{{UID: uid, Node: node, Machine: node + "/s", Lease: 20 * time.Second, Started: true}}
	}
	pod := func(uid, node string) failover.Pod {
		return failover.Pod{Exists: true, Name: uid, UID: uid, Node: node, Lease: 20 * time.Second, Runs: run(uid, node)}
	}
	eastPod := pod("east-1", "n1")
	eastPod.Node = "n0"
	same(t, "sites", []failover.Site{
		{Name: "east", Provisioned: true, Pod: eastPod, Leaving: "an update waits", Noted: true,
			Sidecar: failover.Sidecar{Answered: true, Report: side.reports["10.0.0.1:8090"]},
			MySQL:   failover.MySQL{Direct: true, ServerUUID: serverUUID, Version: "9.7.0", Executed: someSet}},
		{Name: "left", Removed: true, Pod: pod("left-1", "n3"), Sidecar: failover.Sidecar{Answered: true, Report: side.reports["10.0.0.4:8090"]}},
		{Name: "new", Pod: failover.Pod{Unplaced: true}},
		{Name: "south", Role: v1alpha1.DROnly, Provisioned: true, Pod: pod("south-1", "n3"), Busy: failover.WorkRotation, Unnoted: true,
			Sidecar: failover.Sidecar{Answered: true, Report: side.reports["10.0.0.3:8090"]},
			MySQL:   failover.MySQL{ServerUUID: "u", SuperReadOnly: true, ReadOnly: true, OfflineMode: true, Executed: someSet}},
		{Name: "west", Priority: 7, Provisioned: true, Pod: pod("west-1", "n2"), Leaving: "node n2 is cordoned",
			MySQL: failover.MySQL{Direct: true, ServerUUID: serverUUID, Version: "9.7.0", ReadOnly: true, SuperReadOnly: true, Retrieved: someSet, Filtered: true, Delayed: true,
				ReplicaOf: "east", ReplicaHost: west.source, IORunning: true, SQLRunning: true, IOError: "cannot connect", SQLError: "a duplicate", IOErrno: 2003}},
	}, s.Sites, cmpopts.IgnoreFields(failover.Sidecar{}, "At"), cmpopts.IgnoreFields(failover.MySQL{}, "LagSeconds"))
	same(t, "what is durable", l.durable, s.Status)
	same(t, "nodes", []string{"n1", "n2", "n3", "n9"}, slices.Sorted(maps.Keys(s.Nodes)))
	if s.Now.Before(before) || s.LeaderSince != l.started || s.Policy.Threshold != 1 {
		t.Errorf("now %s, leader since %s, policy %+v", s.Now, s.LeaderSince, s.Policy)
	}
	if s.Answered["east"].IsZero() || s.Permitted["east"].IsZero() || s.Renewed["east"].IsZero() {
		t.Errorf("I4: what was answered: %v, permitted: %v, renewed: %v", s.Answered, s.Permitted, s.Renewed)
	}
	if l.memory.Of("west").FencedBySQL.Epoch != 3 {
		t.Errorf("what was fenced by SQL: %v", l.memory.Of("west"))
	}
	if told := side.told["10.0.0.2:8090"]; len(told) != 1 || told[0] == "" {
		t.Errorf("west was told %q", told)
	}
	if l.sites["gone"] != nil || gone.db != nil || len(l.sites) != 5 || l.sites["east"] == nil {
		t.Errorf("links to %v", l.sites)
	}
	// The sites of this look are those that an answer counts for: one to a stranger counts for all.
	answer(t, l, "south")
	if after := l.authority.Renewed([]string{"west"}); !after["west"].IsZero() {
		t.Error("I4: south is not known to the authority")
	}
	// Seven seconds by the clocks of two servers that differ by five. How they differ is not known of a slow answer.
	lag := func() float64 { return *s.Sites[4].MySQL.LagSeconds }
	for try := 0; lag() > 3 && try < 100; try++ {
		s = l.gather(t.Context(), group)
	}
	if lag() > 3 {
		t.Errorf("west lags by %v", lag())
	}
	// The same link serves the next look; that process stood still meanwhile is known.
	db := l.sites["east"].db
	l.m.pulse.Beat(time.Now().Add(-time.Hour))
	l.m.pulse.Beat(time.Now())
	if s = l.gather(t.Context(), group); l.sites["east"].db != db || !s.LeaderSince.After(l.started) {
		t.Errorf("I4: leader since %s, which began at %s", s.LeaderSince, l.started)
	}
	l.started = time.Now().Add(time.Minute)
	if s = l.gather(t.Context(), group); !s.LeaderSince.Equal(l.started) {
		t.Error("I9: what was thawed before this loop counts for it")
	}
	// Without a statement the sidecars are asked all the same.
	l.authority = authority.New()
	l.signer.authority = l.authority
	if s = l.gather(t.Context(), group); !s.Sites[0].Sidecar.Answered {
		t.Error("before the first epoch nobody is asked")
	}
	// Who was silent in this look is not waited for long in the next one, if it is the one that is lost.
	for _, site := range s.Sites {
		l.durable.Transition = &failover.Transition{Kind: v1alpha1.FailoverEmergency, From: site.Name, StartedAt: time.Now()}
		want := failover.AskTimeout
		if !site.Reachable() {
			want = failover.LostTimeout
		}
		if got := l.patience(site.Name, failover.Policy{LeaseTimeout: time.Minute}); got != want {
			t.Errorf("%s, which answers: %t, is waited for for %s", site.Name, site.Reachable(), got)
		}
	}
}

func answer(t *testing.T, l *loop, site string) {
	t.Helper()
	if _, err := l.authority.Answer(wire.Ask{Namespace: "shop", Group: "orders", Site: site, Nonce: "n"}, time.Now()); err != nil {
		t.Fatal(err)
	}
}

func openTo(t *testing.T, server *sqlServer) *mysql.DB {
	t.Helper()
	db, err := mysql.Open(mysql.Target{Addr: server.addr, User: "mfg_operator"})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = db.Close() })
	return db
}

// TestALinkLeadsToOnePodI12: what was open to another pod is closed, and what was made for it meanwhile is not kept.
func TestALinkLeadsToOnePodI12(t *testing.T) {
	server := startSQLServer(t)
	open := func(db *mysql.DB) bool { _, err := db.Status(t.Context()); return err == nil }
	at := func(uid, ip string) *corev1.Pod { p := podOf("east", uid, "n1", ip); return &p }
	for name, tc := range map[string]struct {
		next *corev1.Pod
		kept bool
	}{
		"the same pod":          {at("a", "1"), true},
		"another pod":           {at("b", "1"), false},
		"another address of it": {at("a", "2"), false},
	} {
		link, db := &siteLink{}, openTo(t, server)
		link.become(at("a", "1"))
		if link.keep(db, "1") != db {
			t.Fatalf("%s: it is not kept", name)
		}
		link.become(tc.next)
		got, ip := link.current()
		if (got != nil) != tc.kept || open(db) != tc.kept || link.pod() != string(tc.next.UID) || ip != tc.next.Status.PodIP {
			t.Errorf("I12: %s: kept %t, open %t, to pod %s at %s", name, got != nil, open(db), link.pod(), ip)
		}
	}
	link, first, second, other := &siteLink{}, openTo(t, server), openTo(t, server), openTo(t, server)
	link.become(at("a", "1"))
	if link.keep(other, "9") != nil || open(other) {
		t.Error("I12: a connection to another pod is kept")
	}
	if link.keep(first, "1") != first || link.keep(second, "1") != first || open(second) || !open(first) {
		t.Error("of two connections both are kept, or the wrong one")
	}
	if late := openTo(t, server); link.keep(late, "9") != nil || open(late) {
		t.Error("I12: who connected to another pod is given the connection to this one")
	}
	link.close()
	if got, _ := link.current(); got != nil || open(first) {
		t.Error("it stays open")
	}
	link.close()
}

// TestAConnectionIsMadeAnew: after an error with what stands by then, and never to a pod that has been replaced meanwhile (I12).
func TestAConnectionIsMadeAnew(t *testing.T) {
	server := startSQLServer(t)
	access := &sqlAccess{servers: map[string]*sqlServer{"east": server, "west": {}}}
	l := testLoop(t, &pushes{}, nil)
	l.m.Access = access
	link := &siteLink{}
	connect := func() error { _, err := l.client.connection(t.Context(), nil, link, "east"); return err }
	if connect() == nil {
		t.Error("there is no pod")
	}
	link.podIP = "1"
	access.err = errors.New("no password")
	if err := connect(); !errors.Is(err, access.err) {
		t.Errorf("got %v", err)
	}
	access.err = nil
	if _, err := l.client.connection(t.Context(), nil, link, "west"); err == nil || !strings.Contains(err.Error(), "address") {
		t.Errorf("without an address: %v", err)
	}
	access.hook = func() { link.podIP = "2" }
	if err := connect(); err == nil || link.db != nil {
		t.Errorf("I12: the pod changed meanwhile: %v", err)
	}
	access.hook = nil
	if err := connect(); err != nil {
		t.Fatal(err)
	}
	first := link.db
	access.hook = func() { t.Error("a connection that is there is made again") }
	if err := connect(); err != nil {
		t.Error(err)
	}
	if got := l.client.query(t.Context(), nil, link, "east"); got == nil || !got.SuperReadOnly || link.db != first {
		t.Errorf("got %+v", got)
	}
	server.do(func() { server.refuse = "SELECT @@GLOBAL.server_uuid" })
	if got := l.client.query(t.Context(), nil, link, "east"); got != nil || link.db != nil {
		t.Errorf("it failed, and said %+v; kept %t", got, link.db != nil)
	}
	link.podIP = ""
	if got := l.client.query(t.Context(), nil, link, "east"); got != nil {
		t.Errorf("got %+v", got)
	}
	link.close()
}

// TestAPodThatCannotBeAskedIsNotI12, and its link is closed.
func TestAPodThatCannotBeAskedIsNotI12(t *testing.T) {
	server := startSQLServer(t)
	for name, pods := range map[string][]*corev1.Pod{"none": nil, "without an address": {ptr.To(podOf("east", "a", "n1", ""))}} {
		side := &sidecars{}
		l := testLoop(t, side, nil)
		l.m.Client = &apiServer{group: &v1alpha1.MysqlFailoverGroup{}}
		link := &siteLink{podUID: "a", podIP: "1", db: openTo(t, server)}
		site := failover.Site{Name: "east"}
		if seen := l.ask(t.Context(), &v1alpha1.MysqlFailoverGroup{}, question{link: link, pods: pods}, &site); seen != nil || link.db != nil || len(side.told) > 0 {
			t.Errorf("%s: it is asked", name)
		}
	}
}

// TestWhatIsNoReportIsSilence: neither an error nor a report that cannot be one counts for anything (I12).
func TestWhatIsNoReportIsSilence(t *testing.T) {
	r := wire.Report{Site: "east", PodUID: "pod-1", Epoch: 3, LeaseMillis: ptr.To(int64(7)), Anchor: "a", Answered: true}
	long := r
	long.Anchor = strings.Repeat("x", longestName+1)
	for name, tc := range map[string]struct {
		report wire.Report
		err    error
		want   failover.Sidecar
		deaf   failover.Sidecar
	}{
		"a report":    {r, nil, failover.Sidecar{Answered: true, Report: r}, failover.Sidecar{Deaf: true, Report: wire.Report{LeaseMillis: ptr.To(int64(7)), Anchor: "a"}}},
		"an error":    {r, errors.New("no route to host"), failover.Sidecar{}, failover.Sidecar{}},
		"a long name": {long, nil, failover.Sidecar{}, failover.Sidecar{}},
	} {
		l := testLoop(t, &sidecars{reports: map[string]wire.Report{"10.0.0.1:8090": tc.report}, err: tc.err}, nil)
		q := asking{started(false), "east", ""}
		at := cmpopts.IgnoreFields(failover.Sidecar{}, "At")
		same(t, "I12: "+name, tc.want, l.client.push(t.Context(), nil, q), at)
		same(t, "I12: "+name+", of one that takes no statement", tc.deaf, l.client.askDeaf(t.Context(), nil, q), at)
	}
}

// TestWhoIsBelievedOfMySQL: the operator's own look, and the report of the sidecar without it.
func TestWhoIsBelievedOfMySQL(t *testing.T) {
	r := wire.Report{Answered: true, Writable: true, ServerUUID: "u", GTIDExecuted: someSet.String()}
	silent, broken, closed := r, r, r
	silent.Answered, broken.GTIDExecuted, closed.Writable = false, "?", false
	for name, tc := range map[string]struct {
		sidecar failover.Sidecar
		want    failover.MySQL
	}{
		"open":                     {failover.Sidecar{Answered: true, Report: r}, failover.MySQL{ServerUUID: "u", Executed: someSet}},
		"read-only":                {failover.Sidecar{Answered: true, Report: closed}, failover.MySQL{ServerUUID: "u", Executed: someSet, ReadOnly: true}},
		"no sidecar":               {failover.Sidecar{Report: r}, failover.MySQL{}},
		"a sidecar that saw none":  {failover.Sidecar{Answered: true, Report: silent}, failover.MySQL{}},
		"a set that is none":       {failover.Sidecar{Answered: true, Report: broken}, failover.MySQL{}},
		"no set of one without it": {failover.Sidecar{}, failover.MySQL{}},
	} {
		same(t, name, tc.want, merge(nil, tc.sidecar))
	}
	for name, tc := range map[string]struct {
		replica mysql.ReplicaStatus
		want    failover.MySQL
	}{
		"it receives": {mysql.ReplicaStatus{IORunning: true}, failover.MySQL{Direct: true, IORunning: true}},
		"it tries to": {mysql.ReplicaStatus{IOConnecting: true}, failover.MySQL{Direct: true}},
		"it is off":   {mysql.ReplicaStatus{}, failover.MySQL{Direct: true, ReceiverStopped: true}},
	} {
		same(t, name, tc.want, merge(&mysql.Status{Replica: &tc.replica}, failover.Sidecar{}))
	}
	same(t, "no channel", failover.MySQL{Direct: true}, merge(&mysql.Status{}, failover.Sidecar{}))
}

// TestOnWhichVolumeASiteIsI12: a new volume remembers nothing of what was acknowledged, and one without a name says nothing.
func TestOnWhichVolumeASiteIsI12(t *testing.T) {
	group := &v1alpha1.MysqlFailoverGroup{}
	group.Status.Sites = []v1alpha1.SiteStatus{{Name: "east", VolumeID: "e"}, {Name: "new"}, {Name: "west", VolumeID: "w"}}
	for name, tc := range map[string]struct {
		site, volume string
		silent       bool
		want         failover.Site
	}{
		"its own":              {"east", "e", false, failover.Site{Noted: true}},
		"that of another site": {"east", "w", false, failover.Site{OtherVolume: true}},
		"a new site's":         {"new", "n", false, failover.Site{Unnoted: true}},
		"a stranger's":         {"south", "s", false, failover.Site{Unnoted: true}},
		"without a name":       {"new", "", false, failover.Site{}},
		"an old report":        {"east", "x", true, failover.Site{}},
	} {
		site := failover.Site{Name: tc.site, Sidecar: failover.Sidecar{Answered: !tc.silent, Report: wire.Report{VolumeID: tc.volume}}}
		want := tc.want
		want.Name, want.Sidecar = site.Name, site.Sidecar
		compareVolumes(group, &site)
		same(t, "I12: "+name, want, site)
	}
}

// TestWhatTheSpecSays, and what it leaves out.
func TestWhatTheSpecSays(t *testing.T) {
	d := func(seconds int) metav1.Duration {
		return metav1.Duration{Duration: time.Duration(seconds) * time.Second}
	}
	none, lag, lost := d(0), d(9), int64(5)
	group := &v1alpha1.MysqlFailoverGroup{ObjectMeta: metav1.ObjectMeta{Annotations: map[string]string{
		v1alpha1.AnnotationForceFailover: "west", v1alpha1.AnnotationPlannedFailover: "east", v1alpha1.AnnotationPauseUntil: "2026-01-01T12:00:00Z"}}}
	group.Spec.Failover = v1alpha1.FailoverSpec{Mode: v1alpha1.FailoverManual, PollInterval: d(1), Threshold: 4, CrashGrace: d(2), Cooldown: d(3), DrainTimeout: d(4),
		PlannedLagTimeout: d(5), PlannedPauseTimeout: d(6), MaxLostTransactions: &lost, StallTimeout: &none}
	group.Spec.Sidecar.LeaseTimeout, group.Spec.Sidecar.FenceTimeout, group.Spec.MaxReadLag = d(7), d(8), &lag
	s := time.Second
	same(t, "all", failover.Policy{Mode: v1alpha1.FailoverManual, PollInterval: s, Threshold: 4, CrashGrace: 2 * s, Cooldown: 3 * s, DrainTimeout: 4 * s,
		LeaseTimeout: 7 * s, FenceTimeout: 8 * s, MaxLost: &lost, ForceTo: "west", PlannedTo: "east", PlannedLagTimeout: 5 * s, PlannedPauseTimeout: 6 * s,
		PausedUntil: someTime, MaxReadLag: 9 * s}, policy(group))
	same(t, "nothing", failover.Policy{PollInterval: 2 * s, Threshold: 1, LeaseTimeout: 20 * s, FenceTimeout: 2 * s, PlannedLagTimeout: 60 * s, PlannedPauseTimeout: 5 * s,
		StallTimeout: 60 * s}, policy(&v1alpha1.MysqlFailoverGroup{}))
}

// TestOnlyAPodThatIsNotedIsLetOpenI9: were another let open, and gone when the next operator begins, that would not know of it.
func TestOnlyAPodThatIsNotedIsLetOpenI9(t *testing.T) {
	sites := []failover.Site{{Name: "east", Pod: failover.Pod{UID: "east-1"}}, {Name: "west", Pod: failover.Pod{UID: "west-1"}}}
	noted := failover.Durable{Runs: map[string][]failover.Run{"east": {{UID: "east-1"}}, "west": {{UID: "west-0"}}}}
	if diff := cmp.Diff(map[string]string{"east": "east-1"}, podUIDs(sites, noted)); diff != "" {
		t.Errorf("I9: pods that are let open (-want +got):\n%s", diff)
	}
}
