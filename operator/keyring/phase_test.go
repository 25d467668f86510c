// SPDX-License-Identifier: Apache-2.0

package keyring

import (
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/mysql-mfg/mfg/api/v1alpha1"
	"github.com/mysql-mfg/mfg/api/wire"
)

var start = time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)

const file = "/run/mysql-keyring/keyring"

func digest(name string) string { return wire.KeyringDigest([]byte(name)) }

// ver is a whole version.
func ver(number int64) Version {
	d := digest(string(rune('0' + number)))
	return Version{Name: v1alpha1.KeyringSecret("orders", "b", number), Number: number, Digest: d, Annotated: d}
}

type change func(*Group, *Site)

// at is a site in a phase, with versions 1 to 3 in escrow and the third current.
func at(phase v1alpha1.KeyringPhase, changes ...change) (Group, Site) {
	v := ver(3)
	s := Site{
		Name: "b", Provisioned: true, Versions: []Version{ver(1), ver(2), v}, Calm: time.Minute,
		Rendered: Rendered{Exists: true, Keyring: true, Sealed: true, Secret: v.Name}, InUse: []string{v.Name},
		Pod:    Pod{Current: true, Ready: true, Settled: true, Projects: v.Name},
		Report: &wire.KeyringReport{Sealed: true, Component: component, Active: true, DataFile: file, ReadOnly: true, MountReadOnly: true, Digest: v.Digest},
		Status: v1alpha1.SiteKeyringStatus{
			Name: "b", Phase: phase, KeyringSecret: v.Name, KeyringVersion: 3, KeyringDigest: v.Digest, Round: 4,
			Since: &metav1.MicroTime{Time: start},
		},
	}
	g := Group{
		Name: "orders", Now: start, RetainVersions: 2, EscrowTimeout: 10 * time.Minute, DataFile: file, Known: true, Donor: true,
	}
	for _, c := range changes {
		c(&g, &s)
	}
	g.Sites = append([]Site{activeSealed()}, s)
	return g, s
}

// activeSealed is the site that is open, sealed with its first version.
func activeSealed() Site {
	v := Version{Name: v1alpha1.KeyringSecret("orders", "a", 1), Number: 1, Digest: digest("a"), Annotated: digest("a")}
	return Site{
		Name: "a", Active: true, Provisioned: true, Versions: []Version{v},
		Status: v1alpha1.SiteKeyringStatus{Name: "a", Phase: sealed, KeyringSecret: v.Name, KeyringVersion: 1, KeyringDigest: v.Digest},
	}
}

// unsealedFor puts the site into a round with a work, seeded from version 3, with a live keyring.
func unsealedFor(work v1alpha1.KeyringWork, live string) change {
	return func(_ *Group, s *Site) {
		st := &s.Status
		st.Work, st.Round, st.SeedVersion, st.SeedDigest = work, 5, 3, digest("3")
		s.TokenRound = 5
		s.Rendered = Rendered{Exists: true, Keyring: true}
		s.Pod.Projects, s.InUse = "", []string{ver(3).Name}
		s.Report = &wire.KeyringReport{Component: component, Active: true, DataFile: file, Digest: live}
	}
}

func rotate(name string) change {
	return func(g *Group, _ *Site) { g.RotateSet, g.Rotate = true, name }
}
func stage(v v1alpha1.KeyringStage) change {
	return func(_ *Group, s *Site) { s.Status.Stage = v }
}

func work(v v1alpha1.KeyringWork) change { return func(_ *Group, s *Site) { s.Status.Work = v } }
func podLost(_ *Group, s *Site)          { s.Pod, s.Report = Pod{Current: true, Lost: true}, nil }

// silent is a mysqld that ends at every start, in a pod that has nothing but its seed.
func silent(_ *Group, s *Site) {
	s.Pod.Ready, s.Pod.Settled, s.Pod.Silent = false, false, true
	s.Report = &wire.KeyringReport{Digest: s.Status.SeedDigest}
}

// inPod says in which pod mysqld ran last while keys may have been rotated, and which one is there.
func inPod(ran, now string) change {
	return func(_ *Group, s *Site) { s.Status.RotationPod, s.Pod.UID = ran, now }
}
func diverged(_ *Group, s *Site)       { s.Diverged = true }
func onlyCopy(_ *Group, s *Site)       { s.Alone = true }
func emptied(_ *Group, s *Site)        { s.Pod.Empty = true }
func noData(_ *Group, s *Site)         { s.Provisioned = false }
func isActive(_ *Group, s *Site)       { s.Active = true }
func cloneWanted(_ *Group, s *Site)    { s.Clone = CloneWanted }
func cloneConfirmed(_ *Group, s *Site) { s.Clone = CloneConfirmed }
func hasRotated(_ *Group, s *Site)     { s.Status.Rotated = true }
func rotatedOnce(_ *Group, s *Site)    { s.Status.RotatedVersion = 1 }
func jobDone(_ *Group, s *Site)        { s.Job.Done = true }
func gone(_ *Group, s *Site)           { s.Versions = s.Versions[:2] }
func add(number int64) change {
	return func(_ *Group, s *Site) { s.Versions = append(s.Versions, ver(number)) }
}

// again stores the content of an older version under a new number.
func again(number, older int64) change {
	return func(_ *Group, s *Site) {
		v := ver(number)
		v.Digest, v.Annotated = ver(older).Digest, ver(older).Digest
		s.Versions = append(s.Versions, v)
	}
}

// floor says up to which version there were some when the round began.
func floor(number int64) change { return func(_ *Group, s *Site) { s.Status.FloorVersion = number } }

func nothing(_ *Group, s *Site) { *s = Site{Name: s.Name} }
func lateBy(d time.Duration) change {
	return func(g *Group, _ *Site) { g.Now = g.Now.Add(d) }
}

const (
	boot  = v1alpha1.KeyringBootstrap
	clone = v1alpha1.KeyringClone
	rot   = v1alpha1.KeyringRotation
)

// stays is a transition to the same phase.
const stays = v1alpha1.KeyringPhase("stays")

// transition is one decision: from where, what is given, and what is to come of it.
type transition struct {
	reason  string
	from    v1alpha1.KeyringPhase
	given   []change
	to      v1alpha1.KeyringPhase
	wantSay Event
	check   func(Next) bool
}

func TestTransitions(t *testing.T) {
	decideAll(t, map[string]transition{
		"new site":         {"bootstrap", none, []change{nothing}, unsealed, EventUnsealed, func(n Next) bool { return n.Status.Work == boot && n.Wish.Secret == "" && n.Status.Round == 1 }},
		"re-created group": {"the highest whole version", none, []change{nothing, add(1), add(2)}, escrowed, EventFound, func(n Next) bool { return n.Wish.Sealed && n.Wish.Version == 2 }},
		"status was wiped": {"what the pod has, not the highest", none, []change{add(4)}, escrowed, EventFound, func(n Next) bool { return n.Wish.Version == 3 }},
		"damaged escrow": {"nothing is started from what is not what was stored", none, []change{nothing, func(_ *Group, s *Site) {
			s.Versions = []Version{{Name: "x", Number: 1, Digest: "other", Annotated: "d"}}
		}}, failed, EventEscrowMissing, nil},
		"damaged and whole": {"the highest that is whole", none, []change{nothing, add(1), func(_ *Group, s *Site) {
			s.Versions = append(s.Versions, Version{Name: "x", Number: 2, Digest: "other", Annotated: "d"})
		}}, escrowed, EventFound, func(n Next) bool { return n.Wish.Version == 1 }},
		"adopted":                                {"a rotation from nothing wipes nothing", none, []change{nothing, func(g *Group, s *Site) { g.Adopt, s.Provisioned, s.Rendered.Exists = true, true, true }}, unsealed, EventAdopted, func(n Next) bool { return n.Status.Work == rot && n.Wish.Secret == "" }},
		"adopted, leftovers":                     {"keyrings of another group of this name do not fit", none, []change{nothing, add(1), func(g *Group, s *Site) { g.Adopt, s.Provisioned, s.Rendered.Exists = true, true, true }}, unsealed, EventAdopted, func(n Next) bool { return n.Status.SeedVersion == 0 }},
		"sealed":                                 {"nothing to do", sealed, nil, stays, "", func(n Next) bool { return n.Wish.Sealed && len(n.Effects) == 0 }},
		"sealed, Secret gone":                    {"only its pod has the keyring", sealed, []change{gone}, failed, EventEscrowMissing, func(n Next) bool { return n.Wish.Kept != "" && n.Wish.Sealed && n.Wish.Version == 3 }},
		"sealed, Secret changed":                 {"as good as gone", sealed, []change{func(_ *Group, s *Site) { s.Versions[2].Digest = "other" }}, failed, EventEscrowMissing, func(n Next) bool { return n.Wish.Kept != "" }},
		"patched to a version that is not there": {"it is told, and nothing rolls", sealed, []change{func(_ *Group, s *Site) { s.Status.KeyringSecret = "typo" }}, failed, EventEscrowMissing, func(n Next) bool { return n.Wish.Kept != "" }},
		"patched to a retained version": {"rolls back", sealed, []change{func(_ *Group, s *Site) {
			s.Status.KeyringSecret, s.Status.KeyringVersion, s.Status.KeyringDigest = ver(2).Name, 2, ver(2).Digest
		}}, escrowed, "", func(n Next) bool { return n.Wish.Version == 2 && n.Wish.Sealed }},
		"restored":                              {"the digest says enough", failed, nil, sealed, EventEscrowBack, func(n Next) bool { return n.Wish.Kept == "" }},
		"still gone":                            {"stays", failed, []change{gone}, stays, "", func(n Next) bool { return n.Wish.Kept != "" && n.Status.Message != "" }},
		"phase patched, Secret gone":            {"the patch restores nothing", sealed, []change{gone}, failed, EventEscrowMissing, nil},
		"restored while sealing":                {"goes on", failed, []change{work(boot), stage(v1alpha1.KeyringSealing)}, escrowed, EventEscrowBack, nil},
		"reclone":                               {"unsealed first", sealed, []change{noData, cloneWanted}, pending, "", func(n Next) bool { return n.Status.Work == clone && n.Wish.Sealed }},
		"reclone, not marked":                   {"I15: the mark is not off yet", sealed, []change{cloneWanted}, stays, "", nil},
		"reclone of the active site":            {"never", sealed, []change{noData, cloneWanted, isActive}, stays, "", nil},
		"reclone, Secret gone":                  {"it is told first, and needs a confirmed order", sealed, []change{noData, cloneWanted, gone}, failed, EventEscrowMissing, nil},
		"failed, wanted":                        {"nobody said that the data may go", failed, []change{noData, cloneWanted, gone}, stays, "", nil},
		"failed, confirmed":                     {"unsealed without its old keyring", failed, []change{noData, cloneConfirmed, gone}, pending, "", func(n Next) bool { return n.Status.Work == clone }},
		"about to be sealed, confirmed":         {"its pod does not come up", escrowed, []change{noData, cloneConfirmed, work(clone), stage(v1alpha1.KeyringSealing), podLost}, pending, "", nil},
		"rotation ordered":                      {"a replica", sealed, []change{rotate("b")}, pending, "", func(n Next) bool { return n.Status.Work == rot && n.Wish.Sealed }},
		"rotation of another":                   {"not ours", sealed, []change{rotate("a")}, stays, "", nil},
		"rotation answered":                     {"forgotten once the annotation is gone", sealed, []change{hasRotated}, stays, "", func(n Next) bool { return !n.Status.Rotated }},
		"pending rotation":                      {"seeded from the current version", pending, []change{work(rot), rotate("b")}, unsealed, EventUnsealed, func(n Next) bool { return n.Wish.Version == 3 && !n.Wish.Sealed && n.Wish.Round == 5 }},
		"pending rotation, withdrawn":           {"nothing was changed", pending, []change{work(rot)}, sealed, "", func(n Next) bool { return n.Status.Work == "" }},
		"pending rotation, active":              {"I20", pending, []change{work(rot), rotate("b"), isActive}, sealed, EventRotationRefused, nil},
		"pending rotation, Secret gone":         {"its pod stays sealed", pending, []change{work(rot), rotate("b"), gone}, failed, EventEscrowMissing, func(n Next) bool { return n.Wish.Sealed && n.Wish.Kept != "" }},
		"pending clone":                         {"seeded, so that it starts", pending, []change{work(clone), noData, cloneWanted}, unsealed, EventUnsealed, func(n Next) bool { return n.Wish.Version == 3 }},
		"pending clone, Secret gone":            {"from nothing", pending, []change{work(clone), noData, cloneConfirmed, gone}, unsealed, EventUnsealed, func(n Next) bool { return n.Wish.Secret == "" }},
		"pending clone, pod cannot start":       {"from nothing, as ordered", pending, []change{work(clone), noData, cloneConfirmed, podLost}, unsealed, EventUnsealed, func(n Next) bool { return n.Wish.Secret == "" }},
		"pending clone, has data":               {"no clone is needed any more", pending, []change{work(clone)}, sealed, "", nil},
		"unsealed clone, promoted by order":     {"I14: in a new pod it would be wiped", unsealed, []change{work(clone), isActive, gone}, sealed, "", func(n Next) bool { return n.Status.Work == "" && n.Wish.Sealed && n.Status.SeedVersion == 0 }},
		"late clone, has data":                  {"the same", failed, []change{work(clone)}, sealed, "", func(n Next) bool { return n.Status.Work == "" && n.Wish.Sealed }},
		"unsealed clone, no data":               {"the pod is about to be replaced", unsealed, []change{work(clone), noData}, stays, "", func(n Next) bool { return n.Status.Work == clone && !n.Wish.Sealed }},
		"unsealed rotation":                     {"the mark that keys may be rotated comes first", unsealed, []change{unsealedFor(rot, digest("3")), rotate("b")}, stays, "", func(n Next) bool { return n.Status.Stage == v1alpha1.KeyringRotating && has[Rotate](n) }},
		"unsealed rotation, withdrawn":          {"nothing was changed yet", unsealed, []change{unsealedFor(rot, digest("3"))}, escrowed, "", func(n Next) bool { return n.Wish.Sealed && n.Wish.Version == 3 && !has[Rotate](n) }},
		"late rotation, withdrawn":              {"the same", failed, []change{unsealedFor(rot, digest("3"))}, escrowed, "", func(n Next) bool { return n.Wish.Sealed && n.Wish.Version == 3 }},
		"unsealed rotation, withdrawn just now": {"a report may be old", unsealed, []change{unsealedFor(rot, digest("3")), func(_ *Group, s *Site) { s.Calm = calmBeforeSealing - 1; s.Pod.Settled = false }}, stays, "", func(n Next) bool { return !n.Wish.Sealed }},
		"unsealed rotation, withdrawn, adopted": {"there is nothing to go back to", unsealed, []change{unsealedFor(rot, digest("3")), func(_ *Group, s *Site) { s.Status.SeedVersion = 0; s.Pod.Settled = false }}, stays, "", func(n Next) bool { return !n.Wish.Sealed }},
		"rotating, withdrawn":                   {"the keys may be new already", unsealed, []change{unsealedFor(rot, digest("3")), stage(v1alpha1.KeyringRotating)}, stays, "", has[Rotate]},
		"unsealed rotation, diverged":           {"I10", unsealed, []change{unsealedFor(rot, digest("3")), rotate("b"), diverged}, stays, "", func(n Next) bool { return n.Status.Stage == "" && strings.Contains(n.Status.Message, "no other site") }},
		"active, its job is done":               {"a report may be old", unsealed, []change{unsealedFor(rot, digest("3")), stage(v1alpha1.KeyringRotating), isActive, jobDone}, stays, "", func(n Next) bool { return !n.Wish.Sealed }},
		"active, restless":                      {"an operator that was restarted knows of no job", unsealed, []change{unsealedFor(rot, digest("3")), stage(v1alpha1.KeyringRotating), isActive, func(_ *Group, s *Site) { s.Calm = 0 }}, stays, "", func(n Next) bool { return !n.Wish.Sealed }},
		"unsealed rotation, active":             {"I20: given up", unsealed, []change{unsealedFor(rot, digest("3")), isActive}, escrowed, "", func(n Next) bool { return n.Wish.Sealed && n.Wish.Version == 3 && !has[Rotate](n) }},
		"unsealed rotation, behind": {"a replica that does its part", unsealed, []change{unsealedFor(rot, digest("3")), rotate("b"), func(_ *Group, s *Site) { s.Pod.Settled = false }}, stays, "", func(n Next) bool {
			return n.Status.Stage == "" && !has[Rotate](n) && strings.Contains(n.Status.Message, "replicate")
		}},
		"rotating":                               {"again after a restart", unsealed, []change{unsealedFor(rot, digest("3")), stage(v1alpha1.KeyringRotating)}, stays, "", has[Rotate]},
		"rotating, runs":                         {"once", unsealed, []change{unsealedFor(rot, digest("3")), stage(v1alpha1.KeyringRotating), func(_ *Group, s *Site) { s.Job.Running = true }}, stays, "", not(has[Rotate])},
		"rotating, done":                         {"noted", unsealed, []change{unsealedFor(rot, digest("4")), stage(v1alpha1.KeyringRotating), jobDone}, stays, EventRotated, func(n Next) bool { return n.Status.Rotated }},
		"rotated, not pushed":                    {"waits, and the pod stays", unsealed, []change{unsealedFor(rot, digest("4")), stage(v1alpha1.KeyringRotating), hasRotated}, stays, "", func(n Next) bool { return n.Wish.Kept != "" }},
		"rotated, old report":                    {"the seed is no new version", unsealed, []change{unsealedFor(rot, digest("3")), stage(v1alpha1.KeyringRotating), hasRotated}, stays, "", nil},
		"rotated, pushed":                        {"escrowed", unsealed, []change{unsealedFor(rot, digest("4")), stage(v1alpha1.KeyringRotating), hasRotated, add(4)}, escrowed, EventEscrowed, func(n Next) bool { return n.Status.KeyringVersion == 4 && !n.Wish.Sealed }},
		"half rotated, pushed":                   {"the second key is missing", unsealed, []change{unsealedFor(rot, digest("4")), stage(v1alpha1.KeyringRotating), add(4)}, stays, "", nil},
		"clone, pushed":                          {"escrowed", unsealed, []change{unsealedFor(clone, digest("4")), add(4)}, escrowed, EventEscrowed, nil},
		"late":                                   {"told, and tried on", unsealed, []change{unsealedFor(clone, digest("4")), lateBy(10 * time.Minute)}, failed, EventNotEscrowed, func(n Next) bool { return !n.Wish.Sealed && n.Wish.Round == 5 }},
		"not late yet":                           {"waits", unsealed, []change{unsealedFor(clone, digest("4")), lateBy(10*time.Minute - 1)}, stays, "", nil},
		"late, pushed":                           {"it did go on", failed, []change{unsealedFor(clone, digest("4")), add(4)}, escrowed, EventEscrowed, nil},
		"escrowed, changed":                      {"a clone wrote it again", escrowed, []change{unsealedFor(clone, digest("4"))}, unsealed, "", nil},
		"sealing, changed":                       {"the old pod still runs: not sealed with what is old", escrowed, []change{unsealedFor(rot, digest("4")), stage(v1alpha1.KeyringSealing)}, unsealed, "", func(n Next) bool { return !n.Wish.Sealed }},
		"escrowed, no data":                      {"the clone comes first", escrowed, []change{unsealedFor(boot, digest("3")), noData}, stays, "", func(n Next) bool { return n.Status.Stage == "" }},
		"escrowed, busy":                         {"a clone runs", escrowed, []change{unsealedFor(boot, digest("3")), func(_ *Group, s *Site) { s.Busy = true }}, stays, "", func(n Next) bool { return n.Status.Stage == "" }},
		"escrowed, restless":                     {"a report may be old", escrowed, []change{unsealedFor(boot, digest("3")), func(_ *Group, s *Site) { s.Calm = calmBeforeSealing - 1 }}, stays, "", func(n Next) bool { return n.Status.Stage == "" }},
		"escrowed, newer version in escrow":      {"the report is older than that", escrowed, []change{unsealedFor(boot, digest("3")), add(4)}, stays, "", func(n Next) bool { return n.Status.Stage == "" && strings.Contains(n.Status.Message, "newer") }},
		"escrowed, newer version is the same":    {"stored anew by the pod that has it", escrowed, []change{unsealedFor(boot, digest("3")), add(4), again(5, 3)}, stays, "", func(n Next) bool { return n.Wish.Sealed && n.Wish.Digest == digest("3") }},
		"escrowed, newer ones of a roll-back":    {"they are not of this round", escrowed, []change{unsealedFor(boot, digest("3")), add(4), floor(4)}, stays, "", func(n Next) bool { return n.Wish.Sealed && n.Wish.Version == 3 }},
		"active, new keys in escrow":             {"I16: the report is older than that", unsealed, []change{unsealedFor(rot, digest("3")), stage(v1alpha1.KeyringRotating), isActive, add(4)}, stays, "", func(n Next) bool { return !n.Wish.Sealed }},
		"escrowed, done":                         {"made sealed", escrowed, []change{unsealedFor(boot, digest("3"))}, stays, "", func(n Next) bool { return n.Wish.Sealed && n.Wish.Version == 3 }},
		"sealing":                                {"all conditions hold", escrowed, []change{work(boot), stage(v1alpha1.KeyringSealing)}, sealed, EventSealed, func(n Next) bool { return n.Status.Work == "" && n.Status.Stage == "" }},
		"sealing, rotated":                       {"which version has new master keys is kept", escrowed, []change{work(rot), hasRotated, stage(v1alpha1.KeyringSealing)}, sealed, EventSealed, func(n Next) bool { return n.Status.RotatedVersion == 3 }},
		"sealing, rotated from a version":        {"the same", escrowed, []change{work(rot), hasRotated, stage(v1alpha1.KeyringSealing), seedIs(2)}, sealed, EventSealed, func(n Next) bool { return n.Status.RotatedVersion == 3 && n.Status.Rotated }},
		"sealing, ordered again":                 {"the order of that moment is not the one that was carried out", escrowed, []change{work(rot), hasRotated, stage(v1alpha1.KeyringSealing), rotate("b"), func(g *Group, s *Site) { g.RotateID, s.Status.Request = "2", "1" }}, sealed, EventSealed, func(n Next) bool { return !has[Answer](n) }},
		"sealing, ordered once":                  {"it is answered", escrowed, []change{work(rot), hasRotated, stage(v1alpha1.KeyringSealing), rotate("b"), func(g *Group, s *Site) { g.RotateID, s.Status.Request = "1", "1" }}, sealed, EventSealed, has[Answer]},
		"sealing, given up":                      {"a rotation that was not carried out is none", escrowed, []change{work(rot), stage(v1alpha1.KeyringSealing), rotatedOnce}, sealed, EventSealed, func(n Next) bool { return n.Status.RotatedVersion == 1 }},
		"sealing, cloned":                        {"a clone rotates no master key, whatever it writes", escrowed, []change{work(clone), stage(v1alpha1.KeyringSealing), rotatedOnce}, sealed, EventSealed, func(n Next) bool { return n.Status.RotatedVersion == 1 }},
		"sealing, Secret gone":                   {"told", escrowed, []change{work(boot), stage(v1alpha1.KeyringSealing), gone}, failed, EventEscrowMissing, func(n Next) bool { return n.Wish.Sealed && n.Wish.Kept != "" }},
		"empty volume":                           {"the mark goes first", sealed, []change{podLost, emptied}, stays, "", func(n Next) bool { return has[Unprovision](n) && n.Wish.Sealed }},
		"empty volume, marked":                   {"made anew", sealed, []change{podLost, emptied, noData}, unsealed, EventUnsealed, func(n Next) bool { return n.Status.Work == boot && n.Wish.Secret == "" }},
		"empty volume of the active site":        {"a person decides", sealed, []change{podLost, emptied, isActive}, stays, "", not(has[Unprovision])},
		"lost in bootstrap":                      {"the sidecar begins again by itself", unsealed, []change{unsealedFor(boot, ""), func(_ *Group, s *Site) { s.Status.SeedVersion, s.Status.SeedDigest, s.Versions = 0, "", nil }, noData, podLost}, stays, "", nil},
		"lost in bootstrap, escrowed":            {"seeded from what was escrowed", unsealed, []change{unsealedFor(boot, ""), func(_ *Group, s *Site) { s.Status.SeedVersion = 2 }, noData, podLost}, unsealed, EventUnsealed, func(n Next) bool { return n.Wish.Version == 3 && n.Wish.Round == 6 }},
		"lost when open":                         {"the active site comes back sealed", escrowed, []change{unsealedFor(boot, ""), func(_ *Group, s *Site) { s.Status.SeedVersion = 0 }, isActive, podLost}, escrowed, "", func(n Next) bool { return n.Wish.Sealed && n.Wish.Version == 3 }},
		"lost in a rotation":                     {"the mark goes first", unsealed, []change{unsealedFor(rot, ""), stage(v1alpha1.KeyringRotating), podLost}, stays, EventKeyringLost, func(n Next) bool { return has[Unprovision](n) && n.Status.Work == rot }},
		"lost in a rotation, no donor":           {"nobody to clone from", unsealed, []change{unsealedFor(rot, ""), stage(v1alpha1.KeyringRotating), podLost, func(g *Group, _ *Site) { g.Donor = false }}, stays, "", not(has[Unprovision])},
		"lost in a rotation, marked":             {"cloned anew", unsealed, []change{unsealedFor(rot, ""), stage(v1alpha1.KeyringRotating), podLost, noData}, unsealed, EventUnsealed, func(n Next) bool { return n.Status.Work == clone && n.Wish.Secret == "" }},
		"silent in the pod of the rotation":      {"I14: something else keeps mysqld from starting; what is in the pod may be the only copy", unsealed, []change{unsealedFor(rot, ""), stage(v1alpha1.KeyringRotating), silent, inPod("one", "one")}, stays, "", intact},
		"silent, with a keyring of its own":      {"I14: the only copy", unsealed, []change{unsealedFor(rot, ""), stage(v1alpha1.KeyringRotating), silent, inPod("one", "two"), func(_ *Group, s *Site) { s.Report.Digest = digest("4") }}, stays, "", intact},
		"silent, after an answer":                {"I14: mysqld ran in this very pod", unsealed, []change{unsealedFor(rot, ""), stage(v1alpha1.KeyringRotating), silent, inPod("one", "two"), func(_ *Group, s *Site) { s.Report.Component = component }}, stays, "", func(n Next) bool { return intact(n) && n.Status.RotationPod == "two" }},
		"silent, and its sidecar too":            {"nobody knows what is in the pod", unsealed, []change{unsealedFor(rot, ""), stage(v1alpha1.KeyringRotating), silent, inPod("one", "two"), func(_ *Group, s *Site) { s.Report = nil }}, stays, "", intact},
		"silent, rotation of an earlier version": {"it is not known in which pod", unsealed, []change{unsealedFor(rot, ""), stage(v1alpha1.KeyringRotating), silent, inPod("", "two")}, stays, "", intact},
		"rotating in the next pod":               {"noted before anything is done there", unsealed, []change{unsealedFor(rot, digest("3")), stage(v1alpha1.KeyringRotating), inPod("one", "two")}, stays, "", func(n Next) bool { return n.Status.RotationPod == "two" && has[Rotate](n) }},
		"silent after the pod of the rotation":   {"the data needs what died with it", unsealed, []change{unsealedFor(rot, ""), stage(v1alpha1.KeyringRotating), silent, inPod("one", "two")}, stays, EventKeyringLost, has[Unprovision]},
		"silent, the only other copy": {"I14: not proven, and a person decides", unsealed, []change{unsealedFor(rot, ""), stage(v1alpha1.KeyringRotating), silent, inPod("one", "two"), onlyCopy}, stays, "", func(n Next) bool {
			return !has[Unprovision](n) && strings.Contains(n.Status.Message, "reclone-site=b:confirm")
		}},
		"silent, given up by a person":            {"whatever keeps it from starting", unsealed, []change{unsealedFor(rot, ""), stage(v1alpha1.KeyringRotating), silent, inPod("one", "one"), noData, cloneConfirmed}, unsealed, EventUnsealed, func(n Next) bool { return n.Status.Work == clone }},
		"lost in a rotation, the only other copy": {"proven: it is none any more", unsealed, []change{unsealedFor(rot, ""), stage(v1alpha1.KeyringRotating), podLost, onlyCopy}, stays, EventKeyringLost, has[Unprovision]},
		"lost in a rotation, diverged": {"I14: a person decides what nobody else has", unsealed, []change{unsealedFor(rot, ""), stage(v1alpha1.KeyringRotating), podLost, diverged}, stays, "", func(n Next) bool {
			return !has[Unprovision](n) && strings.Contains(n.Status.Message, "reclone-site=b:confirm")
		}},
		"lost before the rotation":   {"no key was changed; it is something else", unsealed, []change{unsealedFor(rot, ""), podLost}, stays, "", not(has[Unprovision])},
		"lost in a rotation, pushed": {"seeded from it", unsealed, []change{unsealedFor(rot, ""), stage(v1alpha1.KeyringRotating), podLost, add(4)}, unsealed, EventUnsealed, func(n Next) bool { return n.Wish.Version == 4 && n.Status.Stage == v1alpha1.KeyringRotating }},
		"lost after the rotation":    {"it may be the keyring between the two keys, so it is never sealed unseen", unsealed, []change{unsealedFor(rot, ""), stage(v1alpha1.KeyringRotating), hasRotated, podLost, add(4)}, unsealed, EventUnsealed, func(n Next) bool { return n.Wish.Version == 4 && !n.Wish.Sealed }},
	})
}

func decideAll(t *testing.T, tests map[string]transition) {
	t.Helper()
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			g, s := at(tt.from, tt.given...)
			if s.Name == "b" && s.Status.Phase == "" && tt.from != none {
				t.Fatal("the changes took the phase away")
			}
			if tt.from == none {
				g.Sites[1].Status = v1alpha1.SiteKeyringStatus{}
			}
			n := Decide(g).Sites[1]
			want := tt.to
			if want == stays {
				want = tt.from
			}
			if n.Status.Name != "b" {
				t.Errorf("status is of %q", n.Status.Name)
			}
			if n.Status.Phase != want {
				t.Errorf("%s: %q -> %q, want %q (effects %v)", tt.reason, tt.from, n.Status.Phase, want, n.Effects)
			}
			if got := said(n); tt.wantSay != "" && got != tt.wantSay || tt.wantSay == "" && got == EventEscrowMissing {
				t.Errorf("%s: said %q, want %q", tt.reason, got, tt.wantSay)
			}
			if tt.check != nil && !tt.check(n) {
				t.Errorf("%s: status %+v, wish %+v, effects %v", tt.reason, n.Status, n.Wish, n.Effects)
			}
		})
	}
}

func said(n Next) Event {
	for _, e := range n.Effects {
		if s, ok := e.(Say); ok {
			return s.What
		}
	}
	return ""
}

func has[E Effect](n Next) bool {
	for _, e := range n.Effects {
		if _, ok := e.(E); ok {
			return true
		}
	}
	return false
}

// intact is true if nothing is given up: neither the data nor the pod.
func intact(n Next) bool {
	return !has[Unprovision](n) && !n.Wish.Sealed && n.Status.Work == rot && n.Status.Round == 5
}

func not(f func(Next) bool) func(Next) bool { return func(n Next) bool { return !f(n) } }

// Each of the conditions keeps a site from being sealed by itself. I18 and I16 rest on the mount being read-only and on
// the keyring being the one in escrow.
func TestNotSealedWhileOneConditionIsMissing(t *testing.T) {
	tests := map[string]change{
		"a: no escrow Secret":        gone,
		"b: stored content changed":  func(_ *Group, s *Site) { s.Versions[2].Digest = "other" },
		"b: live digest differs":     func(_ *Group, s *Site) { s.Report.Digest = digest("2") },
		"b: live digest not known":   func(_ *Group, s *Site) { s.Report.Digest = "" },
		"c: not rendered":            func(_ *Group, s *Site) { s.Rendered.Secret = ver(2).Name },
		"c: pod not ready":           func(_ *Group, s *Site) { s.Pod.Ready = false },
		"c: pod of another template": func(_ *Group, s *Site) { s.Pod.Current = false },
		"c: pod mounts another":      func(_ *Group, s *Site) { s.Pod.Projects = "" },
		"d: MySQL silent":            func(_ *Group, s *Site) { s.Report.Component = "" },
		"d: component not active":    func(_ *Group, s *Site) { s.Report.Active = false },
		"d: other data file":         func(_ *Group, s *Site) { s.Report.DataFile = "/var/lib/mysql/keyring" },
		"d: not read-only":           func(_ *Group, s *Site) { s.Report.ReadOnly = false },
		"mount can be written":       func(_ *Group, s *Site) { s.Report.MountReadOnly = false },
		"sidecar says unsealed":      func(_ *Group, s *Site) { s.Report.Sealed = false },
		"no report":                  func(_ *Group, s *Site) { s.Report = nil },
	}
	for name, broken := range tests {
		t.Run(name, func(t *testing.T) {
			g, _ := at(escrowed, work(boot), stage(v1alpha1.KeyringSealing), broken)
			if n := Decide(g).Sites[1]; n.Status.Phase == sealed {
				t.Errorf("sealed: %+v", n.Status)
			}
		})
	}
}

func TestRefusals(t *testing.T) {
	tests := map[string]change{
		"active site":        func(_ *Group, s *Site) { s.Active = true },
		"planned failover":   func(g *Group, _ *Site) { g.PlannedTo = "b" },
		"failover":           func(g *Group, _ *Site) { g.Transition = true },
		"ordered update":     func(g *Group, _ *Site) { g.Update = "of a" },
		"without data":       noData,
		"diverged":           diverged,
		"does not replicate": func(_ *Group, s *Site) { s.Pod.Settled = false },
		"being cloned":       func(_ *Group, s *Site) { s.Busy = true },
		"not sealed":         func(_ *Group, s *Site) { s.Status.Phase = failed; s.Versions = nil },
		"unsealed for clone": unsealedFor(clone, digest("9")),
	}
	for name, broken := range tests {
		t.Run(name, func(t *testing.T) {
			g, s := at(sealed, rotate("b"), broken)
			if s.Status.Work == clone {
				g.Sites[1].Status.Phase = unsealed
			}
			n := Decide(g).Sites[1]
			if n.Status.Work == rot || n.Status.Phase == pending {
				t.Errorf("began: %+v", n.Status)
			}
			if !has[Answer](n) || said(n) != EventRotationRefused || n.Status.RotationRefused == "" {
				t.Errorf("not answered: %q, %v", n.Status.RotationRefused, n.Effects)
			}
		})
	}
	for name, broken := range map[string]func(*Site){
		"other keyring in flight":          func(s *Site) { s.Status.Phase = unsealed },
		"other keyring in no escrow":       func(s *Site) { s.Status.Phase, s.Status.Work = failed, rot },
		"other escrow Secret gone":         func(s *Site) { s.Status.Phase, s.Versions = failed, nil },
		"other escrow Secret gone, unseen": func(s *Site) { s.Versions = nil },
	} {
		t.Run(name, func(t *testing.T) {
			g, _ := at(sealed, rotate("b"))
			broken(&g.Sites[0])
			if n := Decide(g).Sites[1]; n.Status.Phase != sealed || !has[Answer](n) {
				t.Errorf("%+v %v", n.Status, n.Effects)
			}
		})
	}
	t.Run("unknown site", func(t *testing.T) {
		g, _ := at(sealed, rotate("nowhere"))
		if d := Decide(g); len(d.Effects) != 2 || !strings.Contains(d.Effects[0].String(), "no site") {
			t.Errorf("effects %v", d.Effects)
		}
	})
	t.Run("nothing is known", func(t *testing.T) {
		g, _ := at(sealed, rotate("b"), isActive, func(g *Group, _ *Site) { g.Known = false })
		if n := Decide(g).Sites[1]; has[Answer](n) {
			t.Errorf("answered without facts: %v", n.Effects)
		}
	})
	for name, tt := range map[string]struct {
		given []change
		stays bool
	}{
		"refused before": {nil, true}, "refused before, ordered anew": {[]change{rotate("b")}, false},
		"refused before, another ordered": {[]change{rotate("a")}, false},
	} {
		t.Run(name, func(t *testing.T) {
			g, _ := at(sealed, append(tt.given, func(_ *Group, s *Site) { s.Status.RotationRefused = "why" })...)
			if n := Decide(g).Sites[1]; (n.Status.RotationRefused == "why") != tt.stays {
				t.Errorf("status says %q", n.Status.RotationRefused)
			}
		})
	}
	t.Run("done", func(t *testing.T) {
		g, _ := at(sealed, rotate("b"), hasRotated)
		n := Decide(g).Sites[1]
		if len(n.Effects) != 1 || !n.Effects[0].(Answer).Done {
			t.Errorf("effects %v", n.Effects)
		}
	})
}

func TestAdoptionIsRefusedWithoutTheAnnotation(t *testing.T) {
	plain := Site{Name: "a", Provisioned: true, Rendered: Rendered{Exists: true}}
	g := Group{Name: "orders", Now: start, Sites: []Site{plain, {Name: "b", Rendered: Rendered{Exists: true}}}}
	d := Decide(g)
	if d.Refused == "" || len(d.Effects) != 1 {
		t.Errorf("not refused: %+v", d.Effects)
	}
	for _, n := range d.Sites {
		if n.Wish.Encrypted || n.Moved || n.Status.Phase != "" {
			t.Errorf("site %s: %+v", n.Name, n)
		}
	}
	g.Adopt = true
	d = Decide(g)
	if d.Refused != "" || !d.Sites[0].Wish.Encrypted || d.Sites[0].Status.Work != rot || d.Sites[1].Status.Work != boot {
		t.Errorf("not adopted: %+v", d)
	}
}

// I18: a token is made only for a site whose pod can write its keyring, and goes once the site is sealed.
func TestI18TokenOnlyWhileUnsealed(t *testing.T) {
	g, _ := at(unsealed, unsealedFor(clone, digest("4")), func(_ *Group, s *Site) { s.TokenRound = 4 })
	if n := Decide(g).Sites[1]; !has[MakeToken](n) {
		t.Errorf("the token of the round before stays: %v", n.Effects)
	}
	g, _ = at(sealed, func(_ *Group, s *Site) { s.TokenRound = 4 })
	if n := Decide(g).Sites[1]; !has[DropToken](n) {
		t.Errorf("a sealed site keeps its token: %v", n.Effects)
	}
}

// I20, I16: a rotation that is under way is not carried out on the site once it is the active one, and an active site is
// sealed only with what its pod has.
func TestI20NoRotationOnTheActiveSite(t *testing.T) {
	for _, given := range [][]change{
		{unsealedFor(rot, digest("3")), isActive},
		{unsealedFor(rot, digest("3")), stage(v1alpha1.KeyringRotating), isActive},
		{unsealedFor(rot, digest("4")), stage(v1alpha1.KeyringRotating), isActive},
		{unsealedFor(rot, digest("3")), stage(v1alpha1.KeyringRotating), func(g *Group, _ *Site) { g.Transition = true }},
	} {
		g, s := at(unsealed, given...)
		n := Decide(g).Sites[1]
		if has[Rotate](n) {
			t.Errorf("rotates: %+v", n.Status)
		}
		if n.Wish.Sealed && n.Status.KeyringDigest != s.Report.Digest {
			t.Errorf("seals the active site with another keyring than its own: %+v", n.Status)
		}
	}
}
