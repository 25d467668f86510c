// SPDX-License-Identifier: Apache-2.0

package clone

import (
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mysql-mfg/mfg/internal/mysql"
	"github.com/mysql-mfg/mfg/operator/scope/scopetest"
	"github.com/mysql-mfg/mfg/operator/work/worktest"
)

func copying(data, estimate int64) mysql.CloneStatus {
	return mysql.CloneStatus{State: cloneInProgress, Stages: []mysql.CloneStage{
		{Stage: "DROP DATA", State: cloneCompleted}, {Stage: "FILE COPY", State: cloneInProgress, Data: data, Estimate: estimate},
		{Stage: "PAGE COPY", State: cloneNotStarted},
	}}
}

func TestProgress(t *testing.T) {
	began := time.Date(2026, 5, 1, 12, 0, 0, 0, time.UTC)
	p := &pace{source: "a", began: began}
	steps := []struct {
		after time.Duration
		last  mysql.CloneStatus
		want  string
	}{
		{0, mysql.CloneStatus{State: cloneInProgress, Stages: []mysql.CloneStage{{Stage: "DROP DATA", State: cloneInProgress}}}, "a DROP DATA 0% -"},
		{10 * time.Second, copying(0, 1000), "a FILE COPY 0% -"},
		{20 * time.Second, copying(0, 1000), "a FILE COPY 0% -"},
		{110 * time.Second, copying(333, 1000), "a FILE COPY 30% 210"},
		{210 * time.Second, copying(1000, 1000), "a FILE COPY 100% -"},
		{220 * time.Second, copying(2000, 1000), "a FILE COPY 100% -"},
	}
	for _, step := range steps {
		got := p.progress(step.last, began.Add(step.after))
		eta := "-"
		if got.ETASeconds != nil {
			eta = fmt.Sprint(*got.ETASeconds)
		}
		if text := fmt.Sprintf("%s %s %d%% %s", got.Source, got.Stage, got.Percent, eta); text != step.want || !got.StartedAt.Time.Equal(began) {
			t.Errorf("after %s: %s, want %s", step.after, text, step.want)
		}
	}
}

// A clone of an hour, looked at every second, is a handful of writes.
func TestProgressIsToldRarely(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		pl := newPlant(t, history, "")
		defer pl.end(t)
		b := pl.servers["10.0.0.1:33062"]
		inner := worktest.Completes(set(history), time.Hour, nil)
		b.OnClone = func(s *worktest.Server) error {
			err := inner(s)
			go func() {
				for i := range int64(3599) {
					s.With(func(s *worktest.Server) {
						if s.Last.State == cloneInProgress {
							s.Last = copying(i, 3600)
						}
					})
					time.Sleep(time.Second)
				}
			}()
			return err
		}
		pl.p.begin(scopetest.Group(), "b", order{})
		pl.result(t, "b")
		if n := len(pl.shown); n < 15 || n > 25 {
			t.Errorf("told %d times", n)
		}
		for i, p := range pl.shown {
			if i > 1 && p.Percent-pl.shown[i-1].Percent != 5 {
				t.Errorf("step %d: %d%% after %d%%", i, p.Percent, pl.shown[i-1].Percent)
			}
		}
		if last := pl.shown[len(pl.shown)-1]; last.ETASeconds == nil || *last.ETASeconds > 200 || last.Source != "a" {
			t.Errorf("the last: %+v", last)
		}
	})
}
