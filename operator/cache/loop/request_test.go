// SPDX-License-Identifier: Apache-2.0

package loop

import (
	"context"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mysql-mfg/mfg/api/v1alpha1"
	"github.com/mysql-mfg/mfg/operator/cache/engine"
)

// A move that a person asked for and that fails is answered, and not begun again: each time it leads the Service to a replica.
func TestAFailedMoveIsAnsweredAndNotBegunAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, nil)
		w.passes(4)
		begun := w.neverTakesOver()
		g := w.group()
		g.Annotations = map[string]string{v1alpha1.AnnotationPromoteCache: "west", v1alpha1.AnnotationPromoteCache + "-id": "7"}
		if err := w.c.Update(t.Context(), g); err != nil {
			t.Fatal(err)
		}
		moves := w.look(20 * time.Second)
		g = w.group()
		if last := g.Status.LastRequest(v1alpha1.RequestPromoteCache); last == nil || last.Outcome != v1alpha1.RequestFailed || last.ID != "7" || len(g.Annotations) != 0 {
			t.Errorf("answer %+v, left %v", last, g.Annotations)
		}
		if got := w.traffic(); moves != 1 || *begun == 0 || !slices.Equal(got, []string{"east"}) || g.Status.Cache.Transition != nil {
			t.Errorf("%d moves, traffic %v, status %+v", moves, got, g.Status.Cache)
		}
	})
}

// neverTakesOver has every take-over fail at once, and counts them.
func (w *world) neverTakesOver() *int {
	n := 0
	w.loops.TakeOver = func(context.Context, Engine, Engine) error {
		n++
		return engine.ErrNotTaken
	}
	return &n
}

// look runs one look of the loop, and counts the moves away from the master.
func (w *world) look(d time.Duration) (moves int) {
	w.t.Helper()
	began := ""
	for end := time.Now().Add(d); time.Now().Before(end); {
		next, _ := w.l.pass(w.t.Context())
		if t := w.l.durable.Transition; t != nil && t.From == w.l.durable.ActiveSite && t.StartedAt.String() != began {
			began, moves = t.StartedAt.String(), moves+1
		}
		time.Sleep(max(next, shortestPause))
	}
	return moves
}

// What was decided and did not become durable answers nobody: another leader may have made it come otherwise.
func TestNothingIsAnsweredBeforeItIsDurable(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, nil)
		w.passes(4)
		w.neverTakesOver()
		g := w.group()
		g.Annotations = map[string]string{v1alpha1.AnnotationPromoteCache: "west", v1alpha1.AnnotationPromoteCache + "-id": "7"}
		if err := w.c.Update(t.Context(), g); err != nil {
			t.Fatal(err)
		}
		w.passes(1)
		g = w.group()
		g.Status.Cache.Transition = nil
		if err := w.c.Status().Update(t.Context(), g); err != nil {
			t.Fatal(err)
		}
		time.Sleep(3 * time.Second)
		w.passes(1)
		if last := w.group().Status.LastRequest(v1alpha1.RequestPromoteCache); last != nil || w.l.loaded {
			t.Errorf("answer %+v, and what stands is read again: %t", last, !w.l.loaded)
		}
	})
}
