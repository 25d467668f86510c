// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"strings"
	"testing"
	"time"

	"github.com/mysql-mfg/mfg/api/v1alpha1"
	"github.com/mysql-mfg/mfg/operator/scope"
	"github.com/mysql-mfg/mfg/operator/scope/scopetest"
	"github.com/mysql-mfg/mfg/operator/work"
)

func TestProgressInStatus(t *testing.T) {
	w := runningWorld(t)
	w.facts.Open("a")
	w.reconcile()
	w.settle("a", "b", "c")
	w.reconcile()
	key := scope.SiteKey{Group: scopetest.Key, Site: "b"}
	w.ordered("b", "b")
	job := w.r.Work.Begin(key, func() {})
	job.Hold()
	eta := int64(120)
	job.Advance(v1alpha1.CloneProgress{Source: "a", Stage: "FILE COPY", Percent: 40, ETASeconds: &eta}, time.Now())
	w.reconcile()
	clone := w.site("b").Clone
	if clone == nil || clone.Percent != 40 || clone.Stage != "FILE COPY" || *clone.ETASeconds != 120 || clone.Order != "b" || clone.StartedAt == nil {
		t.Fatalf("status %+v", clone)
	}
	writes := w.writes
	job.Advance(v1alpha1.CloneProgress{Source: "a", Stage: "FILE COPY", Percent: 45}, time.Now())
	if w.reconcile(); w.writes != writes {
		t.Errorf("%d writes within the pause", w.writes-writes)
	}
	job.Finish(work.Outcome{Verdict: work.VerdictAdopt, Message: "cloned", Cloned: true, Order: "b"})
	w.reconcile()
	if w.site("b").Clone != nil || !w.provisioned("b") || w.busy("b") {
		t.Errorf("after it: %+v", w.site("b"))
	}
	if last := w.last(v1alpha1.RequestRecloneSite); !strings.HasPrefix(last, "b: Done (Completed)") {
		t.Errorf("last request %q", last)
	}
}
