// SPDX-License-Identifier: Apache-2.0

package loop

import (
	"context"
	"crypto/tls"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/mysql-mfg/mfg/api/v1alpha1"
	"github.com/mysql-mfg/mfg/operator/cache"
	"github.com/mysql-mfg/mfg/operator/cache/engine"
)

// opened is an access that gives what it has.
type opened struct {
	passwords        []string
	err, certificate error
}

func (o opened) Cache(context.Context, *v1alpha1.MysqlFailoverGroup, string) ([]string, *tls.Config, error) {
	return o.passwords, nil, o.err
}

func (o opened) CacheCertificate(context.Context, *v1alpha1.MysqlFailoverGroup) ([]byte, error) {
	return nil, o.certificate
}

// outdated is an engine that takes an older password.
type outdatedEngine struct{ *cacheModel }

func (outdatedEngine) Outdated() bool { return true }

func (w *world) see(site string) cache.Pod {
	w.t.Helper()
	s, _ := w.l.gather(w.t.Context(), w.group())
	return s.Pod(site)
}

func (w *world) update(pod *corev1.Pod) {
	w.t.Helper()
	status := pod.Status
	if err := w.c.Update(w.t.Context(), pod); err != nil {
		w.t.Fatal(err)
	}
	pod.Status = status
	if err := w.c.Status().Update(w.t.Context(), pod); err != nil {
		w.t.Fatal(err)
	}
}

// Everything that an engine says and that is remembered of it gets into the snapshot.
func TestWhatIsSeenOfACache(t *testing.T) {
	w := newWorld(t, nil)
	w.see("west")
	w.engine("west").info = engine.Info{Run: "r", Role: v1alpha1.CacheReplica, MasterHost: "orders-cache-east.shop.svc", LinkUp: true, Syncing: true, FailingOver: true, Loading: true, Offset: 7, Keys: 9}
	w.engine("east").info.Replicas = []engine.Replica{{Host: "10.0.0.2", Lag: 5}}
	k := w.l.links["west"]
	k.cutAt, k.offAt, k.onAt = time.Unix(1, 0), time.Unix(2, 0), time.Unix(3, 0)
	pod := w.pod("west")
	pod.Annotations = map[string]string{v1alpha1.AnnotationCacheLeaving: "an update waits"}
	pod.Labels[v1alpha1.LabelCacheRole], pod.Labels[v1alpha1.LabelCacheTraffic] = string(v1alpha1.CacheReplica), v1alpha1.CacheTrafficOn
	w.update(pod)
	want := cache.Pod{Site: "west", Exists: true, Leaving: "an update waits", Reachable: true, Run: "r", Role: v1alpha1.CacheReplica, Following: "east", Linked: true,
		Syncing: true, FailingOver: true, Loading: true, Offset: 7, Lag: 5, Keys: 9, RoleLabel: v1alpha1.CacheReplica, Traffic: true,
		CutAt: time.Unix(1, 0), TrafficOffAt: time.Unix(2, 0), TrafficOnAt: time.Unix(3, 0)}
	if got := w.see("west"); got != want {
		t.Errorf("\n got %+v\nwant %+v", got, want)
	}
	w.engine("east").fails = errAway
	if got := w.see("west"); got.Lag != 0 || got.Following != "east" {
		t.Errorf("what a silent master said before counts: %+v", got)
	}
	if got := w.see("east"); got.Reachable || got.Trouble != errAway.Error() {
		t.Errorf("%+v", got)
	}
}

// A process without a name of its own that began again is taken for silent until its pod's status counts that: it may have none of the keys, and
// under the old name it would pass for the one that had them.
func TestAProcessWithoutANameBeganAgain(t *testing.T) {
	w := newWorld(t, nil)
	e := w.engine("west")
	look := func(uptime int64) cache.Pod { e.info.Run, e.info.Uptime = "", uptime; return w.see("west") }
	for _, uptime := range []int64{0, 100, 100, 101, 60} { // at the last look its clock was set back
		if got := look(uptime); !got.Reachable || got.Run != "pod-west/0" {
			t.Errorf("uptime %d: %+v", uptime, got)
		}
	}
	for _, uptime := range []int64{0, 1, 2} {
		if got := look(uptime); got.Reachable || got.Run != "" || !strings.Contains(got.Trouble, "began again") {
			t.Errorf("it began again, uptime %d: %+v", uptime, got)
		}
	}
	pod := w.pod("west")
	pod.Status.ContainerStatuses = []corev1.ContainerStatus{{RestartCount: 1}}
	w.update(pod)
	if got := look(2); !got.Reachable || got.Run != "pod-west/1" {
		t.Errorf("its restart is counted: %+v", got)
	}
	look(50)
	look(1)
	w.l.links["west"].beganAgain = time.Now().Add(-nameless)
	if got := look(2); !got.Reachable || got.Run != "pod-west/1" {
		t.Errorf("nobody counts it: %+v", got)
	}
	e.info.Run = "a name"
	if got := w.see("west"); !got.Reachable || got.Run != "a name" {
		t.Errorf("an engine with a name: %+v", got)
	}
}

// A pod that cannot be asked, and why.
func TestCachesThatCannotBeAsked(t *testing.T) {
	for _, tc := range []struct {
		name   string
		change func(*world, *corev1.Pod)
		exists bool
		says   string
	}{
		{"well", func(*world, *corev1.Pod) {}, true, ""},
		{"failed", func(_ *world, p *corev1.Pod) { p.Status.Phase = corev1.PodFailed }, false, ""},
		{"ended", func(_ *world, p *corev1.Pod) { p.Status.Phase = corev1.PodSucceeded }, false, ""},
		{"without an address", func(_ *world, p *corev1.Pod) { p.Status.PodIP = "" }, true, "no address yet"},
		{"without a password", func(w *world, _ *corev1.Pod) { w.loops.Access = opened{err: errAway} }, true, errAway.Error()},
		{"without a certificate", func(w *world, _ *corev1.Pod) { w.loops.Access = opened{certificate: errAway} }, true, errAway.Error()},
		{"a password that is not read in time", func(w *world, _ *corev1.Pod) { w.loops.Access = opened{err: context.DeadlineExceeded} }, true, "could not be read in time"},
		{"an older password", func(w *world, _ *corev1.Pod) {
			w.loops.Dial = func(engine.Target) Engine { return outdatedEngine{w.engine("west")} }
			w.l.links["west"].close()
		}, true, "older password"},
		{"without a name of its process", func(w *world, p *corev1.Pod) {
			w.engine("west").info.Run = ""
			p.Status.ContainerStatuses = []corev1.ContainerStatus{{RestartCount: 2}, {RestartCount: 1}}
		}, true, ""},
	} {
		t.Run(tc.name, func(t *testing.T) {
			w := newWorld(t, nil)
			w.see("west")
			pod := w.pod("west")
			tc.change(w, pod)
			w.update(pod)
			got := w.see("west")
			if got.Exists != tc.exists || tc.says == "" != (got.Trouble == "") || !strings.Contains(got.Trouble, tc.says) {
				t.Errorf("%+v", got)
			}
			if open := w.l.links["west"].engine != nil; open != tc.exists {
				t.Errorf("the connection is open: %t", open)
			}
			if tc.name == "without a name of its process" && got.Run != "pod-west/3" {
				t.Errorf("run %q", got.Run)
			}
		})
	}
}

// Sites are those of the specification, in order, and those that left it and have a pod; what was kept of others goes.
func TestSitesThatAreLookedAt(t *testing.T) {
	w := newWorld(t, func(g *v1alpha1.MysqlFailoverGroup) { g.Spec.Sites = []v1alpha1.Site{{Name: "west"}, {Name: "a"}} })
	gone := &counted{}
	w.l.links["south"] = &link{engine: gone}
	s, _ := w.l.gather(t.Context(), w.group())
	var got []string
	for _, p := range s.Pods {
		got = append(got, p.Site)
	}
	if !slices.Equal(got, []string{"a", "east", "west"}) || !s.Pod("east").Removed || s.Pod("west").Removed || s.Pod("a").Exists {
		t.Errorf("%+v", s.Pods)
	}
	if gone.closed != 1 || w.l.links["south"] != nil || w.l.links["west"] == nil {
		t.Errorf("closed %d times, kept %v", gone.closed, w.l.links)
	}
}

// Why a pod is about to go, the first of the reasons that there are.
func TestWhyAPodLeaves(t *testing.T) {
	w := newWorld(t, nil)
	for name, cordoned := range map[string]bool{"well": false, "cordoned": true} {
		if err := w.c.Create(t.Context(), &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: corev1.NodeSpec{Unschedulable: cordoned}}); err != nil {
			t.Fatal(err)
		}
	}
	for _, tc := range []struct{ node, marked, want string }{
		{"", "", ""}, {"unknown", "", ""}, {"well", "", ""}, {"cordoned", "", "node cordoned is cordoned"}, {"cordoned", "an update waits", "an update waits"},
	} {
		pod := cachePod("east", "")
		pod.Spec.NodeName, pod.Annotations = tc.node, map[string]string{v1alpha1.AnnotationCacheLeaving: tc.marked}
		if got := w.l.leaving(t.Context(), pod); got != tc.want {
			t.Errorf("on %q, marked %q: %q, want %q", tc.node, tc.marked, got, tc.want)
		}
		now := metav1.Now()
		if pod.DeletionTimestamp = &now; w.l.leaving(t.Context(), pod) != "pod orders-cache-east-0 is being deleted" {
			t.Error("it is being deleted")
		}
	}
}

// The passwords that an engine took until now are tried after the one in the Secret, if it is the same pod, and not without end.
func TestPasswordsThatAreTried(t *testing.T) {
	w := newWorld(t, nil)
	for _, tc := range []struct {
		name        string
		link        *link
		secret, try []string
	}{
		{"nothing is known", nil, []string{"a"}, []string{"a"}},
		{"it changed", &link{uid: "pod-west", target: engine.Target{Passwords: []string{"b"}}}, []string{"a"}, []string{"a", "b"}},
		{"it did not", &link{uid: "pod-west", target: engine.Target{Passwords: []string{"a"}}}, []string{"a"}, []string{"a"}},
		{"another pod", &link{uid: "other", target: engine.Target{Passwords: []string{"b"}}}, []string{"a"}, []string{"a"}},
		{"very often", &link{uid: "pod-west", target: engine.Target{Passwords: []string{"b", "c", "d", "e"}}}, []string{"a"}, []string{"a", "b", "c", "d"}},
	} {
		w.loops.Access = opened{passwords: tc.secret}
		delete(w.l.links, "west")
		if tc.link != nil {
			w.l.links["west"] = tc.link
		}
		got, err := w.l.targetOf(t.Context(), w.group(), "west", w.pod("west"))
		if err != nil || !slices.Equal(got.Passwords, tc.try) {
			t.Errorf("%s: %v %v", tc.name, got.Passwords, err)
		}
	}
	if hosts := hostsOf(w.group(), "west", cachePod("west", "")); slices.Contains(hosts, "") {
		t.Errorf("a pod without an address is known as %q", hosts)
	}
}

// Only a replica that answers follows somebody: what was known of one before says nothing now.
func TestWhoFollowsWhom(t *testing.T) {
	w := newWorld(t, nil)
	w.l.links = map[string]*link{"west": {info: engine.Info{MasterHost: "orders-cache-east"}}}
	for name, p := range map[string]cache.Pod{
		"silent": {Site: "west", Role: v1alpha1.CacheReplica}, "a master": {Site: "west", Role: v1alpha1.CacheMaster, Reachable: true}, "unknown": {Site: "south", Role: v1alpha1.CacheReplica, Reachable: true},
	} {
		pods := []cache.Pod{{Site: "east", Reachable: true}, p}
		if w.l.nameMasters(w.group(), pods); pods[1].Following != "" {
			t.Errorf("%s: it follows %s", name, pods[1].Following)
		}
	}
	pods := []cache.Pod{{Site: "east", Reachable: true}, {Site: "west", Role: v1alpha1.CacheReplica, Reachable: true}}
	if w.l.nameMasters(w.group(), pods); pods[1].Following != "east" || pods[1].Lag != 0 {
		t.Errorf("%+v", pods[1])
	}
}

// A Valkey hands over to an address that its list of replicas has. One that is not the pod's own was rewritten on the way.
func TestWhomAMasterCanHandOverTo(t *testing.T) {
	own, odd := engine.Replica{Host: "10.0.0.2", Online: true}, engine.Replica{Host: "127.0.0.6", Online: true}
	for _, tc := range []struct {
		name   string
		engine v1alpha1.CacheEngine
		lists  []engine.Replica
		can    bool
	}{
		{"by its address", v1alpha1.CacheValkey, []engine.Replica{odd, own}, true},
		{"by another", v1alpha1.CacheValkey, []engine.Replica{odd}, false},
		{"not online yet", v1alpha1.CacheValkey, []engine.Replica{{Host: "10.0.0.2"}}, false},
		{"no list", v1alpha1.CacheValkey, nil, true},
		{"Dragonfly needs no address", v1alpha1.CacheDragonfly, []engine.Replica{odd}, true},
	} {
		w := newWorld(t, func(g *v1alpha1.MysqlFailoverGroup) { g.Spec.Cache.Engine = tc.engine })
		w.passes(4)
		w.engine("east").info.Replicas = tc.lists
		w.planned()
		w.order = nil
		w.passes(1)
		if moved := slices.Contains(w.order, "take over"); moved != tc.can || slices.Contains(w.order, "route") != tc.can {
			t.Errorf("%s: done %v", tc.name, w.order)
		}
		if said := w.group().Status.Cache.Sites[1].Message; (said == "") != tc.can {
			t.Errorf("%s: status says %q", tc.name, said)
		}
	}
}

// What MySQL does is what it left word of, unless status knows of something later.
func TestWhatMySQLHasDecided(t *testing.T) {
	const planned, emergency = v1alpha1.FailoverPlanned, v1alpha1.FailoverEmergency
	w := newWorld(t, nil)
	ends := func(epoch int64, kind v1alpha1.FailoverKind) []v1alpha1.FailoverRecord {
		return []v1alpha1.FailoverRecord{{Epoch: epoch, Kind: kind}}
	}
	for _, tc := range []struct {
		name   string
		status v1alpha1.MysqlFailoverGroupStatus
		told   *cache.MySQL
		want   cache.MySQL
	}{
		{"nothing was told", v1alpha1.MysqlFailoverGroupStatus{}, nil, cache.MySQL{Active: "east", Epoch: 3}},
		{"it moves", v1alpha1.MysqlFailoverGroupStatus{Transition: &v1alpha1.Transition{Kind: emergency, From: "west"}}, nil, cache.MySQL{Active: "east", Epoch: 3, Moving: true, Kind: emergency, From: "west"}},
		{"told the same", v1alpha1.MysqlFailoverGroupStatus{Transition: &v1alpha1.Transition{Kind: emergency}}, &cache.MySQL{Active: "west", Epoch: 3, Moving: true, Kind: planned}, cache.MySQL{Active: "west", Epoch: 3, Moving: true, Kind: planned}},
		{"told of the next move", v1alpha1.MysqlFailoverGroupStatus{}, &cache.MySQL{Active: "west", Epoch: 4, Moving: true}, cache.MySQL{Active: "west", Epoch: 4, Moving: true}},
		{"told that it moves, and status says that it is over", v1alpha1.MysqlFailoverGroupStatus{Failovers: ends(3, emergency)}, &cache.MySQL{Active: "west", Epoch: 3, Moving: true, Kind: emergency}, cache.MySQL{Active: "east", Epoch: 3, Kind: emergency}},
		{"told before", v1alpha1.MysqlFailoverGroupStatus{}, &cache.MySQL{Active: "west", Epoch: 2, Moving: true}, cache.MySQL{Active: "east", Epoch: 3}},
		{"it has moved", v1alpha1.MysqlFailoverGroupStatus{Failovers: ends(3, planned)}, nil, cache.MySQL{Active: "east", Epoch: 3, Kind: planned}},
		{"it moved before", v1alpha1.MysqlFailoverGroupStatus{Failovers: ends(2, planned)}, nil, cache.MySQL{Active: "east", Epoch: 3}},
		{"told how", v1alpha1.MysqlFailoverGroupStatus{Failovers: ends(3, planned)}, &cache.MySQL{Active: "east", Epoch: 3, Kind: emergency}, cache.MySQL{Active: "east", Epoch: 3, Kind: emergency}},
	} {
		group := w.group()
		group.Status = tc.status
		group.Status.ActiveSite, group.Status.Epoch = "east", 3
		w.l.told.Store(tc.told)
		if got := w.l.mysql(group); got != tc.want {
			t.Errorf("%s: %+v, want %+v", tc.name, got, tc.want)
		}
	}
}

func TestThePolicyOfAGroup(t *testing.T) {
	for _, tc := range []struct {
		name   string
		budget time.Duration
		mode   v1alpha1.FailoverMode
		pause  time.Duration
		want   time.Duration
		held   string
	}{
		{"nothing is said", 0, "", 0, 3 * time.Second, ""},
		{"nonsense", -time.Second, v1alpha1.FailoverAuto, -time.Hour, 3 * time.Second, ""},
		{"a budget", 5 * time.Second, v1alpha1.FailoverAuto, 0, 5 * time.Second, ""},
		{"observed", 0, v1alpha1.FailoverObserve, 0, 3 * time.Second, "spec.failover.mode is Observe"},
		{"paused", 0, v1alpha1.FailoverObserve, time.Hour, 3 * time.Second, "the group is paused until "},
	} {
		group := &v1alpha1.MysqlFailoverGroup{}
		group.Spec.Cache = &v1alpha1.CacheSpec{EmergencyBudget: metav1.Duration{Duration: tc.budget}}
		group.Spec.Failover.Mode = tc.mode
		if tc.pause != 0 {
			group.Annotations = map[string]string{v1alpha1.AnnotationPauseUntil: time.Now().Add(tc.pause).Format(time.RFC3339)}
		}
		if got := policy(group); got.EmergencyBudget != tc.want || (got.Held == "") != (tc.held == "") || !strings.HasPrefix(got.Held, tc.held) {
			t.Errorf("%s: %+v", tc.name, got)
		}
	}
}
