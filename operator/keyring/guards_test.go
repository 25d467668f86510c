// SPDX-License-Identifier: Apache-2.0

package keyring

import (
	"testing"
	"time"

	"github.com/mysql-mfg/mfg/api/v1alpha1"
)

const (
	rotatingStage = v1alpha1.KeyringRotating
	sealingStage  = v1alpha1.KeyringSealing
)

func unknown(g *Group, _ *Site)         { g.Known = false }
func roleMoves(g *Group, _ *Site)       { g.Transition = true }
func plannedFailover(g *Group, _ *Site) { g.PlannedTo = "c" }
func adopted(g *Group, _ *Site)         { g.Adopt = true }
func noDonor(g *Group, _ *Site)         { g.Donor = false }
func noDeployment(_ *Group, s *Site)    { s.Rendered = Rendered{} }
func notReady(_ *Group, s *Site)        { s.Pod.Ready = false }
func isBusy(_ *Group, s *Site)          { s.Busy = true }
func unheard(_ *Group, s *Site)         { s.Report = nil }
func nothingStored(_ *Group, s *Site)   { s.Versions = nil }
func unnamed(_ *Group, s *Site) {
	s.Status.KeyringSecret, s.Status.KeyringVersion, s.Status.KeyringDigest = "", 0, ""
}
func behind(_ *Group, s *Site)     { s.Pod.Settled = false }
func restless(_ *Group, s *Site)   { s.Calm = 0 }
func unanswered(_ *Group, s *Site) { s.Report.Component = "" }
func tells(digest string) change {
	return func(_ *Group, s *Site) { s.Report.Digest = digest }
}

// replaced is an escrow Secret of the same name that was stored with another content.
func replaced(_ *Group, s *Site) { s.Versions[2].Digest, s.Versions[2].Annotated = "other", "other" }

// bare is a round that began from nothing.
func bare(_ *Group, s *Site)    { s.Status.SeedVersion, s.Status.SeedDigest = 0, "" }
func jobRuns(_ *Group, s *Site) { s.Job.Running = true }
func seedIs(number int64) change {
	return func(_ *Group, s *Site) { s.Status.SeedVersion, s.Status.SeedDigest = number, ver(number).Digest }
}

// forgotten is an unsealed pod of a group that was made again.
func forgotten(live string) change {
	return func(g *Group, s *Site) {
		unsealedFor(rot, live)(g, s)
		s.Status = v1alpha1.SiteKeyringStatus{}
	}
}

// says is one answer of a guard that is asked by itself: another one may stand in front of it, and is no reason to believe it.
type says struct {
	reason string
	is     func(Group, Site) bool
	from   v1alpha1.KeyringPhase
	given  []change
	want   bool
}

func sayAll(t *testing.T, tests map[string]says) {
	t.Helper()
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			g, s := at(tt.from, tt.given...)
			if got := tt.is(g, s); got != tt.want {
				t.Errorf("%s: says %v of %+v", tt.reason, got, s)
			}
		})
	}
}

// I14, I16: what a site that status does not know is not taken for.
func TestNothingIsBegunOnAGuess(t *testing.T) {
	waits := func(n Next) bool { return n.Wish.Kept != "" && !n.Wish.Encrypted }
	decideAll(t, map[string]transition{
		"its pod is sealed, and nothing is in escrow": {"I14: only its pod has the keyring", none, []change{noData, nothingStored},
			failed, EventEscrowMissing, func(n Next) bool { return n.Wish.Kept != "" }},
		"a pod that has not told, and is to be cloned": {"what it has is replaced, whatever it is", none, []change{forgotten(""), unheard, noData, cloneWanted, nothingStored},
			unsealed, EventUnsealed, func(n Next) bool { return n.Status.Work == boot }},
		"adopted, an empty site whose pod has not told": {"I14: it is not adopted before it has data, and its pod may tell", none, []change{adopted, forgotten(""), unheard, noData, nothingStored},
			stays, "", waits},
		"adopted before, and a pod has not told": {"I14: its keyring may be one of those in escrow", none, []change{adopted, forgotten(""), unheard},
			stays, "", waits},
		"adopted before, nothing in escrow, and a pod has not told": {"I14: its keyring may be in its memory alone", none,
			[]change{adopted, forgotten(""), unheard, nothingStored}, stays, "", waits},
		"adopted before, and all keys are lost": {"I14: what was escrowed may be restored, and a fresh keyring reads nothing", none,
			[]change{adopted, forgotten(""), unheard, nothingStored, podLost}, stays, "", nil},
		"its Deployment is gone": {"that is made anew, and is no other version", sealed, []change{noDeployment},
			stays, "", nil},
		"rolled back": {"it is on its way to be sealed", sealed, []change{func(_ *Group, s *Site) { s.Status.KeyringSecret, s.Status.KeyringDigest = ver(2).Name, ver(2).Digest }},
			escrowed, "", func(n Next) bool { return n.Status.Stage == sealingStage }},
		"empty volume of the active site, without its mark": {"I14: a person decides", sealed, []change{emptied, isActive, noData},
			stays, "", nil},
		"empty volume, unsealed already": {"its pod is about to be replaced", failed, []change{aboutToUnseal(clone), noData, emptied},
			stays, "", func(n Next) bool { return n.Status.Round == 5 }},
	})
	sayAll(t, map[string]says{
		"adopted, its Deployment is gone": {"I14: what is in escrow may read what it has", isAdopted, none, []change{adopted, noDeployment}, false},
		"adopted, its pod is sealed":      {"its keyring is needed, wherever it is", isAdopted, none, []change{adopted, nothingStored}, false},
	})
}

// I14: what a clone needs before a site is unsealed for it, and what it starts from.
func TestACloneIsBegunAndGivenUp(t *testing.T) {
	decideAll(t, map[string]transition{
		"while it is made sealed": {"it is sealed first", escrowed, []change{work(boot), stage(sealingStage), notReady, noData, cloneWanted},
			stays, "", nil},
		"in a pod that cannot start": {"only a confirmed order gives up what its keyring reads", sealed, []change{podLost, noData, cloneWanted},
			stays, "", nil},
		"after a rotation": {"what is left of the work before is of no clone", sealed, []change{hasRotated, stage(rotatingStage), noData, cloneWanted},
			pending, "", func(n Next) bool { return !n.Status.Rotated && n.Status.Stage == "" }},
		"given up: it became the active site": {"I14: the active site is no copy", pending, []change{work(clone), noData, cloneWanted, isActive},
			sealed, "", func(n Next) bool { return n.Status.Work == "" }},
		"given up: a rotation is ordered too": {"that order was not carried out, nor refused", pending, []change{work(clone), rotate("b")},
			sealed, "", not(has[Answer])},
		"given up: promoted before it had all": {"I14: in a new pod it would be wiped", unsealed, []change{aboutToUnseal(clone), isActive, noData},
			sealed, "", func(n Next) bool { return n.Wish.Sealed }},
		"from a damaged version": {"that opens nothing", pending, []change{work(clone), noData, cloneConfirmed, changed},
			unsealed, EventUnsealed, func(n Next) bool { return n.Wish.Secret == "" }},
		"confirmed, and its pod starts": {"I14: from its keyring, so that nothing goes before the clone", pending, []change{work(clone), noData, cloneConfirmed},
			unsealed, EventUnsealed, func(n Next) bool { return n.Wish.Version == 3 }},
		"not confirmed, and its pod is lost": {"from its keyring: nobody gave it up", pending, []change{work(clone), noData, cloneWanted, podLost},
			unsealed, EventUnsealed, func(n Next) bool { return n.Wish.Version == 3 }},
		"confirmed, while it is cloned": {"one round is enough", unsealed, []change{unsealedFor(clone, digest("4")), noData, cloneConfirmed},
			stays, "", func(n Next) bool { return n.Status.Round == 5 }},
		"its seed opens nothing": {"it is cloned from a fresh keyring", unsealed, []change{unsealedFor(clone, ""), podLost, noData, cloneWanted},
			unsealed, EventUnsealed, func(n Next) bool { return n.Wish.Secret == "" && n.Status.Round == 6 }},
	})
	sayAll(t, map[string]says{
		"its Secret is gone": {"I14: only a confirmed order gives up what it reads", isRecloned, sealed, []change{noData, cloneWanted, gone}, false},
	})
}

// forOrder has the rotation carried out for an order.
func forOrder(id string) change { return func(_ *Group, s *Site) { s.Status.Request = id } }

// order is an order for the rotation of b.
func order(id string) change {
	return func(g *Group, _ *Site) { g.RotateSet, g.Rotate, g.RotateID = true, "b", id }
}

// I20, I16: when a rotation begins, and when it does not go on.
func TestARotationIsBegunAndGivenUp(t *testing.T) {
	open := []change{unsealedFor(rot, digest("3")), isActive}
	notSealed := func(n Next) bool { return !n.Wish.Sealed }
	with := func(more ...change) []change { return append(append([]change{}, open...), more...) }
	decideAll(t, map[string]transition{
		"ordered again as soon as it was answered": {"that is another order, which is not done yet", sealed, []change{hasRotated, forOrder("1"), order("2")},
			stays, "", func(n Next) bool { return !n.Status.Rotated && n.Status.Request == "" && !has[Answer](n) }},
		"the order it was carried out for": {"it has no answer yet", sealed, []change{hasRotated, forOrder("1"), order("1")},
			stays, "", func(n Next) bool { return n.Status.Rotated && has[Answer](n) }},
		"an order begins it": {"the answer is to be that order's", sealed, []change{order("1")},
			pending, "", func(n Next) bool { return n.Status.Request == "1" }},
		"ordered anew while it goes on": {"one rotation is enough for both", unsealed, []change{unsealedFor(rot, digest("3")), forOrder("1"), order("2")},
			stays, "", func(n Next) bool { return n.Status.Request == "2" }},
		"a clone goes on, and a rotation is ordered": {"a clone answers no rotation", unsealed, []change{unsealedFor(clone, digest("3")), noData, cloneWanted, order("2")},
			escrowed, EventEscrowed, func(n Next) bool { return n.Status.Request == "" }},
		"another site is ordered while it goes on": {"that order is another site's", unsealed, []change{unsealedFor(rot, digest("3")), forOrder("1"), rotate("c")},
			escrowed, "", func(n Next) bool { return n.Status.Request == "1" && !has[Answer](n) }},
		"nothing is known": {"I20: it may be the active site by now", sealed, []change{rotate("b"), unknown},
			stays, "", not(has[Answer])},
		"pending, the active site changes": {"I20: nothing was changed yet", pending, []change{work(rot), rotate("b"), roleMoves},
			sealed, EventRotationRefused, nil},
		"pending, a planned failover": {"I20: nothing was changed yet", pending, []change{work(rot), rotate("b"), plannedFailover},
			sealed, EventRotationRefused, nil},
		"opened, and still ordered":         {"I20: given up, and the order is answered", unsealed, with(rotate("b")), escrowed, EventRotationRefused, func(n Next) bool { return n.Wish.Sealed && has[Answer](n) }},
		"opened, another is ordered":        {"that order is another site's", unsealed, with(rotate("c")), escrowed, "", not(has[Answer])},
		"opened, rotated":                   {"I16: a report may be old", unsealed, with(stage(rotatingStage), hasRotated), stays, "", notSealed},
		"opened, while keys are rotated":    {"I16: it may have another one any moment", unsealed, with(stage(rotatingStage), jobRuns), stays, "", notSealed},
		"opened, newer ones of a roll-back": {"it goes back to its seed", unsealed, with(add(4), floor(4)), escrowed, "", func(n Next) bool { return n.Wish.Version == 3 }},
		"opened, its seed is gone": {"I16: what status names is what is missing", unsealed, with(gone), escrowed, "", func(n Next) bool {
			return n.Status.KeyringSecret == ver(3).Name && n.Status.KeyringDigest == digest("3")
		}},
		"about to be sealed, Secret gone": {"I16: nothing is given up meanwhile", failed, with(stage(sealingStage), gone), stays, "", func(n Next) bool { return n.Wish.Kept != "" }},
		"a clone is no rotation": {"I16: it is sealed once nothing works on it", unsealed, []change{unsealedFor(clone, digest("3")), isBusy},
			escrowed, EventEscrowed, notSealed},
		"taken back, it lost its mark": {"it is cloned first, in this very pod", unsealed, []change{unsealedFor(rot, digest("3")), noData},
			stays, "", func(n Next) bool { return n.Status.Stage == rotatingStage && MayClone(n.Status) }},
		"the same, the active site": {"I20: nothing is begun there", unsealed, []change{unsealedFor(rot, digest("4")), noData, isActive},
			stays, "", func(n Next) bool { return n.Status.Stage == "" }},
		"the same, its pod was not heard": {"I14: it may be the sealed one still", unsealed, []change{aboutToUnseal(rot), rotate("b"), noData},
			stays, "", func(n Next) bool { return n.Status.Stage == "" }},
		"the same, in which pod": {"I14: what is done there is not done in another", unsealed, []change{unsealedFor(rot, digest("3")), noData, inPod("", "two"), unanswered},
			stays, "", func(n Next) bool { return n.Status.RotationPod == "two" }},
		"a rotation of another round ended": {"I14: this one was not begun", unsealed, []change{unsealedFor(rot, digest("3")), jobDone, behind, rotate("b")},
			stays, "", func(n Next) bool { return !n.Status.Rotated }},
		"rotated, and still said to be": {"it goes on to be escrowed", unsealed, []change{unsealedFor(rot, digest("4")), stage(rotatingStage), hasRotated, jobDone, add(4)},
			escrowed, EventEscrowed, nil},
		"opened, half rotated, pushed": {"it is sealed with what it has", unsealed, []change{unsealedFor(rot, digest("4")), stage(rotatingStage), isActive, add(4)},
			escrowed, EventEscrowed, func(n Next) bool { return n.Status.KeyringVersion == 4 }},
		"escrowed, and written again": {"I14: that it was begun is not forgotten", escrowed, []change{unsealedFor(rot, digest("4")), stage(rotatingStage), hasRotated},
			unsealed, "", func(n Next) bool { return n.Status.Stage == rotatingStage }},
		"found, and not told": {"nothing is under way that it could go back to", escrowed, []change{unsealedFor(rot, digest("4")), work(""), stage(sealingStage), unanswered},
			stays, "", nil},
		"sealed before it holds data": {"I16: the clone comes first, and writes the keyring", escrowed, []change{work(boot), noData},
			stays, "", nil},
		"rolled back after a rotation": {"the version before it has the old master keys", escrowed, []change{stage(sealingStage), hasRotated, rotatedOnce},
			sealed, EventSealed, func(n Next) bool { return n.Status.RotatedVersion == 1 }},
		"in the clear, nobody said so": {"a person accepts that what exists stays so", none, []change{nothingStored, func(_ *Group, s *Site) { s.Rendered = Rendered{Exists: true} }},
			stays, "", func(n Next) bool { return !n.Wish.Encrypted }},
		"rotated, and written again": {"I14: what is not in escrow is not rotated once more", unsealed, []change{unsealedFor(rot, digest("4")), hasRotated, rotate("b")},
			stays, "", func(n Next) bool { return n.Status.Stage == "" && !has[Rotate](n) }},
	})
}

// I14: what counts as lost with a pod, and what does not.
func TestWhatALostPodHad(t *testing.T) {
	decideAll(t, map[string]transition{
		"it was sealed": {"it had nothing that is not in escrow", escrowed, []change{work(rot), hasRotated, stage(sealingStage), podLost, seedIs(2)},
			stays, "", func(n Next) bool { return n.Status.Round == 4 && n.Wish.Sealed }},
		"in a rotation, pushed": {"what is in escrow is the current one", unsealed, []change{unsealedFor(rot, ""), stage(rotatingStage), podLost, add(4)},
			unsealed, EventUnsealed, func(n Next) bool { return n.Status.KeyringVersion == 4 && n.Status.KeyringDigest == digest("4") }},
		"in a rotation, the active site": {"I14: it is what the others are copies of", unsealed, []change{unsealedFor(rot, ""), stage(rotatingStage), podLost, isActive},
			stays, "", not(has[Unprovision])},
		"in a rotation, pushed, in which pod": {"a mysqld that does not start in the next one shows that keys are missing",
			unsealed, []change{unsealedFor(rot, ""), stage(rotatingStage), podLost, inPod("one", "two"), add(4)},
			unsealed, EventUnsealed, func(n Next) bool { return n.Status.RotationPod == "one" }},
		"in a rotation from nothing": {"it is cloned too",
			unsealed, []change{unsealedFor(rot, ""), bare, floor(3), stage(rotatingStage), podLost, noData},
			unsealed, EventUnsealed, func(n Next) bool { return n.Status.Work == clone }},
		"after a rotation, marked": {"what begins is a clone, of which nothing was done",
			unsealed, []change{unsealedFor(rot, ""), stage(rotatingStage), hasRotated, podLost, noData},
			unsealed, EventUnsealed, func(n Next) bool { return n.Status.Work == clone && n.Status.Stage == "" && !n.Status.Rotated }},
		"made sealed after a rotation, Secret gone": {"which work had ended is not forgotten",
			escrowed, []change{work(rot), hasRotated, stage(sealingStage), gone},
			failed, EventEscrowMissing, func(n Next) bool { return n.Status.Work == rot && n.Status.Stage == sealingStage }},
		"written again in a clone": {"it is that clone's, and found by nobody",
			escrowed, []change{unsealedFor(clone, digest("4"))},
			unsealed, "", func(n Next) bool { return n.Status.Work == clone && n.Status.SeedVersion == 3 }},
	})
	sayAll(t, map[string]says{
		"in a rotation":         {"new keys died with it", func(_ Group, s Site) bool { return lostKeys(s) }, unsealed, []change{unsealedFor(rot, ""), stage(rotatingStage), podLost}, true},
		"in a rotation, pushed": {"the next pod starts from what is in escrow", func(_ Group, s Site) bool { return lostKeys(s) }, unsealed, []change{unsealedFor(rot, ""), stage(rotatingStage), podLost, add(4)}, false},
	})
}

// What is late is told, and only that.
func TestLate(t *testing.T) {
	hour := lateBy(time.Hour)
	waiting := func(more ...change) []change {
		return append([]change{unsealedFor(rot, digest("3")), rotate("b"), behind, hour}, more...)
	}
	decideAll(t, map[string]transition{
		"a clone whose pod was not replaced": {"a clone is ordered for a reason", unsealed, []change{aboutToUnseal(clone), noData, cloneWanted, hour},
			failed, EventNotEscrowed, func(n Next) bool { return !n.Missing }},
		"a rotation whose seed is gone":    {"I16: what its data needs is in no escrow", unsealed, waiting(gone), failed, EventNotEscrowed, nil},
		"a rotation whose seed is another": {"I16: nor then", unsealed, waiting(replaced), failed, EventNotEscrowed, nil},
		"nobody knows since when": {"an operator of another version began it", unsealed, []change{unsealedFor(clone, digest("4")), hour, func(_ *Group, s *Site) { s.Status.Since = nil }},
			stays, "", nil},
		"without a limit": {"nobody asked for one", unsealed, []change{unsealedFor(clone, digest("4")), hour, func(g *Group, _ *Site) { g.EscrowTimeout = 0 }},
			stays, "", nil},
	})
}

// Who leads the rotation of several sites asks the guards of one before: what they say is what the order would be answered.
func TestRefusal(t *testing.T) {
	g := Group{Known: true, Sites: []Site{{Name: "a", Active: true}, {Name: "b", Provisioned: true, Pod: Pod{Settled: true}, Status: v1alpha1.SiteKeyringStatus{Phase: sealed}}}}
	for site, want := range map[string]string{"a": v1alpha1.AnswerIsActiveSite, "b": v1alpha1.AnswerOtherKeyring, "nowhere": v1alpha1.AnswerSiteWithoutData} {
		if reason, why := Refusal(g, site); reason != want || why == "" {
			t.Errorf("%s: %s, %q", site, reason, why)
		}
	}
	g.Sites[0].Status.Phase = sealed
	if reason, why := Refusal(g, "b"); reason != "" || why != "" {
		t.Errorf("%s, %q", reason, why)
	}
}
