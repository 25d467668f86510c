// SPDX-License-Identifier: Apache-2.0

package clone

import (
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mysql-mfg/mfg/api/v1alpha1"
	"github.com/mysql-mfg/mfg/internal/mysql"
	"github.com/mysql-mfg/mfg/operator/scope/scopetest"
	"github.com/mysql-mfg/mfg/operator/work"
	"github.com/mysql-mfg/mfg/operator/work/worktest"
)

func TestStalled(t *testing.T) {
	began := time.Date(2026, 5, 1, 12, 0, 0, 0, time.UTC)
	flushing := mysql.CloneStatus{State: cloneInProgress, Stages: []mysql.CloneStage{
		{Stage: "DROP DATA", State: cloneCompleted}, {Stage: "FILE COPY", State: cloneCompleted, Data: 1000, Estimate: 1000},
		{Stage: "FILE SYNC", State: cloneInProgress},
	}}
	another := copying(10, 1000)
	another.Began = "2026-05-01 18:00:00"
	var g growth
	for _, step := range []struct {
		after time.Duration
		last  mysql.CloneStatus
		says  string
	}{
		{0, mysql.CloneStatus{State: cloneNotStarted}, ""},
		{quietPatience - time.Second, mysql.CloneStatus{State: cloneNotStarted}, ""},
		{quietPatience, mysql.CloneStatus{State: cloneNotStarted}, "no progress for 2h0m0s (stage: none yet)"},
		{3 * time.Hour, copying(0, 1000), ""},
		{3*time.Hour + copyPatience - time.Second, copying(0, 1000), ""},
		{3*time.Hour + copyPatience, copying(0, 1000), "no progress for 30m0s (stage: FILE COPY)"},
		{4 * time.Hour, copying(500, 1000), ""},
		{4*time.Hour + copyPatience - time.Second, copying(499, 1000), ""}, // less is no progress
		{4*time.Hour + copyPatience, copying(500, 1000), "stage: FILE COPY"},
		{4*time.Hour + copyPatience, copying(501, 1000), ""},
		{5 * time.Hour, flushing, ""}, // another stage is progress
		{5*time.Hour + copyPatience, flushing, ""},
		{5*time.Hour + quietPatience, flushing, "stage: FILE SYNC"},
		{5*time.Hour + quietPatience, another, ""}, // another clone
	} {
		if got := g.look(step.last, began.Add(step.after)); (got == "") != (step.says == "") || !strings.Contains(got, step.says) {
			t.Errorf("after %s: %q", step.after, got)
		}
	}
}

// stuck is a clone that copies a little, and then nothing more, for ever.
func stuck(s *worktest.Server) error {
	s.With(func(s *worktest.Server) { s.Last, s.Cancelled = copying(10, 1000), false })
	return nil
}

// A clone that makes no progress is cancelled, even if its server says that it still runs. Others wait for its slot.
func TestACloneThatComesNoFurtherIsCancelled(t *testing.T) {
	for name, tc := range map[string]struct {
		// never has the statement not return, deaf has the server take no notice of a KILL.
		never, deaf, resumed bool
		within               time.Duration
	}{
		"stuck":                     {within: copyPatience + time.Minute},
		"stuck, resumed":            {resumed: true, within: copyPatience + time.Minute},
		"stuck, deaf":               {deaf: true, within: copyPatience + returnTimeout + time.Minute},
		"the statement hangs":       {never: true, within: copyPatience + returnTimeout + time.Minute},
		"the statement hangs, deaf": {never: true, deaf: true, within: copyPatience + returnTimeout + time.Minute},
	} {
		synctest.Test(t, func(t *testing.T) {
			pl := newPlant(t, history, "")
			b := pl.servers["10.0.0.1:33062"]
			forever := make(chan struct{})
			b.Deaf, b.OnClone = tc.deaf, func(s *worktest.Server) error {
				err := stuck(s)
				if tc.never {
					<-forever
				}
				return err
			}
			if tc.resumed {
				_ = stuck(b)
			}
			began := time.Now()
			pl.p.begin(scopetest.Group(), "b", order{})
			o := pl.result(t, "b")
			if took := time.Since(began); o.Verdict != work.VerdictWait || !o.Failed || !strings.Contains(o.Message, "no progress for 30m0s") || took < copyPatience || took > tc.within {
				t.Errorf("%s: after %s: %+v", name, took, o)
			}
			if pl.said.Count(v1alpha1.ReasonSiteCloneFailed) != 1 || len(pl.p.slots.share.held) > 0 {
				t.Errorf("%s: said %v, clones %v", name, pl.said.List, pl.p.slots.share.held)
			}
			close(forever)
			pl.end(t)
		})
	}
}

// A clone of hours that comes further is left alone.
func TestASlowCloneIsNotCancelled(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		pl := newPlant(t, history, "")
		defer pl.end(t)
		b := pl.servers["10.0.0.1:33062"]
		inner := worktest.Completes(set(history), 3*time.Hour, nil)
		b.OnClone = func(s *worktest.Server) error {
			err := inner(s)
			go func() {
				for i := range int64(9) {
					s.With(func(s *worktest.Server) { s.Last = copying(i, 1000) })
					time.Sleep(20 * time.Minute)
				}
			}()
			return err
		}
		pl.p.begin(scopetest.Group(), "b", order{})
		if o := pl.result(t, "b"); o.Verdict != work.VerdictAdopt || !o.Cloned || strings.Contains(strings.Join(b.Calls, ", "), "cancel") {
			t.Errorf("outcome %+v, calls %v", o, b.Calls)
		}
	})
}
