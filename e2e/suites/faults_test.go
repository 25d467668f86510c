// SPDX-License-Identifier: Apache-2.0

//go:build lab

package suites

import (
	"context"
	"fmt"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/mysql-mfg/mfg/api/v1alpha1"
	"github.com/mysql-mfg/mfg/e2e/demo/stage"
	"github.com/mysql-mfg/mfg/e2e/writer/journal"
)

// lease is leaseTimeout's default, with which the suites' groups run.
const lease = 20 * time.Second

// tooLong is when a pause is no longer a slow machine but a group that does not carry on. How long each fault takes is
// measured by `make bench-failover`, not judged here.
const tooLong = 90 * time.Second

// story is one fault on the active site of a group under load.
type story struct {
	fault stage.Fault
	// replaces is true if the site must have another pod afterwards.
	replaces bool
}

// survive plays a story: the role moves or stays as it must, in time, with never two writers, and what is missing is
// what the group's own record says.
func survive(t *testing.T, s story) (stage.Verdict, stage.Testimony) {
	t.Helper()
	g, before := whole(t)
	w := witnesses(t, g)
	site := before.Status.ActiveSite
	old, err := g.Pod(t.Context(), site)
	if err != nil {
		t.Fatal(err)
	}
	sleep(t, 3*time.Second)
	at, err := g.Break(t.Context(), s.fault, site)
	if err != nil {
		t.Fatal(err)
	}
	// While the old pod is ending, the role may come back to it, if the other site cannot take it, and move once more.
	if s.replaces {
		awaitOtherPod(t, g, site, old.UID)
	}
	if err := w.AwaitRecovery(t.Context(), s.fault, 2*time.Minute); err != nil {
		t.Fatal(err)
	}
	sleep(t, 2*time.Second)
	if err := w.StopService(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := g.Undo(t.Context(), s.fault, site); err != nil {
		t.Fatal(err)
	}
	after, err := g.Get(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	moved := after.Status.ActiveSite != site
	if moved {
		if _, err := g.AwaitExactLoss(t.Context(), comeBack); err != nil {
			t.Error(err)
		}
		// For a while longer: now that the old site is back is when it could write.
		sleep(t, 3*time.Second)
	}
	v, testimony := judge(t, w, at)
	if moved && !s.fault.MayMove {
		t.Errorf("the role moved from %s to %s", v.From, v.To)
	}
	if v.Pause.Length() > tooLong {
		t.Errorf("clients waited %.2f s, want at most %s", v.Pause.Length().Seconds(), tooLong)
	}
	checkLoss(t, g, v)
	return v, testimony
}

// awaitOtherPod waits until a site's pod is not the one that it was: where the group was whole all the time, or is whole
// again, only that tells whether anything happened at all.
func awaitOtherPod(t *testing.T, g *stage.Group, site string, old types.UID) {
	t.Helper()
	if err := stage.Poll(t.Context(), comeBack, "another pod of "+site, func(ctx context.Context) error {
		pod, err := g.Pod(ctx, site)
		if err == nil && pod.UID == old {
			err = fmt.Errorf("pod %s is still there", pod.Name)
		}
		return err
	}); err != nil {
		t.Error(err)
	}
}

func checkLoss(t *testing.T, g *stage.Group, v stage.Verdict) {
	t.Helper()
	if len(v.Records) == 0 && len(v.Missing) > 0 {
		t.Errorf("%d acknowledged rows are missing though nothing failed over", len(v.Missing))
	}
	for _, r := range v.Records {
		if r.From == r.To {
			continue
		}
		if err := g.CheckLoss(t.Context(), r, v.Missing); err != nil {
			t.Error(err)
		}
		if r.To == "south" {
			t.Error("south is dr-only and was promoted")
		}
	}
}

func fault(t *testing.T, name string) stage.Fault {
	t.Helper()
	f, err := stage.FaultNamed(name)
	if err != nil {
		t.Fatal(err)
	}
	return f
}

func TestKilledNode(t *testing.T) {
	v, _ := survive(t, story{fault: fault(t, "node-kill")})
	if len(v.Records) != 1 {
		t.Errorf("%d failovers are recorded, want one", len(v.Records))
	}
}

// The case for which leases exist: the site is cut off from everybody who could tell it anything, while its clients
// still reach it. It must stop by itself, before the other site begins. What it took meanwhile is lost, and counted.
func TestCutOffNodeStopsBeforeTheOtherStarts(t *testing.T) {
	v, testimony := survive(t, story{fault: fault(t, "node-cut")})
	if v.Margin <= 0 || len(v.Changes) == 0 {
		t.Errorf("margin = %s", v.Margin)
	}
	var old, refused int
	for _, j := range testimony.Direct {
		for _, c := range j.Commits {
			if c.Site == v.From {
				old++
			}
		}
		for _, s := range j.States {
			if s.Server.Site == v.From && s.Reason == readOnly {
				refused++
			}
		}
	}
	if old == 0 || refused == 0 {
		t.Errorf("the direct writer got %d commits and %d refusals as read-only from %s: it was not there to see the fence", old, refused, v.From)
	}
	lostRowsAreCounted(t, v.From)
}

func TestForceDeletedPod(t *testing.T) {
	survive(t, story{fault: fault(t, "pod-force-delete"), replaces: true})
}

// mysqld dies alone. It restarts in place, and nobody fails over: a restart loses nothing. The time that it has is longer than usual, since
// on a busy machine a restart takes more than the default of five seconds, and then a failover is right.
func TestKilledMysqldComesBackByItself(t *testing.T) {
	g, before := whole(t)
	grace := before.Spec.Failover.CrashGrace
	patient := func(d metav1.Duration) func(*v1alpha1.MysqlFailoverGroupSpec) {
		return func(spec *v1alpha1.MysqlFailoverGroupSpec) { spec.Failover.CrashGrace = d }
	}
	if err := setSpec(t.Context(), g, patient(metav1.Duration{Duration: 30 * time.Second})); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := setSpec(context.WithoutCancel(t.Context()), g, patient(grace)); err != nil {
			t.Error(err)
		}
	})
	v, testimony := survive(t, story{fault: fault(t, "mysqld-kill")})
	if len(v.Records) != 0 || v.From != v.To {
		t.Errorf("records = %+v, %s -> %s: nothing may fail over", v.Records, v.From, v.To)
	}
	if len(v.Missing) != 0 {
		t.Errorf("%d acknowledged rows are missing after a restart in place", len(v.Missing))
	}
	if len(journal.Unknowns(testimony.All()...)) == 0 {
		t.Log("no writer was in the middle of a row when mysqld died")
	}
}

// A replica's mysqld dies: it comes back read-only and attached, and the active site never notices.
func TestKilledReplicaComesBackFenced(t *testing.T) {
	g, before := whole(t)
	w := witnesses(t, g)
	victim := replicas(before)[0]
	at, err := g.Break(t.Context(), fault(t, "mysqld-kill"), victim)
	if err != nil {
		t.Fatal(err)
	}
	sleep(t, 2*time.Second)
	if err := stage.Poll(t.Context(), time.Minute, "mysqld of "+victim, func(ctx context.Context) error {
		_, err := g.RootSQL(ctx, victim, "SELECT 1")
		return err
	}); err != nil {
		t.Fatal(err)
	}
	if got := query(t, g, victim, "SELECT @@super_read_only"); got != "1" {
		t.Errorf("super_read_only = %s", got)
	}
	if _, err := g.AwaitReady(t.Context(), time.Minute); err != nil {
		t.Error(err)
	}
	v, testimony := judge(t, w, at)
	undisturbed(t, v, testimony)
}
