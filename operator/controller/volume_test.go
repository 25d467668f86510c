// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/mysql-mfg/mfg/api/v1alpha1"
	"github.com/mysql-mfg/mfg/operator/scope"
	"github.com/mysql-mfg/mfg/operator/work"
)

// onVolume has the sites report their volumes.
func (w *world) onVolume(volumes map[string]string) {
	g, _ := w.facts.Sites("", "")
	for site, id := range volumes {
		f := g.Sites[site]
		f.VolumeID = id
		w.facts.Set(site, f)
	}
}

// volumeWorld is a group that runs on the volumes va, vb and vc, and knows it.
func volumeWorld(t *testing.T) *world {
	t.Helper()
	w := runningWorld(t)
	w.facts.Open("a")
	w.reconcile()
	w.settle("a", "b", "c")
	w.reconcile()
	w.onVolume(map[string]string{"a": "va", "b": "vb", "c": "vc"})
	w.reconcile()
	return w
}

func TestVolumesAreNoted(t *testing.T) {
	w := volumeWorld(t)
	for site, want := range map[string]string{"a": "va", "b": "vb", "c": "vc"} {
		if got := w.site(site).VolumeID; got != want {
			t.Errorf("site %s: %q", site, got)
		}
	}
	// A site that is not heard may still be on its volume.
	w.onVolume(map[string]string{"a": "", "b": "", "c": ""})
	w.reconcile()
	if w.site("b").VolumeID != "vb" || !w.provisioned("b") || !w.provisioned("a") {
		t.Errorf("status %+v", w.group().Status.Sites)
	}
}

// Nobody knows yet that the data on an unknown volume is the group's: it follows nothing, or is not open.
func TestVolumesAreNotNotedTooEarly(t *testing.T) {
	w := runningWorld(t)
	w.facts.Open("a")
	w.reconcile()
	w.settle("a", "b", "c")
	w.facts.Open("")
	w.facts.Set("b", scope.SiteFacts{MysqlUp: true})
	w.onVolume(map[string]string{"a": "va", "b": "vb"})
	w.reconcile()
	if w.site("a").VolumeID != "" || w.site("b").VolumeID != "" {
		t.Errorf("a on %q, b on %q", w.site("a").VolumeID, w.site("b").VolumeID)
	}
}

// A site on a new volume has no data, whatever it was: it must be no candidate before it is cloned.
func TestReplacedVolumeTakesTheMarkAway(t *testing.T) {
	for name, happens := range map[string]func(*world){
		"running": func(*world) {},
		"failover": func(w *world) {
			g := w.group()
			g.Status.Transition = &v1alpha1.Transition{From: "c", To: "a"}
			w.must(w.c.Status().Update(w.ctx, g))
		},
		"MySQL is down": func(w *world) { w.facts.Set("b", scope.SiteFacts{Reachable: true}) },
	} {
		t.Run(name, func(t *testing.T) {
			w := volumeWorld(t)
			happens(w)
			w.onVolume(map[string]string{"b": "new"})
			w.reconcile()
			if w.provisioned("b") || w.site("b").VolumeID != "vb" || w.said.Count(v1alpha1.ReasonSiteVolumeReplaced) != 1 {
				t.Errorf("provisioned %v on %q, events %v", w.provisioned("b"), w.site("b").VolumeID, w.said.List)
			}
			if !w.provisioned("a") || !w.provisioned("c") {
				t.Errorf("status %+v", w.group().Status.Sites)
			}
			w.reconcile()
			if w.site("b").VolumeID != "vb" || w.said.Count(v1alpha1.ReasonSiteVolumeReplaced) != 1 {
				t.Errorf("on %q, events %v", w.site("b").VolumeID, w.said.List)
			}
			w.ended("b", work.Outcome{Verdict: work.VerdictAdopt, Message: "cloned", Cloned: true, Volume: "new"})
			w.reconcile()
			if !w.provisioned("b") || w.site("b").VolumeID != "new" {
				t.Errorf("after the clone: provisioned %v on %q", w.provisioned("b"), w.site("b").VolumeID)
			}
		})
	}
}

func TestReplacedVolumeIsClonedOnlyWhenTheMarkIsOff(t *testing.T) {
	w := volumeWorld(t)
	w.r.runner.Lead(t.Context())
	w.mayClone()
	w.onVolume(map[string]string{"b": "new"})
	w.reconcile()
	if w.r.Work.Jobs() != 0 {
		t.Error("the clone began before the mark was off")
	}
	w.reconcile()
	if w.r.Work.Jobs() != 1 {
		t.Errorf("%d jobs", w.r.Work.Jobs())
	}
	w.r.runner.Wait()
}

// The volume was replaced while the job ran: what it saw says nothing about the new one.
func TestAJobsOutcomeIsOfItsVolume(t *testing.T) {
	w := volumeWorld(t)
	w.onVolume(map[string]string{"b": "new"})
	w.reconcile()
	w.ended("b", work.Outcome{Verdict: work.VerdictAdopt, Message: "cloned", Cloned: true, Volume: "new"})
	w.onVolume(map[string]string{"b": "newer"})
	w.reconcile()
	if w.site("b").VolumeID != "new" {
		t.Errorf("on %q", w.site("b").VolumeID)
	}
	w.reconcile()
	if w.provisioned("b") {
		t.Error("a volume that nobody looked at passes for the group's data")
	}
}

// The active site's data is gone. Whoever notes the new volume as the group's data opens an empty site.
func TestReplacedVolumeOfTheActiveSiteIsLeftToAPerson(t *testing.T) {
	for name, open := range map[string]string{"closed": "", "open": "a"} {
		t.Run(name, func(t *testing.T) {
			w := volumeWorld(t)
			w.facts.Open(open)
			w.onVolume(map[string]string{"a": "new"})
			w.reconcile()
			w.reconcile()
			if w.site("a").VolumeID != "va" || !w.provisioned("a") {
				t.Errorf("provisioned %v on %q", w.provisioned("a"), w.site("a").VolumeID)
			}
			if w.said.Count(v1alpha1.ReasonActiveVolumeReplaced) != 1 || w.said.Count(v1alpha1.ReasonSiteVolumeReplaced) != 0 {
				t.Errorf("events %v", w.said.List)
			}
			// Another site took over: now this one is as any other.
			w.monitorStatus("b", 2)
			w.facts.Open("b")
			w.reconcile()
			if w.provisioned("a") || w.site("a").VolumeID != "va" {
				t.Errorf("after failover: provisioned %v on %q", w.provisioned("a"), w.site("a").VolumeID)
			}
			// And is not marked again by a role that it gets without the data.
			w.monitorStatus("a", 3)
			w.facts.Open("a")
			w.reconcile()
			if w.provisioned("a") || w.site("a").VolumeID != "va" {
				t.Errorf("active again: provisioned %v on %q", w.provisioned("a"), w.site("a").VolumeID)
			}
		})
	}
}

// TestTheFirstVolumeIsNotedBeforeItIsOpenedI12: the poll loop waits for it. What is seen while the gate is closed is noted again,
// because nothing was acknowledged on it yet; once the gate was passed nothing is.
func TestTheFirstVolumeIsNotedBeforeItIsOpenedI12(t *testing.T) {
	w := runningWorld(t)
	w.facts.Closed("a")
	w.status(func(s *v1alpha1.MysqlFailoverGroupStatus) {
		for i := range s.Sites {
			s.Sites[i].Provisioned = false
		}
	})
	step := func(to string, passed bool) {
		w.status(func(s *v1alpha1.MysqlFailoverGroupStatus) {
			s.Transition = &v1alpha1.Transition{Kind: v1alpha1.FailoverBootstrap, To: to}
			if passed {
				s.Transition.GatePassedAt = ptr.To(metav1.NowMicro())
			}
		})
		w.reconcile()
	}
	w.onVolume(map[string]string{"a": "va", "b": "vb"})
	step("b", false)
	if got := w.site("a").VolumeID + w.site("b").VolumeID; got != "" {
		t.Errorf("another site is opened: %q", got)
	}
	for _, seen := range []string{"va", "new"} {
		w.onVolume(map[string]string{"a": seen})
		step("a", false)
		if w.site("a").VolumeID != seen || w.provisioned("a") || w.site("b").VolumeID != "" {
			t.Errorf("I12: on %s: %+v", seen, w.group().Status.Sites)
		}
	}
	w.onVolume(map[string]string{"a": "newer"})
	step("a", true)
	if w.site("a").VolumeID != "new" || w.provisioned("a") {
		t.Errorf("I12: noted anew although it may be open: %+v", w.group().Status.Sites)
	}
}

// I12: a site that lost its mark to a clone that has not begun, and is promoted by order, was ordered for what is on its volume.
func TestAnOrderedSiteKeepsTheNameOfItsVolume(t *testing.T) {
	for kind, want := range map[v1alpha1.FailoverKind]string{v1alpha1.FailoverForced: "vb", v1alpha1.FailoverBootstrap: "new"} {
		w := volumeWorld(t)
		w.status(func(s *v1alpha1.MysqlFailoverGroupStatus) {
			s.ActiveSite = "b"
			s.Transition = &v1alpha1.Transition{Kind: kind, To: "b", From: "a"}
			for i := range s.Sites {
				s.Sites[i].Provisioned = s.Sites[i].Name != "b"
			}
		})
		w.facts.Closed("b")
		w.onVolume(map[string]string{"b": "new"})
		w.reconcile()
		if got := w.site("b").VolumeID; got != want {
			t.Errorf("I12: %s: its volume is noted as %q, want %q", kind, got, want)
		}
	}
}
