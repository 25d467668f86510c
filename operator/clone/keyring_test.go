// SPDX-License-Identifier: Apache-2.0

package clone

import (
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mysql-mfg/mfg/api/v1alpha1"
	"github.com/mysql-mfg/mfg/api/wire"
	"github.com/mysql-mfg/mfg/operator/report/events"
	"github.com/mysql-mfg/mfg/operator/scope"
	"github.com/mysql-mfg/mfg/operator/scope/scopetest"
	"github.com/mysql-mfg/mfg/operator/work"
)

// unsealedForClone is a group of which b's keyring is unsealed for a clone.
func unsealedForClone() *v1alpha1.MysqlFailoverGroup {
	g := scopetest.Group()
	g.Spec.EncryptionAtRest = &v1alpha1.EncryptionAtRestSpec{Enabled: true}
	g.Status.EncryptionAtRest = &v1alpha1.EncryptionAtRestStatus{Sites: []v1alpha1.SiteKeyringStatus{
		{Name: "a", Phase: v1alpha1.KeyringSealed}, {Name: "b", Phase: v1alpha1.KeyringUnsealed, Work: v1alpha1.KeyringClone},
	}}
	return g
}

// A clone from a donor whose data dictionary was encrypted just now may not start: none begins before its sidecar says that
// it is behind a checkpoint.
func TestCloneWaitsForTheDonorsDictionary(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		pl := newPlant(t, history, "")
		defer pl.end(t)
		g := unsealedForClone()
		pl.fact("b", func(f *scope.SiteFacts) { f.Keyring = &wire.KeyringReport{Active: true} })
		pl.fact("a", func(f *scope.SiteFacts) {
			f.Keyring = &wire.KeyringReport{Sealed: true, Active: true, Coverage: &wire.CoverageReport{RedoLog: true}}
		})
		pl.p.begin(g, "b", order{})
		if o := pl.result(t, "b"); o.Verdict != work.VerdictWait || !o.Donor || o.Unseal || !strings.Contains(o.Message, "not encrypted yet") {
			t.Errorf("outcome %+v", o)
		}
		b := pl.servers["10.0.0.1:33062"]
		if len(b.Calls) != 0 {
			t.Errorf("calls %v", b.Calls)
		}
		pl.work.Release(scope.SiteKey{Group: scopetest.Key, Site: "b"})
		time.Sleep(time.Minute)
		pl.fact("a", func(f *scope.SiteFacts) { f.Keyring.Coverage.SystemTablespace = true })
		pl.p.begin(g, "b", order{})
		if o := pl.result(t, "b"); o.Verdict != work.VerdictAdopt {
			t.Errorf("outcome %+v", o)
		}
	})
}

// The same is looked at a last time right before: the wait for a turn and for a window may have been long.
func TestCloneDoesNotBeginFromADonorThatIsCoveredNow(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		pl := newPlant(t, history, "")
		defer pl.end(t)
		g := unsealedForClone()
		pl.fact("b", func(f *scope.SiteFacts) { f.Keyring = &wire.KeyringReport{Active: true} })
		pl.fact("a", func(f *scope.SiteFacts) {
			f.Keyring = &wire.KeyringReport{Sealed: true, Active: true, Coverage: &wire.CoverageReport{SystemTablespace: true}}
		})
		leave, err := pl.p.turn(t.Context(), scopetest.Key)
		if err != nil {
			t.Fatal(err)
		}
		pl.p.begin(g, "b", order{})
		synctest.Wait() // it waits for its turn
		pl.fact("a", func(f *scope.SiteFacts) { f.Keyring.Coverage = &wire.CoverageReport{} })
		leave()
		o := pl.result(t, "b")
		if b := pl.servers["10.0.0.1:33062"]; len(b.Calls) != 0 || o.Verdict != work.VerdictWait || !strings.Contains(o.Message, "not encrypted yet") {
			t.Errorf("outcome %+v, calls %v", o, b.Calls)
		}
	})
}

// It is told: by an event once, and in what the group waits for.
func TestWaitForTheDonorIsTold(t *testing.T) {
	said := &scopetest.Events{}
	c := New(&scope.Base{Recorder: events.NewRecorder(said)}, Options{Work: work.New()})
	s := &scope.Scope{Key: scopetest.Key, Group: scopetest.Group(), Provisioned: map[string]bool{}, Volumes: map[string]string{}}
	o := work.Outcome{Verdict: work.VerdictWait, Message: "the data dictionary of a is not encrypted yet", Donor: true}
	for range 2 {
		c.takeVerdict(s, "b", o)
	}
	if n := said.Count(v1alpha1.ReasonSiteCloneWaits); n != 1 {
		t.Errorf("%d events", n)
	}
	c.Work.Begin(scope.SiteKey{Group: scopetest.Key, Site: "b"}, func() {}).Finish(o)
	if why := c.lastFailure(s, "b"); !strings.Contains(why, "not encrypted yet") {
		t.Errorf("the group waits for %q", why)
	}
}
