// SPDX-License-Identifier: Apache-2.0

package keyring

import (
	"strings"
	"testing"
	"time"

	"github.com/mysql-mfg/mfg/api/wire"
)

// Who is asked whether data may stay in the clear, and who is not.
func TestAdoptionIsRefusedForWhatServesInTheClear(t *testing.T) {
	plain := Site{Name: "a", Provisioned: true, Rendered: Rendered{Exists: true}}
	lost := Site{Name: "a", Provisioned: true, Rendered: Rendered{Exists: true, Keyring: true}}
	bare := Site{Name: "b", Provisioned: true}
	leftovers := plain
	leftovers.Versions = []Version{ver(1)}
	remade := bare
	remade.Versions = leftovers.Versions
	for name, tt := range map[string]struct {
		sites   []Site
		refused bool
	}{
		"keyrings of another group of this name":    {[]Site{leftovers}, true},
		"its Deployment is gone":                    {[]Site{bare}, true},
		"status is gone, its pod has a keyring":     {[]Site{lost, bare}, false},
		"encrypted, the Deployments are gone":       {[]Site{activeSealed(), bare}, false},
		"status and Deployment are gone, in escrow": {[]Site{remade}, false},
		"a new group": {[]Site{{Name: "a"}, {Name: "b"}}, false},
	} {
		if got := Decide(Group{Name: "orders", Now: start, Sites: tt.sites}).Refused; (got != "") != tt.refused {
			t.Errorf("%s: %q", name, got)
		}
	}
	// What is adopted gets another pod.
	d := Decide(Group{Name: "orders", Now: start, Adopt: true, Sites: []Site{plain}})
	if n := d.Sites[0]; !n.Wish.Encrypted || n.Wish.Kept != "" {
		t.Errorf("%+v", n.Wish)
	}
}

// What is done besides the step, and when it is not.
func TestEffectsStandOnlyWhileTheyAreNeeded(t *testing.T) {
	few := func(g *Group, _ *Site) { g.RetainVersions = 1 }
	lost := func(_ *Group, s *Site) { s.Pod.Lost = true }
	inClear := func(_ *Group, s *Site) { s.Rendered = Rendered{Exists: true} }
	decideAll(t, map[string]transition{
		"superseded versions go": {"", sealed, []change{few}, stays, "", has[Prune]},
		"the pod that pushes has its token": {"what it writes last goes into escrow", escrowed, []change{unsealedFor(boot, digest("3")), stage(sealingStage)},
			stays, "", not(has[DropToken])},
		"no key is rotated in a pod that is lost": {"I14: whatever its sidecar said", unsealed, []change{unsealedFor(rot, digest("3")), stage(rotatingStage), lost},
			stays, "", not(has[Rotate])},
		"none is rotated again": {"I14: the rotation has ended, and is not noted yet", escrowed, []change{unsealedFor(rot, digest("3")), stage(rotatingStage), jobDone, restless},
			stays, "", not(has[Rotate])},
		"none is rotated again, noted": {"I14: what waits is the escrow",
			unsealed, []change{unsealedFor(rot, digest("4")), stage(rotatingStage), hasRotated}, stays, "", not(has[Rotate])},
		"a sealed pod": {"I18: it has no round, and so no token",
			sealed, nil, stays, "", func(n Next) bool { return n.Wish.Sealed && n.Wish.Round == 0 }},
		"an empty volume, no donor": {"I14: nobody to clone from", sealed, []change{podLost, emptied, noDonor},
			stays, "", not(has[Unprovision])},
		"an empty volume, after a step": {"one thing at a time", pending, []change{work(rot), emptied},
			sealed, "", not(has[Unprovision])},
		"an empty volume, marked": {"the mark is off", failed, []change{aboutToUnseal(clone), noData, emptied},
			stays, "", not(has[Unprovision])},
		"an empty volume, in the clear": {"it is no keyring's", none, []change{nothingStored, inClear, emptied},
			stays, "", not(has[Unprovision])},
	})
}

// An order is answered once: when it was carried out, or cannot be.
func TestOrdersAreAnsweredOnce(t *testing.T) {
	ordered := rotate("b")
	silentOn := not(has[Answer])
	decideAll(t, map[string]transition{
		"another site's": {"it says nothing of this one", sealed, []change{rotate("a"), isBusy},
			stays, "", silentOn},
		"rotated, not sealed": {"I16: the new keys are in no escrow yet", unsealed, []change{unsealedFor(rot, digest("4")), stage(rotatingStage), hasRotated, ordered},
			stays, "", silentOn},
		"it waits for a lag": {"it is under way", unsealed, []change{unsealedFor(rot, digest("3")), ordered, behind},
			stays, "", silentOn},
		"carried out, Secret gone": {"it was", failed, []change{gone, hasRotated, ordered}, stays, "", silentOn},
		"about to be sealed": {"it may be rotated once it is", escrowed, []change{stage(sealingStage), notReady, ordered},
			stays, "", silentOn},
		"while something else begins": {"what that comes to is not known", sealed, []change{gone, ordered},
			failed, EventEscrowMissing, silentOn},
	})
}

// I16: master keys that come into no escrow are not made: MySQL never takes an old one away, so a keyring has an end.
func TestARotationIsRefusedBeforeTheKeyringIsFullI16(t *testing.T) {
	sized := func(n int) change {
		return func(_ *Group, s *Site) {
			s.Versions = []Version{ver(1), ver(2), {Name: ver(3).Name, Number: 3, Digest: ver(3).Digest, Annotated: ver(3).Annotated, Size: n}}
		}
	}
	decideAll(t, map[string]transition{
		"much room":             {"", sealed, []change{sized(nearlyFull - 1), rotate("b")}, pending, "", nil},
		"nearly full":           {"clones need the rest", sealed, []change{sized(nearlyFull), rotate("b")}, stays, EventRotationRefused, has[Answer]},
		"nobody knows how full": {"no size is no reason", sealed, []change{sized(0), rotate("b")}, pending, "", nil},
	})
	g, s := at(sealed, sized(wire.MaxKeyringFile))
	if reason, why := refusal(g, s); reason != "KeyringFull" || !strings.Contains(why, "volume") {
		t.Errorf("%q names no way out", why)
	}
}

// I16: nor are master keys made for which the escrow has no number left: tries that end half-way make a version each, and anybody may have
// put some there.
func TestARotationIsRefusedBeforeTheEscrowIsFullI16(t *testing.T) {
	many := func(n int64) change {
		return func(_ *Group, s *Site) {
			for i := int64(len(s.Versions)) + 1; i <= n; i++ {
				s.Versions = append(s.Versions, ver(i))
			}
		}
	}
	decideAll(t, map[string]transition{
		"room":           {"", sealed, []change{many(manyVersions - 1), rotate("b")}, pending, "", nil},
		"no room":        {"the new keys would be in the pod alone", sealed, []change{many(manyVersions), rotate("b")}, stays, EventRotationRefused, has[Answer]},
		"another try":    {"", unsealed, []change{unsealedFor(rot, digest("3")), stage(rotatingStage), rotate("b"), many(manyVersions - 1)}, stays, "", has[Rotate]},
		"no other tries": {"each makes another version", unsealed, []change{unsealedFor(rot, digest("3")), stage(rotatingStage), rotate("b"), many(manyVersions)}, stays, "", not(has[Rotate])},
	})
	g, s := at(sealed, many(manyVersions))
	if reason, why := refusal(g, s); reason != "KeyringFull" || !strings.Contains(why, "allow-deletion") {
		t.Errorf("%q names no way out", why)
	}
}

// A round begins with nothing of the one before, and leaves nothing.
func TestRoundsLeaveNothing(t *testing.T) {
	decideAll(t, map[string]transition{
		"begins": {"I14: the pod of an earlier rotation had other keys", pending, []change{work(rot), rotate("b"), inPod("old", "two")},
			unsealed, EventUnsealed, func(n Next) bool { return n.Status.RotationPod == "" }},
		"ends": {"what comes next has no seed", escrowed, []change{work(rot), hasRotated, stage(sealingStage), seedIs(2), floor(3)},
			sealed, EventSealed, func(n Next) bool {
				return n.Status.SeedVersion == 0 && n.Status.SeedDigest == "" && n.Status.FloorVersion == 0
			}},
	})
}

// Since is when the phase, or the round, began: escrowTimeoutSeconds is counted from there.
func TestSince(t *testing.T) {
	later := lateBy(time.Minute)
	anew := func(n Next) bool { return n.Status.Since.Equal(&n.now) }
	decideAll(t, map[string]transition{
		"another phase": {"", pending, []change{work(rot), rotate("b"), later}, unsealed, EventUnsealed, anew},
		"another round": {"", unsealed, []change{unsealedFor(boot, ""), seedIs(2), noData, podLost, later},
			unsealed, EventUnsealed, anew},
		"the same phase": {"", sealed, []change{hasRotated, later}, stays, "", not(anew)},
	})
}

// Missing is what alerts are made of: a Secret that a person has to bring back.
func TestMissing(t *testing.T) {
	is := func(n Next) bool { return n.Missing }
	decideAll(t, map[string]transition{
		"gone": {"", failed, []change{gone}, stays, "", is},
		"gone, and given up": {"the clone brings another", pending, []change{work(clone), noData, cloneConfirmed, gone},
			unsealed, EventUnsealed, not(is)},
		"late": {"it is there", unsealed, []change{unsealedFor(clone, digest("4")), lateBy(time.Hour)},
			failed, EventNotEscrowed, not(is)},
		"late, never escrowed": {"there was none", unsealed, []change{unsealedFor(boot, digest("4")), noData, nothingStored, bare, unnamed, lateBy(time.Hour)},
			failed, EventNotEscrowed, not(is)},
	})
}

// Right before the keys: whatever changed since the rotation began. I20: never on the active site.
func TestKeysAreNotRotatedWhileAnythingIsAmiss(t *testing.T) {
	for name, amiss := range map[string]change{
		"nothing is known":          unknown,
		"I20: the active site":      isActive,
		"the active site changes":   roleMoves,
		"a planned failover":        plannedFailover,
		"the active site is closed": noDonor,
		"the mark is off":           noData,
		"a clone is wanted":         cloneWanted,
		"it is worked on":           isBusy,
		"I10: diverged":             diverged,
		"a pod of another template": func(_ *Group, s *Site) { s.Pod.Current = false },
		"a pod that was not heard":  unheard,
		"a sealed pod":              func(_ *Group, s *Site) { s.Report.Sealed = true },
		"it does not replicate":     behind,
		"MySQL has another keyring": func(_ *Group, s *Site) { s.Report.Component = "component_keyring_other" },
		"MySQL does not use it":     func(_ *Group, s *Site) { s.Report.Active = false },
		"a rotation runs":           jobRuns,
	} {
		t.Run(name, func(t *testing.T) {
			g, _ := at(unsealed, unsealedFor(rot, digest("3")), stage(rotatingStage), rotate("b"), amiss)
			if n := Decide(g).Sites[1]; has[Rotate](n) {
				t.Errorf("rotates: %v", n.Effects)
			}
		})
	}
}

// Each refusal is safe alone; what it says is what a person needs to know.
func TestRefusalsAlone(t *testing.T) {
	g, s := at(sealed, cloneWanted)
	if holdsNoData(g, s) == "" {
		t.Error("I14: a site that is to be cloned is rotated")
	}
	g, s = at(failed)
	if why := otherKeyringInFlight(g, s); why != "" {
		t.Errorf("a site waits for itself: %s", why)
	}
	for name, tt := range map[string]struct {
		other func(*Site)
		says  string
	}{
		"never escrowed": {func(o *Site) { *o = Site{Name: "a"} }, "not there"},
		"Failed":         {func(o *Site) { o.Status.Phase = failed }, "in its pod alone"},
	} {
		g, s = at(sealed)
		tt.other(&g.Sites[0])
		if why := otherKeyringInFlight(g, s); !strings.Contains(why, tt.says) {
			t.Errorf("%s: %q", name, why)
		}
	}
}

// I16, I18: each condition is safe alone, whatever the others would say.
func TestConditionsOfASealedSiteAlone(t *testing.T) {
	missing := func(condition func(Group, Site) string) func(Group, Site) bool {
		return func(g Group, s Site) bool { return condition(g, s) != "" }
	}
	sayAll(t, map[string]says{
		"the escrow Secret is gone":                {"", missing(escrowExists), escrowed, []change{gone}, true},
		"stored anew, and the pod has that":        {"it is not what status names", missing(digestsEqual), escrowed, []change{replaced, tells("other")}, true},
		"rendered unsealed":                        {"I18: its keyring could be written", missing(rendersSecret), escrowed, []change{func(_ *Group, s *Site) { s.Rendered.Sealed = false }}, true},
		"MySQL uses another component":             {"", missing(keyringIsReadOnly), escrowed, []change{func(_ *Group, s *Site) { s.Report.Component = "component_keyring_other" }}, true},
		"made sealed with a Secret that is gone":   {"", ofSite(readyToSeal), escrowed, []change{unsealedFor(boot, digest("3")), gone}, false},
		"made sealed while its keyring is written": {"", ofSite(readyToSeal), escrowed, []change{unsealedFor(boot, "")}, false},
		"made sealed while a rotation runs":        {"", ofSite(readyToSeal), escrowed, []change{unsealedFor(boot, digest("3")), jobRuns}, false},
		"made sealed while a clone is wanted":      {"", ofSite(readyToSeal), escrowed, []change{unsealedFor(boot, digest("3")), cloneWanted}, false},
		"made sealed":                              {"", ofSite(readyToSeal), escrowed, []change{unsealedFor(boot, digest("3"))}, true},
		"replaced by nobody's word":                {"a clone that was confirmed is no rotation", isMissing, pending, []change{work(rot), noData, cloneConfirmed, gone}, true},
		"nor once it is made sealed":               {"it is told first", isMissing, escrowed, []change{work(clone), stage(sealingStage), noData, cloneConfirmed, gone}, true},
	})
}
