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
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/mysql-mfg/mfg/api/v1alpha1"
	"github.com/mysql-mfg/mfg/api/wire"
	"github.com/mysql-mfg/mfg/internal/mysql"
	"github.com/mysql-mfg/mfg/operator/authority"
	"github.com/mysql-mfg/mfg/operator/failover"
)

// stage is a group with three sites, each with a pod and a MySQL, for effects to be carried out on. West replicates.
type stage struct {
	*loop
	group   *v1alpha1.MysqlFailoverGroup
	api     *apiServer
	side    *sidecars
	access  *sqlAccess
	servers map[string]*sqlServer
	seen    failover.Snapshot
}

func newStage(t *testing.T) *stage {
	t.Helper()
	s := &stage{group: &v1alpha1.MysqlFailoverGroup{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "orders"}}, side: &sidecars{reports: map[string]wire.Report{}},
		servers: map[string]*sqlServer{}}
	s.loop = testLoop(t, s.side, nil)
	s.api = &apiServer{group: s.group}
	s.access = &sqlAccess{servers: s.servers, source: mysql.Source{Host: "source", Port: 3306, User: "mfg_replication", Password: "secret", Serial: 4}}
	s.m.Client, s.m.Access = s.api, s.access
	s.seen = failover.Snapshot{Policy: failover.Policy{FenceTimeout: time.Second}, Status: failover.Durable{Epoch: 3}}
	for _, site := range []string{"east", "south", "west"} {
		s.servers[site] = startSQLServer(t)
		pod := podOf(site, site+"-1", "n1", site)
		s.api.pods = append(s.api.pods, pod)
		link := &siteLink{}
		link.become(&pod)
		t.Cleanup(link.close)
		s.sites[site] = link
		s.side.reports[site+":8090"] = wire.Report{Site: site, PodUID: site + "-1", Answered: true, Writable: true, Message: "told why"}
		s.seen.Sites = append(s.seen.Sites, failover.Site{Name: site, MySQL: failover.MySQL{Direct: true, Retrieved: someSet}})
	}
	s.servers["west"].source, s.seen.Sites[2].MySQL.ReplicaHost = "source", "source"
	s.authority.Set(statement("west", 3, true), nil, time.Now())
	return s
}

// do carries effects out.
func (s *stage) do(t *testing.T, effects ...failover.Effect) error {
	t.Helper()
	s.looked = time.Now()
	err := s.perform(t.Context(), s.group, s.seen, failover.Decision{Effects: effects})
	s.m.done.Wait()
	return err
}

var (
	drained  = []string{"KILL 7", "STOP REPLICA IO_THREAD", "START REPLICA SQL_THREAD", "wait"}
	detached = []string{boundWaits, "STOP REPLICA IO_THREAD", "STOP REPLICA SQL_THREAD", "RESET REPLICA ALL"}
	fenced   = []string{"SET SESSION lock_wait_timeout = 1", "SET GLOBAL offline_mode = ON", "SET GLOBAL super_read_only = ON"}
)

// boundWaits is what keeps mysqld from waiting for ever.
const boundWaits = "SET SESSION lock_wait_timeout = 2, GLOBAL rpl_stop_replica_timeout = 2"

const following = "CHANGE REPLICATION SOURCE TO SOURCE_HOST = 'source', SOURCE_PORT = 3306"

// followed is what a server is told that is to follow another one.
func followed(t *testing.T, s *sqlServer) bool {
	t.Helper()
	told := s.heard()
	return len(told) > 1 && strings.HasPrefix(told[len(told)-2], following) && told[len(told)-1] == "START REPLICA"
}

// TestEffectsAreCarriedOutInOrderI1I8: the first that fails ends them, but a replica that cannot be attached keeps no other from it.
func TestEffectsAreCarriedOutInOrderI1I8(t *testing.T) {
	s := newStage(t)
	if err := s.do(t, failover.Drain{Site: "west"}, failover.Detach{Site: "west"}, failover.Follow{Site: "south", Source: "west"}); err != nil {
		t.Fatal(err)
	}
	s.servers["west"].was(t, "drained and detached", append(slices.Clone(drained), detached...)...)
	if !followed(t, s.servers["south"]) || s.sites["south"].has("west") != 4 {
		t.Errorf("south does not follow, or has password %d", s.sites["south"].has("west"))
	}
	if err := s.do(t, failover.Drain{Site: "north"}, failover.Detach{Site: "west"}, failover.Follow{Site: "east", Source: "west"}); err == nil || !strings.Contains(err.Error(), "drain north") {
		t.Errorf("a drain that failed: %v", err)
	}
	s.servers["west"].was(t, "I8: what was not drained is not detached")
	s.servers["east"].was(t, "nothing goes on after a failure")
	s.servers["east"].refuse = "CHANGE REPLICATION"
	s.servers["south"].source = ""
	err := s.do(t, failover.Follow{Site: "east", Source: "west"}, failover.Follow{Site: "south", Source: "west"})
	if err == nil || !strings.Contains(err.Error(), "follow east -> west") || strings.Contains(err.Error(), "secret") {
		t.Errorf("one of two failed: %v", err)
	}
	if !followed(t, s.servers["south"]) || s.sites["east"].has("west") != 0 {
		t.Error("one bad replica keeps the other detached, or passes for one that has the password")
	}
	s.access.err = errors.New("no password")
	if err := s.do(t, failover.Follow{Site: "south", Source: "west"}); !errors.Is(err, s.access.err) || len(s.servers["south"].heard()) > 0 {
		t.Errorf("without a password: %v", err)
	}
	s.access.err = nil
	if err := s.do(t, failover.Follow{Site: "north", Source: "west"}); err == nil {
		t.Error("there is no such site")
	}
	s.sites["south"].close()
	s.access.err = errors.New("no way")
	if err := s.onSite(t.Context(), s.group, "south", func(context.Context, *mysql.DB) error { return nil }); !errors.Is(err, s.access.err) {
		t.Errorf("without a connection: %v", err)
	}
}

// TestAReplicaThatHangsKeepsNoOtherDetached: one whose applier is busy for hours answers no statement. Another that comes after it is attached.
func TestAReplicaThatHangsKeepsNoOtherDetached(t *testing.T) {
	s := newStage(t)
	hung := s.servers["east"]
	hung.do(func() {
		hung.held, hung.reached, hung.goOn = "CHANGE REPLICATION", make(chan struct{}), make(chan struct{})
	})
	performed := make(chan error)
	go func() {
		performed <- s.do(t, failover.Follow{Site: "east", Source: "west"}, failover.Follow{Site: "south", Source: "west"})
	}()
	<-hung.reached
	for told := []string{}; len(told) == 0 || told[len(told)-1] != "START REPLICA"; {
		select {
		case err := <-performed:
			t.Fatalf("it waited for east, and south was told %q: %v", told, err)
		case <-time.After(time.Millisecond):
			told = append(told, s.servers["south"].heard()...)
		}
	}
	close(hung.goOn)
	if err := <-performed; err != nil {
		t.Error(err)
	}
}

// TestADrainStopsAtTheFirstFailureI8: what was not stopped still receives, and what was not started applies nothing.
func TestADrainStopsAtTheFirstFailureI8(t *testing.T) {
	for refused, want := range map[string][]string{
		"":                              drained,
		"SELECT PROCESSLIST_ID":         drained[1:],
		"STOP REPLICA":                  drained[:1],
		"START REPLICA":                 drained[:2],
		"SELECT WAIT_FOR_EXECUTED_GTID": drained[:3],
	} {
		s := newStage(t)
		s.servers["west"].refuse = refused
		err := s.do(t, failover.Drain{Site: "west"})
		if fails := len(want) < 3 || len(want) == 3 && want[0] == drained[0]; (err != nil) != fails {
			t.Errorf("I8: %q fails: %v", refused, err)
		}
		s.servers["west"].was(t, "I8: "+refused, want...)
	}
	s := newStage(t)
	s.sites["west"].close()
	s.access.err = errors.New("no way")
	if err := s.do(t, failover.Drain{Site: "west"}); !errors.Is(err, s.access.err) {
		t.Errorf("I8: without a connection: %v", err)
	}
	s.seen.Sites = append(s.seen.Sites, failover.Site{Name: "north"})
	if err := s.do(t, failover.Drain{Site: "north"}); err == nil {
		t.Error("I8: there is no connection to north")
	}
	s.seen.Sites = s.seen.Sites[:2]
	if err := s.do(t, failover.Drain{Site: "west"}); err == nil || errors.Is(err, s.access.err) {
		t.Errorf("I8: west was not seen: %v", err)
	}
}

// TestDrainsOfASiteDoNotOverlapI8: one may go on beside the loop when the next begins. Together, two that end a delay would stop the receiver
// and the applier before one of them changes the source, and MySQL removes the relay logs then.
func TestDrainsOfASiteDoNotOverlapI8(t *testing.T) {
	s := newStage(t)
	reached, goOn := make(chan struct{}), make(chan struct{})
	s.servers["west"].do(func() {
		s.servers["west"].held, s.servers["west"].reached, s.servers["west"].goOn = "STOP REPLICA", reached, goOn
	})
	west, _ := s.seen.Site("west")
	var both sync.WaitGroup
	both.Go(func() { _ = s.drainLink(t.Context(), s.group, s.sites["west"], west) })
	<-reached
	both.Go(func() {
		if err := s.drain(t.Context(), s.group, s.seen, "west"); err != nil {
			t.Errorf("I8: the second drain: %v", err)
		}
	})
	if s.sites["west"].draining.TryLock() {
		t.Error("I8: a second drain may begin in the middle of the first")
		s.sites["west"].draining.Unlock()
	}
	goOn <- struct{}{}
	<-reached
	s.servers["west"].was(t, "I8: the first drain was over when the second stopped the receiver", append(slices.Clone(drained), drained[0])...)
	goOn <- struct{}{}
	both.Wait()
	s.servers["west"].was(t, "I8: the second drain", drained[1:]...)
}

// TestOnlyAReaderOfTheNextActiveSiteIsCut: what is only read from keeps its sessions, and so does a site that may be open by now.
func TestOnlyAReaderOfTheNextActiveSiteIsCut(t *testing.T) {
	for name, tc := range map[string]struct {
		statement wire.Statement
		want      []string
	}{
		"about to be opened":   {statement("west", 3, true), []string{"KILL 7", "wait"}},
		"let open already":     {statement("west", 3, false), []string{"wait"}},
		"another is to open":   {statement("east", 3, true), []string{"wait"}},
		"another one is open":  {statement("east", 3, false), []string{"wait"}},
		"of a later operation": {statement("west", 4, true), []string{"KILL 7", "wait"}},
	} {
		s := newStage(t)
		s.authority = testAuthority(t)
		s.authority.Set(tc.statement, nil, time.Now())
		if err := s.do(t, failover.Apply{Site: "west", Set: someSet}); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		s.servers["west"].was(t, name, tc.want...)
	}
}

// TestAnAnnouncementReachesEverybodyI2: the statement goes to every pod, the old active site is fenced by SQL too, and the target drained.
func TestAnAnnouncementReachesEverybodyI2(t *testing.T) {
	s := newStage(t)
	s.servers["east"].superReadOnly = false
	pending := podOf("north", "north-1", "", "")
	s.api.pods = append(s.api.pods, pending)
	before := time.Now()
	if err := s.do(t, failover.Announce{Fence: []string{"east", "nobody"}, Drain: "west"}); err != nil {
		t.Fatal(err)
	}
	same(t, "I2: told", []string{"east:8090", "south:8090", "west:8090"}, slices.Sorted(maps.Keys(s.side.told)))
	for addr, told := range s.side.told {
		if len(told) != 1 || told[0] == "" {
			t.Errorf("I2: %s was told %q", addr, told)
		}
	}
	s.servers["east"].was(t, "I1: fenced", fenced...)
	s.servers["west"].was(t, "drained", drained...)
	s.servers["south"].was(t, "it has no part in it")
	earlier := map[string]*failover.SiteMemory{"south": {FencedBySQL: failover.SQLFence{Epoch: 2}}}
	s.memory.Sites = earlier
	s.takeFences()
	f := s.memory.Of("east").FencedBySQL
	if f.Epoch != 3 || f.PodUID != "east-1" || f.At.Before(before) || f.At.After(time.Now()) || s.memory.Of("south").FencedBySQL.Epoch != 2 || len(earlier) != 1 {
		t.Errorf("I1: proofs %+v; what an explanation reads: %v", s.memory.Sites, earlier)
	}
	delete(s.memory.Sites, "east")
	if s.takeFences(); len(s.memory.Sites) != 1 {
		t.Error("a proof is taken twice")
	}
	if !s.sites["east"].fencing.TryLock() {
		t.Error("I1: a fence that is over goes on")
	}
	s.servers["east"].superReadOnly = false
	if err := s.do(t, failover.Announce{Fence: []string{"east"}}); err != nil {
		t.Fatal(err)
	}
	s.servers["east"].was(t, "it is being fenced already")
}

// TestWhatAnAnnouncementLeavesOut: who cannot be reached, and what is nothing to drain.
func TestWhatAnAnnouncementLeavesOut(t *testing.T) {
	for name, change := range map[string]func(*failover.MySQL){
		"it was not asked":      func(m *failover.MySQL) { m.Direct = false },
		"it follows nobody":     func(m *failover.MySQL) { m.ReplicaHost = "" },
		"there is no such site": nil,
	} {
		s := newStage(t)
		if change == nil {
			s.seen.Sites = s.seen.Sites[:2]
		} else {
			change(&s.seen.Sites[2].MySQL)
		}
		if err := s.do(t, failover.Announce{Drain: "west"}); err != nil {
			t.Error(err)
		}
		s.servers["west"].was(t, name)
	}
	s := newStage(t)
	s.authority = authority.New()
	if err := s.do(t, failover.Announce{Fence: []string{"east"}}); !errors.Is(err, wire.ErrNoStatement) {
		t.Errorf("I2: an epoch that cannot be told is not acted on: %v", err)
	}
	s.servers["east"].was(t, "I2: nothing was told")
	s.seen.Status.Epoch = 0
	s.servers["east"].superReadOnly = false
	if err := s.do(t, failover.Announce{Fence: []string{"east"}}); err != nil || len(s.side.told) > 0 {
		t.Errorf("before the first epoch: %v, told %v", err, s.side.told)
	}
	s.servers["east"].was(t, "before the first epoch a stray writer is fenced all the same", fenced...)
	s.sites["south"].close()
	s.access.err = errors.New("no way")
	if err := s.do(t, failover.Announce{Fence: []string{"south"}}); err != nil {
		t.Error(err)
	}
	if s.takeFences(); s.memory.Of("south").FencedBySQL.PodUID != "" {
		t.Error("I1: who cannot be reached is proven to be fenced")
	}
}

// TestWhatProvesAFenceBySQLI1: that it was read back, after all went well, on the pod that was asked.
func TestWhatProvesAFenceBySQLI1(t *testing.T) {
	shut := mysql.FenceResult{ReadBack: mysql.Status{SuperReadOnly: true}}
	if !isProven(shut, nil) || isProven(shut, errors.New("the fence was lifted")) || isProven(mysql.FenceResult{}, nil) {
		t.Error("I1: it takes something else for a proof")
	}
	for name, tc := range map[string]struct {
		meanwhile func(*stage)
		want      bool
	}{
		"nothing happened":  {func(*stage) {}, true},
		"it cannot be read": {func(s *stage) { s.servers["east"].refuse = "SELECT @@GLOBAL" }, false},
		"another pod came":  {func(s *stage) { s.sites["east"].podUID = "east-2" }, false},
	} {
		s := newStage(t)
		s.access.hook = func() { tc.meanwhile(s) }
		s.fence(t.Context(), s.group, s.sites["east"], failoverFence{site: "east", epoch: 3})
		if _, has := s.fenced.Load("east"); has != tc.want {
			t.Errorf("I1: %s: proven %t", name, has)
		}
	}
}

// TestADeadSiteDoesNotHoldAnAnnouncementUp: what takes longer goes on beside the loop, and so does what is said to a site that was silent.
func TestADeadSiteDoesNotHoldAnAnnouncementUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		answers := failover.Sidecar{Answered: true}
		for name, tc := range map[string]struct {
			hang        bool
			east        failover.Sidecar
			waits, ends time.Duration
		}{
			"all answer":                        {false, answers, 0, 0},
			"one does not answer any more":      {true, answers, announceTimeout, 3 * time.Second},
			"one that was silent answers again": {false, failover.Sidecar{}, 0, 0},
			"one stays silent":                  {true, failover.Sidecar{}, 0, 3 * time.Second},
		} {
			side := &hanging{hang: tc.hang}
			l := testLoop(t, side, nil)
			l.m.Client = &apiServer{group: &v1alpha1.MysqlFailoverGroup{}, pods: []corev1.Pod{podOf("east", "a", "n1", "1"), podOf("west", "b", "n2", "2")}}
			l.authority.Set(statement("east", 3, false), nil, time.Now())
			began := time.Now()
			seen := failover.Snapshot{
				Policy: failover.Policy{FenceTimeout: 2 * time.Second},
				Sites:  []failover.Site{{Name: "east", Sidecar: tc.east}, {Name: "west", Sidecar: answers}},
			}
			err := l.announce(t.Context(), &v1alpha1.MysqlFailoverGroup{}, seen, failover.Announce{})
			if took := time.Since(began); took != tc.waits || err != nil {
				t.Errorf("%s: it took %s: %v", name, took, err)
			}
			l.m.done.Wait()
			if took := time.Since(began); took != tc.ends {
				t.Errorf("%s: the last one was given up after %s", name, took)
			}
		}
	})
}

// hanging is a Pusher of which one site never answers.
type hanging struct{ hang bool }

func (h *hanging) PushActiveSite(ctx context.Context, addr string, _ wire.ActiveSite) (wire.Answer, error) {
	if h.hang && addr == "1:8090" {
		<-ctx.Done()
	}
	return wire.Answer{}, ctx.Err()
}

// TestOnlyASiteThatSaysSoIsOpen: its pod is marked as the primary after that, and nobody else's.
func TestOnlyASiteThatSaysSoIsOpen(t *testing.T) {
	report := func(change func(*wire.Report)) func(*stage) {
		return func(s *stage) { r := s.side.reports["west:8090"]; change(&r); s.side.reports["west:8090"] = r }
	}
	for name, tc := range map[string]struct {
		change func(*stage)
		want   string
	}{
		"it is open":               {func(*stage) {}, ""},
		"it is not":                {report(func(r *wire.Report) { r.Writable = false }), "told why"},
		"its MySQL was not seen":   {report(func(r *wire.Report) { r.Answered = false }), "told why"},
		"another pod answers":      {report(func(r *wire.Report) { r.PodUID = "west-0" }), errOtherPod.Error()},
		"it has no pod":            {func(s *stage) { s.api.pods = s.api.pods[:2] }, "no pod"},
		"its pod has no address":   {func(s *stage) { s.api.pods[2].Status.PodIP = "" }, "no pod"},
		"nobody signs":             {func(s *stage) { s.authority = authority.New() }, wire.ErrNoStatement.Error()},
		"its pod cannot be marked": {func(s *stage) { s.api.refuse = errors.New("away") }, "away"},
		"nobody answers":           {func(s *stage) { s.side.reports = nil }, "no route"},
	} {
		s := newStage(t)
		tc.change(s)
		err := s.do(t, failover.Open{Site: "west"})
		if tc.want == "" && err != nil || tc.want != "" && (err == nil || !strings.Contains(err.Error(), tc.want)) {
			t.Errorf("%s: %v", name, err)
		}
		if marked := len(s.api.labelled) > 0; marked != (tc.want == "" || tc.want == "away") {
			t.Errorf("%s: marked %v", name, s.api.labelled)
		}
	}
}

// TestWhereThePrimaryServicePoints: at the pod that has the role, or that is about to get it.
func TestWhereThePrimaryServicePoints(t *testing.T) {
	role, plain := selector("orders", "west", v1alpha1.RolePrimary), selector("orders", "west", "")
	more := maps.Clone(role)
	more["mine"] = "too"
	if len(plain) != 3 || len(role) != 4 || role[v1alpha1.LabelName] != v1alpha1.NameMySQL || plain[v1alpha1.LabelName] != v1alpha1.NameMySQL || role[v1alpha1.LabelRole] != v1alpha1.RolePrimary || role[v1alpha1.LabelSite] != "west" {
		t.Errorf("with a role %v, without %v", role, plain)
	}
	for name, tc := range map[string]struct{ before, want map[string]string }{
		"there already":           {role, role},
		"by a planned failover":   {plain, plain},
		"at another site":         {selector("orders", "east", v1alpha1.RolePrimary), role},
		"at another one, planned": {selector("orders", "east", ""), role},
		"at less than that":       {more, role},
		"nowhere":                 {nil, role},
		"by an older operator":    {former(role), role},
		"and a planned failover":  {former(plain), plain},
	} {
		s := newStage(t)
		s.api.selected = tc.before
		if err := s.do(t, failover.Select{Site: "west"}); err != nil {
			t.Error(err)
		}
		same(t, name, tc.want, s.api.selected)
	}
	s := newStage(t)
	s.api.refuse = errors.New("away")
	if err := s.do(t, failover.Select{Site: "west"}); err != nil {
		t.Errorf("the Service holds the database up: %v", err)
	}
}
