// SPDX-License-Identifier: Apache-2.0

package keyring

import (
	"strings"
	"testing"
	"time"

	"github.com/mysql-mfg/mfg/api/v1alpha1"
)

// aboutToUnseal puts the site into a round whose pod was not replaced yet.
func aboutToUnseal(work v1alpha1.KeyringWork) change {
	return func(_ *Group, s *Site) {
		st := &s.Status
		st.Work, st.Round, st.SeedVersion, st.SeedDigest, st.FloorVersion = work, 5, 3, digest("3"), 3
		s.TokenRound = 5
	}
}

// unborn is an unsealed pod that waits for the Secret that it is to start from.
func unborn(_ *Group, s *Site) {
	s.Rendered, s.Report = Rendered{Exists: true, Keyring: true}, nil
	s.Pod = Pod{UID: "two", Current: true, Unborn: true, Round: 5}
}

func changed(_ *Group, s *Site) { s.Versions[2].Digest = "other" }

// I16: what a site was to be unsealed from is gone. Until its pod is replaced that one has it still; afterwards nobody has.
func TestTheSeedIsGone(t *testing.T) {
	asked := func(n Next) bool {
		return n.Status.Work != "" && n.Lost && strings.Contains(n.Status.Message, "reclone-site=b:confirm") && !has[Unprovision](n)
	}
	decideAll(t, map[string]transition{
		"rotation, old pod": {"its memory has the only copy", unsealed, []change{aboutToUnseal(rot), rotate("b"), gone}, failed, EventEscrowMissing, func(n Next) bool {
			return n.Wish.Kept != "" && n.Wish.Sealed && n.Wish.Version == 3 && n.Status.Work == "" && n.Missing
		}},
		"rotation, old pod, changed":           {"as good as gone", unsealed, []change{aboutToUnseal(rot), rotate("b"), changed}, failed, EventEscrowMissing, func(n Next) bool { return n.Wish.Kept != "" && n.Wish.Sealed }},
		"clone, old pod":                       {"nobody said that the data may go", unsealed, []change{aboutToUnseal(clone), noData, cloneWanted, gone}, failed, EventEscrowMissing, func(n Next) bool { return n.Wish.Kept != "" }},
		"confirmed clone, old pod":             {"a person said so", unsealed, []change{aboutToUnseal(clone), noData, cloneConfirmed, gone}, stays, "", nil},
		"pending clone":                        {"I14: it would begin with a fresh keyring, and wipe", pending, []change{work(clone), noData, cloneWanted, gone}, failed, EventEscrowMissing, func(n Next) bool { return n.Wish.Kept != "" && n.Wish.Sealed }},
		"restored":                             {"sealed as before; the order is answered", failed, nil, sealed, EventEscrowBack, nil},
		"rotation, new pod":                    {"it is told at once, and nothing is given up", unsealed, []change{aboutToUnseal(rot), rotate("b"), unborn, gone}, failed, EventEscrowMissing, asked},
		"rotation, new pod, changed":           {"the pod does not start from it", unsealed, []change{aboutToUnseal(rot), rotate("b"), unborn, changed}, failed, EventEscrowMissing, asked},
		"rotating, new pod":                    {"the keys may not have been changed yet: a person decides", unsealed, []change{aboutToUnseal(rot), stage(v1alpha1.KeyringRotating), unborn, gone}, failed, EventEscrowMissing, asked},
		"rotating, new pod, later":             {"the mark stays too", failed, []change{aboutToUnseal(rot), stage(v1alpha1.KeyringRotating), unborn, gone}, stays, "", asked},
		"rotating, new pod, marked":            {"I14", failed, []change{aboutToUnseal(rot), stage(v1alpha1.KeyringRotating), unborn, gone, noData, cloneWanted}, stays, "", asked},
		"rotating, new pod, given up":          {"a person said so", failed, []change{aboutToUnseal(rot), stage(v1alpha1.KeyringRotating), unborn, gone, noData, cloneConfirmed}, unsealed, EventUnsealed, func(n Next) bool { return n.Status.Work == clone && n.Wish.Secret == "" && n.Wish.Kept == "" }},
		"unsealed, new pod, given up":          {"the same", unsealed, []change{aboutToUnseal(rot), unborn, gone, noData, cloneConfirmed}, unsealed, EventUnsealed, func(n Next) bool { return n.Status.Work == clone && n.Wish.Secret == "" }},
		"clone, new pod":                       {"the same for a clone", unsealed, []change{aboutToUnseal(clone), unborn, gone, noData, cloneWanted}, failed, EventEscrowMissing, asked},
		"a later version of the round":         {"it starts from that one", unsealed, []change{aboutToUnseal(rot), stage(v1alpha1.KeyringRotating), unborn, gone, add(4)}, unsealed, EventUnsealed, func(n Next) bool { return n.Wish.Version == 4 }},
		"a later version, work done":           {"sealed with that one", escrowed, []change{aboutToUnseal(clone), unborn, gone, add(4), func(_ *Group, s *Site) { s.Status.KeyringSecret, s.Status.KeyringDigest = ver(4).Name, digest("4") }}, escrowed, "", func(n Next) bool { return n.Wish.Sealed && n.Wish.Version == 4 }},
		"the pod has begun":                    {"it may have the keyring in its memory", unsealed, []change{aboutToUnseal(rot), unborn, gone, func(_ *Group, s *Site) { s.Pod.Unborn = false }}, stays, "", func(n Next) bool { return !n.Lost && n.Wish.Kept != "" }},
		"a pod of an earlier round":            {"it is about to be replaced", unsealed, []change{aboutToUnseal(rot), unborn, gone, func(_ *Group, s *Site) { s.Pod.Round = 4 }}, stays, "", func(n Next) bool { return !n.Lost }},
		"unborn, and the Secret is there":      {"it is about to start", unsealed, []change{aboutToUnseal(rot), unborn}, stays, "", func(n Next) bool { return !n.Lost }},
		"starved, and the Secret is back":      {"it goes on", failed, []change{aboutToUnseal(rot), rotate("b"), unborn}, stays, "", func(n Next) bool { return !n.Lost && n.Wish.Version == 3 && !n.Wish.Sealed }},
		"gone before the group was made again": {"what its pod says is missing is noted", failed, []change{gone, func(_ *Group, s *Site) { s.Status.KeyringDigest = "" }}, stays, "", func(n Next) bool { return n.Status.KeyringDigest == digest("3") && n.Wish.Kept != "" }},
		"escrow gone, unsealed pod serves":     {"its pod puts it there again", escrowed, []change{unsealedFor(clone, digest("3")), gone}, failed, EventEscrowMissing, func(n Next) bool { return n.Wish.Kept != "" }},
	})
}

// A group that was made again while a site was unsealed: status knows nothing, and the pod that lives on may have what is nowhere else.
func TestAGroupIsMadeAgainWhileASiteIsUnsealed(t *testing.T) {
	noMysqld := func(_ *Group, s *Site) { s.Report.Component = "" }
	waits := func(n Next) bool { return n.Wish.Kept != "" && !n.Wish.Encrypted }
	decideAll(t, map[string]transition{
		"not heard yet":                 {"the newest in escrow may not be what the pod has", none, []change{forgotten(""), unheard}, stays, "", waits},
		"not heard yet, nothing stored": {"nor is it new", none, []change{forgotten(""), unheard, noData, func(_ *Group, s *Site) { s.Versions = nil }}, stays, "", waits},
		"what it has is in escrow":      {"that one", none, []change{forgotten(digest("2"))}, escrowed, EventFound, func(n Next) bool { return n.Wish.Version == 2 }},
		"what it has is in no escrow": {"into escrow, and the pod stays", none, []change{forgotten(digest("4"))}, unsealed, EventFound, func(n Next) bool {
			return n.Wish.Kept != "" && n.Status.Round == 5 && !has[MakeToken](n) && n.Status.FloorVersion == 3
		}},
		"the same, not known to hold it": {"nobody becomes the first active site before it is", none, []change{forgotten(digest("4")), noData}, unsealed, EventFound, func(n Next) bool { return n.Wish.Kept != "" }},
		"the same, to be cloned":         {"the clone goes into this very pod", none, []change{forgotten(digest("4")), noData, cloneWanted}, unsealed, EventFound, func(n Next) bool { return n.Wish.Kept != "" && MayClone(n.Status) }},
		"to be cloned, in escrow":        {"not the newest, which its data may not need", none, []change{forgotten(digest("2")), noData, cloneWanted}, escrowed, EventFound, func(n Next) bool { return n.Wish.Version == 2 }},
		"nothing stored yet":             {"a bring-up goes on where it was", none, []change{forgotten(digest("4")), noData, func(_ *Group, s *Site) { s.Versions = nil }}, unsealed, EventFound, func(n Next) bool { return n.Wish.Kept != "" && n.Status.Work == rot }},
		"its pod cannot start":           {"nobody has another one", none, []change{forgotten(""), podLost}, escrowed, EventFound, func(n Next) bool { return n.Wish.Version == 3 }},
		"its pod never began":            {"the same", none, []change{forgotten(""), unborn}, escrowed, EventFound, func(n Next) bool { return n.Wish.Version == 3 }},
		"its mysqld has not answered":    {"what lies there may be older than what the data needs", none, []change{forgotten(digest("2")), noMysqld}, stays, "", waits},
		"its mysqld does not start":      {"what lies there is in escrow, so nothing is lost with it", none, []change{forgotten(digest("2")), noMysqld, func(_ *Group, s *Site) { s.Pod.Silent = true }}, escrowed, EventFound, func(n Next) bool { return n.Wish.Version == 3 }},
		"neither, and nowhere else":      {"a person decides", none, []change{forgotten(digest("4")), noMysqld, func(_ *Group, s *Site) { s.Pod.Silent = true }}, stays, "", waits},
		"taken, and to be cloned": {"another unsealed pod would start from nothing", escrowed, []change{unsealedFor(rot, digest("4")), add(4), hasRotated, stage(v1alpha1.KeyringRotating), floor(3), noData, func(_ *Group, s *Site) {
			s.Status.SeedVersion = 0
			s.Status.KeyringSecret, s.Status.KeyringVersion, s.Status.KeyringDigest = ver(4).Name, 4, digest("4")
		}}, stays, "", func(n Next) bool { return n.Wish.Kept != "" && n.Wish.Version == 4 }},
		"taken, its pod died, the next has nothing": {"what was in escrow by then is used", unsealed, []change{unsealedFor(rot, ""), add(4), hasRotated, stage(v1alpha1.KeyringRotating), floor(3), silent, inPod("one", "two"), func(_ *Group, s *Site) { s.Status.SeedVersion, s.Report.Digest = 0, "" }}, unsealed, EventUnsealed, func(n Next) bool { return n.Wish.Version == 4 && n.Status.Round == 6 }},
		"what was there before it":                  {"not what it was taken with", unsealed, []change{unsealedFor(rot, digest("2")), hasRotated, stage(v1alpha1.KeyringRotating), floor(3), func(_ *Group, s *Site) { s.Status.SeedVersion = 0 }}, stays, "", nil},
		"taken in, and written again": {"what the pod has is what the data needs", escrowed, []change{forgotten(digest("4")), func(_ *Group, s *Site) {
			s.Status = v1alpha1.SiteKeyringStatus{Name: "b", Phase: escrowed, Stage: v1alpha1.KeyringSealing, KeyringSecret: ver(3).Name, KeyringVersion: 3, KeyringDigest: digest("3")}
		}}, unsealed, EventFound, func(n Next) bool { return n.Wish.Kept != "" && !n.Wish.Sealed }},
	})

	// It goes on to the end: pushed, escrowed, calm, sealed with what the pod had.
	g, _ := at(none, forgotten(digest("4")))
	for _, step := range []struct {
		given change
		want  v1alpha1.KeyringPhase
	}{{func(*Group, *Site) {}, unsealed}, {add(4), escrowed}, {func(*Group, *Site) {}, escrowed}} {
		step.given(&g, &g.Sites[1])
		n := Decide(g).Sites[1]
		if g.Sites[1].Status = n.Status; n.Status.Phase != step.want {
			t.Fatalf("%q, want %q: %+v", n.Status.Phase, step.want, n.Status)
		}
	}
	if w := WishOf(g.Name, g.Sites[1]); !w.Sealed || w.Version != 4 {
		t.Errorf("wish %+v", w)
	}
}

// I16: an order that comes while a keyring is taken from the pod in which it was found is not carried out by that: no key was rotated. It is
// begun once the site is sealed.
func TestAKeyringThatWasFoundAnswersNoOrder(t *testing.T) {
	g, _ := at(none, forgotten(digest("4")), rotate("b"), func(g *Group, _ *Site) { g.RotateID = "1" })
	madeSealed := func(_ *Group, s *Site) {
		_, as := at(sealed)
		as.Report.Digest = digest("4")
		s.Report, s.Pod.Projects, s.TokenRound = as.Report, ver(4).Name, 0
		s.Rendered = Rendered{Exists: true, Keyring: true, Sealed: true, Secret: ver(4).Name}
	}
	for _, step := range []struct {
		given   change
		want    v1alpha1.KeyringPhase
		request string
	}{
		{func(*Group, *Site) {}, unsealed, ""}, {add(4), escrowed, ""}, {func(*Group, *Site) {}, escrowed, ""}, {madeSealed, sealed, ""},
		{func(*Group, *Site) {}, pending, "1"},
	} {
		step.given(&g, &g.Sites[1])
		n := Decide(g).Sites[1]
		if has[Answer](n) || n.Status.RotatedVersion != 0 || n.Status.Request != step.request {
			t.Fatalf("%s: rotated for %q: %+v, effects %v", n.Status.Phase, n.Status.Request, n.Status, n.Effects)
		}
		if g.Sites[1].Status = n.Status; n.Status.Phase != step.want {
			t.Fatalf("%q, want %q: %+v", n.Status.Phase, step.want, n.Status)
		}
	}
}

// A person's word that a site is Sealed proves nothing (I16).
func TestAPatchedPhaseIsNotBelieved(t *testing.T) {
	decideAll(t, map[string]transition{
		"in a clone":           {"the clone goes on", sealed, []change{unsealedFor(clone, digest("3")), noData}, unsealed, "", func(n Next) bool { return !n.Wish.Sealed && n.Status.Work == clone }},
		"about to be sealed":   {"the proof comes first", sealed, []change{work(clone), stage(v1alpha1.KeyringSealing), func(_ *Group, s *Site) { s.Pod.Ready = false }}, escrowed, "", func(n Next) bool { return n.Status.Stage == v1alpha1.KeyringSealing }},
		"the Secret is gone":   {"that comes first", sealed, []change{unsealedFor(clone, digest("3")), gone}, failed, EventEscrowMissing, func(n Next) bool { return n.Wish.Kept != "" }},
		"nothing is under way": {"a person ends a recovery with it", sealed, nil, stays, "", nil},
	})
}

// A rotation that waits for its turn is not late: no key was made.
func TestARotationThatWaitsIsNotLate(t *testing.T) {
	decideAll(t, map[string]transition{
		"its pod was not replaced":  {"an ordered update may be paused for hours", unsealed, []change{aboutToUnseal(rot), rotate("b"), lateBy(time.Hour)}, stays, "", nil},
		"it waits for a lag":        {"its keyring is the seed", unsealed, []change{unsealedFor(rot, digest("3")), rotate("b"), behind, lateBy(time.Hour)}, stays, "", nil},
		"its pod has another":       {"a key that is in no escrow", unsealed, []change{unsealedFor(rot, digest("4")), rotate("b"), behind, lateBy(time.Hour)}, failed, EventNotEscrowed, nil},
		"its pod says nothing":      {"nobody knows", unsealed, []change{unsealedFor(rot, ""), rotate("b"), behind, lateBy(time.Hour)}, failed, EventNotEscrowed, nil},
		"the keys are rotated":      {"this takes too long", unsealed, []change{unsealedFor(rot, digest("3")), stage(v1alpha1.KeyringRotating), behind, lateBy(time.Hour)}, failed, EventNotEscrowed, nil},
		"adopted, and not unsealed": {"there is no seed to fall back on", unsealed, []change{unsealedFor(rot, ""), func(_ *Group, s *Site) { s.Status.SeedVersion = 0 }, behind, lateBy(time.Hour)}, failed, EventNotEscrowed, nil},
	})
	// The clock starts again with the rotation itself.
	g, _ := at(unsealed, unsealedFor(rot, digest("3")), rotate("b"), lateBy(time.Hour))
	n := Decide(g).Sites[1]
	if n.Status.Stage != v1alpha1.KeyringRotating || !n.Status.Since.Equal(&n.now) {
		t.Fatalf("%+v", n.Status)
	}
	if g.Sites[1].Status = n.Status; Decide(g).Sites[1].Status.Phase != unsealed {
		t.Error("late as soon as it begins")
	}
}

// I17: a pod whose memory has the only copy of a keyring is not replaced. The phase says so only after the next decision; this says it before.
func TestTheEscrowIsGoneBeforeThePhaseSaysSoI17(t *testing.T) {
	is := ofSite(EscrowIsGone)
	sayAll(t, map[string]says{
		"sealed, and it is there":  {"the next pod starts from it", is, sealed, nil, false},
		"sealed, and it is gone":   {"its memory has the only copy", is, sealed, []change{gone}, true},
		"sealed, and it changed":   {"as good as gone", is, sealed, []change{changed}, true},
		"about to be unsealed":     {"its pod is sealed still", is, pending, []change{work(rot), gone}, true},
		"about to be sealed":       {"keys are made no more", is, escrowed, []change{unsealedFor(rot, digest("3")), stage(sealingStage), gone}, true},
		"written by its pod":       {"that one puts it there again", is, unsealed, []change{unsealedFor(rot, digest("3")), gone}, false},
		"never stored":             {"nothing is gone that never was", is, pending, []change{work(boot), unnamed, nothingStored}, false},
		"a site without a keyring": {"nothing of its data needs one", is, none, []change{gone}, false},
	})
}
