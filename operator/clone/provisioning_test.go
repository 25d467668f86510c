// SPDX-License-Identifier: Apache-2.0

package clone

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/mysql-mfg/mfg/api/v1alpha1"
	"github.com/mysql-mfg/mfg/api/wire"
	"github.com/mysql-mfg/mfg/operator/scope"
	"github.com/mysql-mfg/mfg/operator/scope/scopetest"
	"github.com/mysql-mfg/mfg/operator/work"
	"github.com/mysql-mfg/mfg/operator/work/worktest"
)

// I12: before the first opening the volume is noted that the site is seen on, and only by who looks after the group as it is.
func TestTheVolumeOfTheFirstOpeningI12(t *testing.T) {
	for name, tt := range map[string]struct {
		seen, active, want string
	}{
		"seen":                              {"new", "a", "new"},
		"not seen":                          {"", "a", "old"},
		"seen by one who knows another one": {"new", "b", "old"},
	} {
		g := scopetest.Group()
		g.Status.ActiveSite, g.Status.Transition = "a", &v1alpha1.Transition{Kind: v1alpha1.FailoverBootstrap, To: "a"}
		s := &scope.Scope{
			Key: scopetest.Key, Group: g, Provisioned: map[string]bool{}, Volumes: map[string]string{"a": "old"},
			Facts: scope.GroupFacts{ActiveSite: tt.active, Sites: map[string]scope.SiteFacts{"a": {VolumeID: tt.seen}}},
		}
		(&Clones{Base: &scope.Base{}}).markActive(s, "a")
		if s.Volumes["a"] != tt.want || s.Provisioned["a"] {
			t.Errorf("I12: %s: volume %q, provisioned %t", name, s.Volumes["a"], s.Provisioned["a"])
		}
	}
}

func TestCandidatesAreProvisionedFirst(t *testing.T) {
	got := provisionOrder([]v1alpha1.Site{
		{Name: "dr", Role: v1alpha1.DROnly}, {Name: "x", Role: v1alpha1.PrimaryCandidate}, {Name: "y", Role: v1alpha1.PrimaryCandidate},
	})
	if diff := cmp.Diff([]string{"x", "y", "dr"}, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestJobsTellTheVolumeTheyLookedAt(t *testing.T) {
	for name, executed := range map[string]string{"cloned": "", "adopted": history} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				pl := newPlant(t, history, executed)
				defer pl.end(t)
				pl.facts.Set("b", scope.SiteFacts{MysqlUp: true, AdminAddr: "10.0.0.1:33062", VolumeID: "vb"})
				pl.p.begin(scopetest.Group(), "b", order{})
				if o := pl.result(t, "b"); o.Verdict != work.VerdictAdopt || o.Volume != "vb" || o.Cloned != (name == "cloned") {
					t.Errorf("outcome %+v", o)
				}
			})
		})
	}
}

// A clone into a sealed site would fail half-way: it waits until the keyring can be written, and status knows that.
func TestCloneWaitsForAnUnsealedKeyring(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		pl := newPlant(t, history, "")
		defer pl.end(t)
		g := scopetest.Group()
		g.Spec.EncryptionAtRest = &v1alpha1.EncryptionAtRestSpec{Enabled: true}
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

// I14: nor is a site cloned that was the active site between two looks.
func TestNoCloneOfASiteThatWasActiveBetweenTwoLooksI14(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		pl := newPlant(t, history, "", "")
		defer pl.end(t)
		pl.servers["10.0.0.1:33062"].OnClone = worktest.Completes(set(history), time.Hour, nil)
		pl.p.begin(scopetest.Group(), "b", order{})
		time.Sleep(time.Second)
		pl.p.begin(scopetest.Group(), "c", order{}) // waits for the donor
		time.Sleep(time.Minute)
		pl.facts.Under(2)
		pl.result(t, "b")
		if o := pl.result(t, "c"); o.Verdict != work.VerdictWait || len(pl.servers["10.0.0.2:33062"].Calls) != 0 {
			t.Errorf("I14: the role has moved, perhaps to c and back: outcome %+v, calls %v", o, pl.servers["10.0.0.2:33062"].Calls)
		}
	})
}
