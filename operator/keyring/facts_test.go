// SPDX-License-Identifier: Apache-2.0

package keyring

import (
	"slices"
	"testing"
	"time"

	"github.com/mysql-mfg/mfg/api/v1alpha1"
)

func damaged(_ *Group, s *Site) {
	s.Versions = []Version{{Name: ver(2).Name, Number: 2, Digest: "x", Annotated: "y"}, {Name: ver(1).Name, Number: 1, Digest: "x", Annotated: "z"}}
}

// ofSite asks what is said of a site alone.
func ofSite(is func(Site) bool) func(Group, Site) bool {
	return func(_ Group, s Site) bool { return is(s) }
}

// I14, I16: what counts as a version, and what a pod is taken to hold. Each is asked by itself.
func TestFactsOfASite(t *testing.T) {
	starved, outlived, mayTell := ofSite(Site.starved), ofSite(Site.outlived), ofSite(Site.mayTell)
	have := ofSite(func(s Site) bool { _, ok := s.current(); return ok })
	notCurrent := func(_ *Group, s *Site) { s.Pod.Current = false }
	sayAll(t, map[string]says{
		"a Secret without any content":                  {"nothing equals nothing, and is no keyring", ofSite(func(Site) bool { return Version{Name: "x", Number: 9}.whole() }), sealed, nil, false},
		"a Secret without its content, status restored": {"I16: nothing equals nothing", have, sealed, []change{func(_ *Group, s *Site) { s.Status.KeyringDigest, s.Versions[2].Digest = "", "" }}, false},
		"a round of an operator that noted no floor":    {"what it began from is not newer than that", outlived, unsealed, []change{unsealedFor(rot, digest("9"))}, false},
		"the seed has another content":                  {"the pod does not start from that", starved, unsealed, []change{aboutToUnseal(rot), unborn, replaced}, true},
		"the seed under another number":                 {"the pod waits for the one that it was given", starved, unsealed, []change{aboutToUnseal(rot), unborn, gone, again(4, 3)}, true},
		"without a seed":                                {"it waits for none", starved, unsealed, []change{aboutToUnseal(boot), unborn, bare}, false},
		"made sealed by now":                            {"the seed is of a round that has ended", ofSite(Site.seedIsGone), escrowed, []change{aboutToUnseal(rot), stage(sealingStage), gone}, false},
		"an old pod never began":                        {"I14: its successor may have", starved, unsealed, []change{aboutToUnseal(rot), unborn, gone, notCurrent}, false},
		"a sealed pod":                                  {"what it has is in escrow", mayTell, none, []change{unheard}, false},
		"a pod that has told":                           {"it said it", mayTell, none, []change{unsealedFor(rot, digest("4"))}, false},
		"an old pod that never began":                   {"I14: its successor may have told nobody yet", mayTell, none, []change{forgotten(""), unborn, notCurrent}, true},
		"a pod that was never asked":                    {"I14: nothing is missing before it is", isFoundMissing, none, []change{unsealedFor(rot, digest("9")), unanswered, damaged, noData, func(_ *Group, s *Site) { s.Rendered = Rendered{Exists: true} }}, false},
		"what is escrowed later goes on":                {"a pod starts from that one", isStarved, unsealed, []change{aboutToUnseal(rot), unborn, gone, add(4)}, false},
		"made sealed, and pushed":                       {"I16: the sealed pod proves what it is", isEscrowed, failed, []change{unsealedFor(boot, digest("4")), stage(sealingStage), add(4)}, false},
	})
	_, s := at(sealed, func(_ *Group, s *Site) { s.Versions = []Version{ver(3), ver(1), ver(2)} })
	if v, _ := s.newest(func(Version) bool { return true }); v.Number != 3 {
		t.Errorf("I14: the newest of %+v is %d", s.Versions, v.Number)
	}
	if n := numberIn("17", v1alpha1.KeyringSecret("orders", "b", 0)); n != 0 {
		t.Errorf("a name of nobody has the number %d", n)
	}
}

// I14: a clone begins only in a pod whose keyring can be written, and not before a rotation that is to come.
func TestMayClone(t *testing.T) {
	for name, tt := range map[string]struct {
		st   v1alpha1.SiteKeyringStatus
		want bool
	}{
		"cloned":               {v1alpha1.SiteKeyringStatus{Phase: unsealed, Work: clone}, true},
		"about to be unsealed": {v1alpha1.SiteKeyringStatus{Phase: pending, Work: clone}, false},
		"sealed":               {v1alpha1.SiteKeyringStatus{Phase: sealed}, false},
		"to be rotated":        {v1alpha1.SiteKeyringStatus{Phase: unsealed, Work: rot}, false},
		"rotating":             {v1alpha1.SiteKeyringStatus{Phase: unsealed, Work: rot, Stage: rotatingStage}, true},
	} {
		if got := MayClone(tt.st); got != tt.want {
			t.Errorf("%s: %v", name, got)
		}
	}
}

// I14, I16: what a site that status does not know starts with, and what is missing of one.
func TestWhatIsFound(t *testing.T) {
	waits := func(n Next) bool { return n.Wish.Kept != "" && !n.Wish.Encrypted }
	missing := func(number int64, d string) func(Next) bool {
		return func(n Next) bool {
			return n.Status.KeyringVersion == number && n.Status.KeyringDigest == d && n.Wish.Kept != ""
		}
	}
	plainPod := func(_ *Group, s *Site) { s.Rendered = Rendered{Exists: true} }
	sealedWith := func(number int64) change {
		return func(_ *Group, s *Site) { s.Rendered.Secret = ver(number).Name }
	}
	without := func(_ *Group, s *Site) { s.Versions = []Version{ver(1), ver(3)} }
	// taken is a keyring that is written again after status named one.
	taken := func(live string, round int64) change {
		return func(g *Group, s *Site) {
			unsealedFor(rot, live)(g, s)
			s.Status = v1alpha1.SiteKeyringStatus{Name: "b", Phase: escrowed, Stage: sealingStage, KeyringSecret: ver(3).Name, KeyringVersion: 3, KeyringDigest: digest("3"), Round: round}
		}
	}
	decideAll(t, map[string]transition{
		"its Deployment has a damaged one": {"I16: it is told what was stored", none, []change{changed},
			failed, EventEscrowMissing, missing(3, digest("3"))},
		"the same, its pod is not heard": {"I16: what is restored is compared with that", none, []change{changed, unheard},
			failed, EventEscrowMissing, missing(3, digest("3"))},
		"the same, its pod says another": {"I16: never with what a pod says instead", none, []change{changed, tells("9")},
			failed, EventEscrowMissing, missing(3, digest("3"))},
		"its Deployment has one that is gone": {"the pod has it still", none, []change{gone, func(_ *Group, s *Site) { s.Report.Sealed, s.Report.Component, s.Report.Digest = false, "", digest("4") }},
			failed, EventEscrowMissing, missing(3, digest("4"))},
		"the same, others are there": {"I16: they are not what it needs", none, []change{sealedWith(2), without, unheard},
			failed, EventEscrowMissing, missing(2, "")},
		"nothing is whole": {"the newest is what it will have needed", none, []change{nothing, damaged},
			failed, EventEscrowMissing, missing(2, "y")},
		"nothing is whole, listed otherwise": {"the newest, in whatever order", none, []change{nothing, damaged, func(_ *Group, s *Site) { slices.Reverse(s.Versions) }},
			failed, EventEscrowMissing, missing(2, "y")},
		"without data, made without a keyring": {"what is in escrow is of this site", none, []change{noData, plainPod},
			escrowed, EventFound, func(n Next) bool { return n.Wish.Version == 3 }},
		"adopted before, its Deployment is gone": {"I14: what is in escrow reads its data", none, []change{adopted, noDeployment, unheard},
			escrowed, EventFound, func(n Next) bool { return n.Wish.Version == 3 }},
		"adopted, its Deployment is gone": {"nothing is missing: there was none", none, []change{adopted, noDeployment, unheard, nothingStored},
			unsealed, EventAdopted, nil},
		"not heard, to be cloned": {"whatever it has is replaced", none, []change{forgotten(""), unheard, noData, cloneWanted},
			escrowed, EventFound, func(n Next) bool { return n.Wish.Version == 3 }},
		"not heard, to be cloned, marked still": {"I15: the mark goes first", none, []change{forgotten(""), unheard, cloneWanted},
			stays, "", waits},
		"no token is there": {"there is a round, so that there will be one", none, []change{forgotten(digest("4")), func(_ *Group, s *Site) { s.TokenRound = 0 }},
			unsealed, EventFound, func(n Next) bool { return n.Status.Round == 1 }},
		"in a pod of another template": {"I14: that one has it", none, []change{forgotten(digest("4")), inPod("", "one"), func(_ *Group, s *Site) { s.Pod.Current = false }},
			unsealed, EventFound, func(n Next) bool { return n.Status.RotationPod == "one" }},
		"written again, in a later round": {"I18: a round is not given twice", escrowed, []change{taken(digest("4"), 7)},
			unsealed, EventFound, func(n Next) bool { return n.Status.Round == 7 }},
		"written again, and pushed already": {"that version is of this round", escrowed, []change{taken(digest("4"), 5), add(4)},
			unsealed, EventFound, func(n Next) bool { return n.Status.FloorVersion == 3 }},
		"not written again": {"it goes on to be sealed", escrowed, []change{taken(digest("3"), 5)},
			stays, "", func(n Next) bool { return n.Wish.Sealed }},
		"missing, and its pod says another": {"I16: what is restored is compared with what was stored", failed, []change{gone, tells("9")},
			stays, "", missing(3, digest("3"))},
		"not made yet, and late": {"what a pod can write is not what is missing", unsealed, []change{unsealedFor(boot, digest("4")), noData, nothingStored, bare, unnamed, lateBy(time.Hour)},
			failed, EventNotEscrowed, func(n Next) bool { return n.Status.KeyringDigest == "" && !n.Missing }},
		"not missing": {"what an old pod has is not what will be", unsealed, []change{aboutToUnseal(boot), noData, nothingStored, bare, unnamed},
			stays, "", func(n Next) bool { return n.Status.KeyringDigest == "" }},
	})
}

// I14: what only looks like lost keys.
func TestWhatOnlyLooksLikeLostKeys(t *testing.T) {
	is := ofSite(lostSilently)
	with := func(more ...change) []change {
		return append([]change{unsealedFor(rot, ""), stage(rotatingStage), silent, inPod("one", "two")}, more...)
	}
	starts := func(_ *Group, s *Site) { s.Pod.Silent = false }
	old := func(_ *Group, s *Site) { s.Pod.Current = false }
	sayAll(t, map[string]says{
		"its seed, in the next pod":          {"they died with the one before", is, unsealed, with(), true},
		"another one that is in escrow":      {"nothing goes with this pod", is, unsealed, with(tells(digest("2"))), true},
		"rotated before, and written again":  {"no rotation goes on", is, unsealed, with(stage(""), hasRotated), false},
		"in an old pod":                      {"its successor may start", is, unsealed, with(old), false},
		"a mysqld that starts just now":      {"it may answer any moment", is, unsealed, with(starts), false},
		"found, not heard":                   {"nobody knows what is in the pod", is, unsealed, with(bare, hasRotated, unheard), false},
		"found, nothing is in the next pod":  {"it started from nothing", is, unsealed, with(bare, hasRotated, tells("")), true},
		"found, another is in the next pod":  {"that may be the only copy", is, unsealed, with(bare, hasRotated, tells(digest("9"))), false},
		"adopted, nothing is in the pod":     {"it may be in the clear still", is, unsealed, with(bare, tells("")), false},
		"it is being written":                {"that may be what the data needs", is, unsealed, with(tells("")), false},
		"to be cloned, in the same pod":      {"nobody said that the data may go", is, unsealed, with(inPod("one", "one"), noData, cloneWanted), false},
		"confirmed, marked, in the same pod": {"I15: the mark goes first", is, unsealed, with(inPod("one", "one"), cloneConfirmed), false},
	})
	noted := func(want string) func(Next) bool {
		return func(n Next) bool { return n.Status.RotationPod == want }
	}
	decideAll(t, map[string]transition{
		"noted only in a rotation": {"what a clone does is no rotation", unsealed, []change{unsealedFor(clone, digest("4")), inPod("", "two")},
			stays, "", noted("")},
		"an old pod is not noted": {"keys are made in its successor", unsealed, []change{unsealedFor(rot, digest("3")), stage(rotatingStage), inPod("one", "two"), old},
			stays, "", noted("one")},
		"nor one without a name": {"it is no other one", unsealed, []change{unsealedFor(rot, digest("3")), stage(rotatingStage), inPod("one", "")},
			stays, "", noted("one")},
		"nor one in which mysqld does not start": {"what keys were made, were made before",
			unsealed, []change{unsealedFor(rot, ""), stage(rotatingStage), silent, inPod("one", "two"), onlyCopy}, stays, "", noted("one")},
		"nor a sealed one": {"no key is made there", unsealed, []change{unsealedFor(rot, digest("3")), stage(rotatingStage), inPod("one", "two"), func(_ *Group, s *Site) { s.Report.Sealed = true }},
			stays, "", noted("one")},
	})
}
