// SPDX-License-Identifier: Apache-2.0

package campaign

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/mysql-mfg/mfg/api/v1alpha1"
)

// world is a group whose operator ends, whose sites fail and whose role moves at any moment.
type world struct {
	t *rapid.T
	g Group
	// asked is the planned failover on the group, by its id; moved are those that were carried out.
	asked, to string
	rotations map[string]int
	moves     int
	ending    bool
	ids       int
}

// look is one look of the operator. It may end before it persists, and between that and its effects.
func (w *world) look() {
	w.ids++
	w.g.Fresh, w.g.Now = fmt.Sprint("id", w.ids), w.g.Now.Add(10*time.Second)
	w.g.Move.Stands = w.asked != "" && w.g.Status != nil && w.asked == w.g.Status.StepID
	w.g.RoleMoving = ""
	if w.asked != "" && !w.g.Move.Stands {
		w.g.RoleMoving = "somebody else's"
	}
	for i := range w.g.Sites {
		s := &w.g.Sites[i]
		s.Reason = ""
		if s.Name == w.g.Active || w.asked != "" || !s.Ready || slices.ContainsFunc(w.g.Sites, func(o Site) bool { return o.rotating() }) {
			s.Reason, s.Why = "Refused", "it would be refused"
		}
	}
	before := w.g.Status.DeepCopy()
	d := Decide(w.g)
	w.check(before, d)
	if !w.ending && rapid.Bool().Draw(w.t, "ends before it persists") {
		return
	}
	w.g.Status = d.Status
	if d.Rotate != "" { // by the same write
		k := w.g.keyring(d.Rotate)
		if k.Work == "" {
			k.Phase, k.Work, k.SeedVersion = v1alpha1.KeyringPending, v1alpha1.KeyringRotation, k.KeyringVersion
			w.rotations[d.Rotate]++
		}
	}
	if !w.ending && rapid.Bool().Draw(w.t, "ends before it acts") {
		return
	}
	for _, e := range d.Effects {
		switch e := e.(type) {
		case AskMove:
			if w.asked == "" {
				w.asked, w.to, w.g.Move.Answer = e.ID, e.To, nil
			}
		case TakeBack:
			if w.asked == e.ID {
				w.asked = ""
			}
		case Answer:
			w.g.Asked = false
		case Say:
		}
	}
}

// check is what must hold of each decision.
func (w *world) check(before *v1alpha1.CampaignStatus, d Decision) {
	c, asks := d.Status, 0
	for _, e := range d.Effects {
		if m, is := e.(AskMove); is {
			asks++
			if m.To == w.g.Active || m.ID == "" || m.ID != c.StepID || d.Rotate != "" {
				w.t.Fatalf("it asks for %+v with %+v, and rotates %q", m, c, d.Rotate)
			}
		}
	}
	s, _ := w.g.site(d.Rotate)
	switch {
	case d.Rotate != "" && !s.rotating() && (d.Rotate == w.g.Active || s.Reason != ""):
		w.t.Fatalf("I20: the rotation of %s is begun: %+v", d.Rotate, s)
	case d.Rotate != "" && (c.Step != v1alpha1.CampaignRotating || c.Site != d.Rotate || d.ID == "" || d.ID != c.StepID):
		w.t.Fatalf("it rotates %s as %s, and status says %+v", d.Rotate, d.ID, c)
	case d.Rotate != "" && slices.ContainsFunc(w.g.Sites, func(o Site) bool { return o.rotating() && o.Name != d.Rotate }):
		w.t.Fatalf("two rotations at once: %s", d.Rotate)
	case asks > 0 && !before.UnderWay():
		w.t.Fatal("the role moves before the campaign is durable")
	case d.Rotate != "" && !before.UnderWay():
		w.t.Fatal("a site is rotated before the campaign is durable")
	case c != nil && c.Outcome == v1alpha1.CampaignDone && before.UnderWay() && !w.all(c):
		w.t.Fatalf("it is done, and left are %v", c.Left())
	case (d.Rotate != "" || asks > 0) && !w.g.Asked:
		w.t.Fatal("it goes on although nobody asks for it")
	}
}

// all is true if all sites that were asked for are rotated.
func (w *world) all(c *v1alpha1.CampaignStatus) bool {
	order, _ := v1alpha1.ParseCampaignOrder(c.Order)
	for _, s := range c.Sites {
		k := w.g.keyring(s.Name)
		fresh := k.Phase == v1alpha1.KeyringSealed && k.RotatedVersion > s.FromVersion && k.KeyringVersion == k.RotatedVersion
		if !fresh && (!order.Replicas || s.Name != w.g.Active) {
			return false
		}
	}
	return true
}

// happens is what the rest of the world does.
func (w *world) happens() {
	rotating := slices.IndexFunc(w.g.Sites, func(s Site) bool { return s.rotating() })
	choice := 0
	if !w.ending {
		choice = rapid.IntRange(0, 9).Draw(w.t, "happens")
	}
	switch choice {
	case 1: // an emergency
		w.g.Active = rapid.SampledFrom([]string{"a", "b"}).Draw(w.t, "active")
		w.asked = ""
	case 2:
		w.g.Paused = !w.g.Paused
	case 3:
		w.g.Known = !w.g.Known
	case 4: // a rotation is given up
		if rotating >= 0 {
			k := &w.g.Sites[rotating].Keyring
			k.Phase, k.Work, k.SeedVersion = v1alpha1.KeyringSealed, "", 0
		}
	case 5: // a person's own
		if w.asked == "" {
			w.asked, w.to = "person", "b"
		}
	case 6:
		if w.asked != "" {
			w.answer(rapid.SampledFrom([]v1alpha1.RequestOutcome{v1alpha1.RequestRefused, v1alpha1.RequestFailed}).Draw(w.t, "outcome"))
		}
	case 7:
		i := rapid.IntRange(0, 2).Draw(w.t, "site")
		w.g.Sites[i].Ready = !w.g.Sites[i].Ready
	case 8:
		if rapid.IntRange(0, 9).Draw(w.t, "taken back") == 0 {
			w.g.Asked = false
		}
	default:
		switch {
		case w.asked != "":
			w.g.Active = w.to
			w.moves++
			w.answer(v1alpha1.RequestDone)
		case rotating >= 0:
			k := &w.g.Sites[rotating].Keyring
			k.KeyringVersion++
			k.Phase, k.Work, k.SeedVersion, k.RotatedVersion = v1alpha1.KeyringSealed, "", 0, k.KeyringVersion
		}
	}
}

func (w *world) answer(outcome v1alpha1.RequestOutcome) {
	if w.g.Status != nil && w.asked == w.g.Status.StepID {
		w.g.Move.Answer = &v1alpha1.LastRequest{ID: w.asked, Outcome: outcome, Reason: "Because"}
	}
	w.asked = ""
}

// Whatever happens, and wherever an operator ends: no active site is rotated (I20), never two at once, nothing before it is durable and
// nothing once nobody asks. When it is quiet at last, the campaign comes to its end.
func TestACampaignI20(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		w := &world{t: t, g: sealed(), rotations: map[string]int{}}
		w.g.Value = rapid.SampledFrom([]string{"*", "*:replicas", "*:to=b", "*:restart"}).Draw(t, "value")
		for range rapid.IntRange(0, 60).Draw(t, "looks") {
			w.look()
			w.happens()
			if c := w.g.Status; c != nil && w.g.Move.Answer != nil && w.g.Move.Answer.ID != c.StepID {
				w.g.Move.Answer = nil
			}
		}
		w.ending, w.g.Paused, w.g.Known = true, false, true
		for i := range w.g.Sites {
			w.g.Sites[i].Ready = true
		}
		for range 80 {
			w.look()
			w.happens()
			if c := w.g.Status; c != nil && w.g.Move.Answer != nil && w.g.Move.Answer.ID != c.StepID {
				w.g.Move.Answer = nil
			}
		}
		if w.g.Status.UnderWay() || w.g.Asked {
			t.Fatalf("it does not end: %+v", w.g.Status)
		}
		for site, n := range w.rotations {
			if n > maxTries {
				t.Fatalf("%s was begun %d times", site, n)
			}
		}
	})
}
