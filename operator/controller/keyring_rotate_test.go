// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/mysql-mfg/mfg/api/v1alpha1"
	"github.com/mysql-mfg/mfg/api/wire"
	"github.com/mysql-mfg/mfg/internal/mysql"
	"github.com/mysql-mfg/mfg/operator/scope"
	"github.com/mysql-mfg/mfg/operator/scope/scopetest"
	"github.com/mysql-mfg/mfg/operator/work"
)

// RotateMasterKeys rotates, unless a test says otherwise.
func (s *server) RotateMasterKeys(context.Context) error {
	s.note("rotate")
	if s.rotate != nil {
		return s.rotate()
	}
	return nil
}

// rotating is a plant with a replica whose keyring is unsealed.
func rotating(t *testing.T) (*plant, rotator) {
	t.Helper()
	pl := newPlant(t, history, history)
	pl.fact("b", func(f *scope.SiteFacts) { f.Following, f.PodUID, f.Keyring = true, "pod-b", &wire.KeyringReport{} })
	return pl, rotator{reach: pl.p.reach, work: pl.work, runner: pl.runner, recorder: pl.p.recorder, done: pl.p.done}
}

func (pl *plant) fact(site string, change func(*scope.SiteFacts)) {
	g, _ := pl.facts.Sites("", "")
	f := g.Sites[site]
	change(&f)
	pl.facts.Set(site, f)
}

func TestRotationRunsInAWindow(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		pl, r := rotating(t)
		defer pl.end(t)
		key := scope.SiteKey{Group: scopetest.Key, Site: "b"}
		b := pl.servers["10.0.0.1:33062"]
		b.rotate = func() error {
			w := pl.work.Windows(scopetest.Key.Namespace, scopetest.Key.Name)
			if len(w) != 1 || w[0].Purpose != wire.WindowRotation || w[0].Site != "b" || !pl.busy("b") {
				t.Errorf("windows %+v, busy %v", w, pl.busy("b"))
			}
			return nil
		}
		counted := countRotations()
		r.begin(scopetest.Group(), "b")
		<-pl.ended
		if diff := cmp.Diff([]string{"begin window", "rotate", "end window"}, b.calls); diff != "" {
			t.Errorf("calls (-want +got):\n%s", diff)
		}
		wantRotations(t, counted, map[string]float64{rotationCompleted: 1})
		if j := pl.work.Rotation(key, "pod-b"); !j.Done || j.Running || pl.busy("b") || len(pl.work.Windows(scopetest.Key.Namespace, scopetest.Key.Name)) != 0 {
			t.Errorf("job %+v, busy %v", j, pl.busy("b"))
		}
		r.begin(scopetest.Group(), "b")
		synctest.Wait()
		if slices.Contains(b.calls[3:], "rotate") {
			t.Error("rotated again before status tells of it")
		}
		pl.work.EndRotation(key)
		if j := pl.work.Rotation(key, "pod-b"); j.Done {
			t.Error("not forgotten")
		}
	})
}

// I20: looked at again right before the keys are rotated.
func TestI20RotationStopsWhenTheFactsChange(t *testing.T) {
	tests := map[string]func(*plant){
		"became active":    func(pl *plant) { pl.facts.Open("b") },
		"active site shut": func(pl *plant) { pl.facts.Closed("a") },
		"accepts writes":   func(pl *plant) { pl.fact("b", func(f *scope.SiteFacts) { f.Writable = true }) },
		"another pod":      func(pl *plant) { pl.fact("b", func(f *scope.SiteFacts) { f.PodUID = "other" }) },
		"sealed meanwhile": func(pl *plant) {
			pl.fact("b", func(f *scope.SiteFacts) { f.Keyring = &wire.KeyringReport{Sealed: true} })
		},
		"no longer follows": func(pl *plant) { pl.fact("b", func(f *scope.SiteFacts) { f.Following = false }) },
	}
	for name, change := range tests {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				pl, r := rotating(t)
				defer pl.end(t)
				r.begin(scopetest.Group(), "b")
				time.Sleep(work.WindowMargin / 2)
				change(pl)
				<-pl.ended
				if calls := pl.servers["10.0.0.1:33062"].calls; len(calls) != 0 {
					t.Errorf("calls %v", calls)
				}
				if j := pl.work.Rotation(scope.SiteKey{Group: scopetest.Key, Site: "b"}, "pod-b"); j.Done || j.Trouble == "" {
					t.Errorf("job %+v", j)
				}
			})
		})
	}
}

func TestFailedRotationClosesTheWindowAndIsTriedAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		pl, r := rotating(t)
		defer pl.end(t)
		b := pl.servers["10.0.0.1:33062"]
		b.rotate = func() error { return errors.New("no") }
		counted := countRotations()
		r.begin(scopetest.Group(), "b")
		<-pl.ended
		wantRotations(t, counted, map[string]float64{rotationFailed: 1})
		if diff := cmp.Diff([]string{"begin window", "rotate", "end window"}, b.calls); diff != "" {
			t.Errorf("calls (-want +got):\n%s", diff)
		}
		r.begin(scopetest.Group(), "b")
		synctest.Wait()
		if len(b.calls) != 3 {
			t.Error("tried again at once")
		}
		time.Sleep(time.Minute)
		b.rotate = nil
		r.begin(scopetest.Group(), "b")
		<-pl.ended
		if j := pl.work.Rotation(scope.SiteKey{Group: scopetest.Key, Site: "b"}, "pod-b"); !j.Done {
			t.Errorf("job %+v", j)
		}
		wantRotations(t, counted, map[string]float64{rotationFailed: 1, rotationCompleted: 1})
	})
}

// A backup or DDL that stands in the way is no failure.
func TestLockedRotationIsTriedAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		pl, r := rotating(t)
		defer pl.end(t)
		pl.servers["10.0.0.1:33062"].rotate = func() error { return fmt.Errorf("rotate: %w", mysql.ErrLocked) }
		counted := countRotations()
		r.begin(scopetest.Group(), "b")
		<-pl.ended
		if j := pl.work.Rotation(scope.SiteKey{Group: scopetest.Key, Site: "b"}, "pod-b"); j.Done || j.Trouble == "" || pl.said.Count(v1alpha1.ReasonKeyringRotationFailed) != 0 {
			t.Errorf("job %+v, events %v", j, pl.said.List)
		}
		wantRotations(t, counted, map[string]float64{})
	})
}

// What was rotated in a pod that is gone went with it: the next pod is not taken for one with new keys.
func TestRotationOfAnotherPodIsForgotten(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		pl, r := rotating(t)
		defer pl.end(t)
		r.begin(scopetest.Group(), "b")
		<-pl.ended
		key := scope.SiteKey{Group: scopetest.Key, Site: "b"}
		if j := pl.work.Rotation(key, "the next one"); j.Done {
			t.Errorf("job %+v", j)
		}
		if j := pl.work.Rotation(key, "pod-b"); j.Done {
			t.Errorf("the first pod does not come back: %+v", j)
		}
	})
}

// A clone into a sealed site would fail half-way: it waits until the keyring can be written, and status knows that.
func TestCloneWaitsForAnUnsealedKeyring(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		pl := newPlant(t, history, "")
		defer pl.end(t)
		g := scopetest.Group(withEncryption)
		g.Status.EncryptionAtRest = &v1alpha1.EncryptionAtRestStatus{Sites: []v1alpha1.SiteKeyringStatus{{Name: "b", Phase: v1alpha1.KeyringSealed}}}
		pl.fact("b", func(f *scope.SiteFacts) { f.Keyring = &wire.KeyringReport{Sealed: true, Active: true} })
		pl.p.begin(g, "b", order{})
		if o := pl.result(t, "b"); o.Verdict != work.VerdictWait || !o.Unseal || !pl.work.WantsUnseal(scope.SiteKey{Group: scopetest.Key, Site: "b"}) {
			t.Errorf("outcome %+v", o)
		}
		pl.work.Release(scope.SiteKey{Group: scopetest.Key, Site: "b"})
		time.Sleep(time.Minute)
		st := &g.Status.EncryptionAtRest.Sites[0]
		st.Phase, st.Work = v1alpha1.KeyringUnsealed, v1alpha1.KeyringClone
		pl.p.begin(g, "b", order{})
		if o := pl.result(t, "b"); o.Verdict != work.VerdictWait || !o.Unseal {
			t.Errorf("cloned into a pod that is still sealed: %+v", o)
		}
		pl.work.Release(scope.SiteKey{Group: scopetest.Key, Site: "b"})
		time.Sleep(time.Minute)
		pl.fact("b", func(f *scope.SiteFacts) { f.Keyring = &wire.KeyringReport{Active: true} })
		pl.p.begin(g, "b", order{})
		if o := pl.result(t, "b"); o.Verdict != work.VerdictAdopt || !o.Cloned {
			t.Errorf("outcome %+v", o)
		}
	})
}
