// SPDX-License-Identifier: Apache-2.0

package failover

import (
	"testing"

	"github.com/mysql-mfg/mfg/api/v1alpha1"
	"github.com/mysql-mfg/mfg/operator/facts/factstest"
)

// newGroup is one in which nothing was ever open: both sites are up, with what they hold.
func newGroup(a, b string) Snapshot {
	s := factstest.World(Durable{}, factstest.Seen("a", a, 0), factstest.Seen("b", b, 0))
	for i := range s.Sites {
		s.Sites[i].Provisioned = false
	}
	return s
}

// I25: until the backup is there nothing opens, not even by order.
func TestNothingOpensBeforeTheRestoreI25(t *testing.T) {
	for _, force := range []string{"", "a", "b"} {
		s := newGroup("", "")
		s.Policy.AwaitsRestore, s.Policy.ForceTo = true, force
		d := Decide(s, Memory{})
		if d.Status.Epoch != 0 || d.Status.Transition != nil || len(d.Effects) > 0 || !d.Hold || d.Reason != v1alpha1.ReasonRestoring {
			t.Errorf("forced to %q: %s %s, epoch %d, effects %v", force, d.Reason, d.Message, d.Status.Epoch, d.Effects)
		}
		s.Policy.AwaitsRestore = false
		if d := Decide(s, Memory{}); d.Status.Epoch == 0 {
			t.Errorf("control: %s %s", d.Reason, d.Message)
		}
	}
}

// I25: the site with the backup is the first, even if it holds nothing by its transactions, and if another holds more, a person decides.
func TestTheRestoredSiteIsFirstI25(t *testing.T) {
	for name, tc := range map[string]struct {
		a, b string
		to   string
	}{
		"as usual":               {"", "A:1-5", "b"},
		"an empty set":           {"", "", "b"},
		"another holds the same": {"A:1-5", "A:1-5", "b"},
		"another holds more":     {"A:1-6", "A:1-5", ""},
		"another holds a part":   {"A:1-2", "A:1-5", "b"},
	} {
		s := newGroup(tc.a, tc.b)
		s.Policy.RestoredSite = "b"
		d := Decide(s, Memory{})
		to := ""
		if d.Status.Transition != nil {
			to = d.Status.Transition.To
		}
		if to != tc.to {
			t.Errorf("%s: to %q: %s %s", name, to, d.Reason, d.Message)
		}
	}
	s := newGroup("", "A:1-5")
	s.Policy.RestoredSite = "b"
	for i := range s.Sites {
		s.Sites[i].OtherVolume = s.Sites[i].Name == "b"
	}
	if d := Decide(s, Memory{}); d.Status.Transition != nil || d.Reason != v1alpha1.ReasonNoFitCandidate {
		t.Errorf("its volume is gone: %s %s", d.Reason, d.Message)
	}
}
