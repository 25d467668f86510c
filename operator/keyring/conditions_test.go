// SPDX-License-Identifier: Apache-2.0

package keyring

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/mysql-mfg/mfg/api/v1alpha1"
	"github.com/mysql-mfg/mfg/api/wire"
)

// Each condition by itself, with all others content: what `make sim-mutants` takes away is missed here.

// refusesPlain is the pod of a new site whose volume holds data in the clear.
func refusesPlain(_ *Group, s *Site) {
	s.Pod = Pod{UID: "p", Current: true, Unborn: true, Plain: true, Round: 5}
	s.Rendered, s.Report = Rendered{Exists: true, Keyring: true}, nil
}
func inClear(_ *Group, s *Site)       { s.Rendered = Rendered{Exists: true} }
func oldPod(_ *Group, s *Site)        { s.Pod.Current = false }
func tryFailed(_ *Group, s *Site)     { s.Job.Trouble = "lock wait timeout" }
func plainAccepted(_ *Group, s *Site) { s.Status.PlainAccepted = true }

// names says which version status names.
func names(number int64) change {
	return func(_ *Group, s *Site) {
		v := ver(number)
		s.Status.KeyringSecret, s.Status.KeyringVersion, s.Status.KeyringDigest = v.Name, v.Number, v.Digest
	}
}

// I14, I16, I20: what each guard says, whatever the others would say.
func TestEachConditionAlone(t *testing.T) {
	plain := []change{adopted, aboutToUnseal(boot), noData, refusesPlain}
	with := func(more ...change) []change { return append(append([]change{}, plain...), more...) }
	waiting := []change{unsealedFor(rot, digest("3")), rotate("b")}
	lostInRotation := []change{unsealedFor(rot, ""), stage(rotatingStage), silent, inPod("one", "two")}
	also := func(to []change, more ...change) []change { return append(append([]change{}, to...), more...) }
	text := func(of func(Group, Site) string, part string) func(Group, Site) bool {
		return func(g Group, s Site) bool { return strings.Contains(of(g, s), part) }
	}
	orderedHere := ordered
	acceptsPlain := func(_ Group, s Site) bool { return WishOf("orders", s).AcceptPlain }
	told := func(g Group, _ Site) string { return noSuchSite(g) }
	sayAll(t, map[string]says{
		"in the clear":                          {"it is yet to begin", mayAdopt, none, []change{adopted, nothingStored, inClear}, true},
		"in the clear, and under way":           {"it has begun", mayAdopt, sealed, []change{adopted, nothingStored, inClear}, false},
		"a volume in the clear":                 {"a person has to accept it", ofSite(holdsPlain), unsealed, plain, true},
		"the same, made sealed by now":          {"the round has ended", ofSite(holdsPlain), escrowed, with(stage(sealingStage)), false},
		"the same, of a clone":                  {"a clone replaces it", ofSite(holdsPlain), unsealed, with(work(clone)), false},
		"a volume in the clear is accepted":     {"it is its turn", isPlainAccepted, unsealed, plain, true},
		"in the clear, and its turn":            {"that is an adoption, which begins from nothing", isPlainAccepted, none, []change{adopted, nothingStored, inClear}, false},
		"a new site, and its turn":              {"that is no adoption: it is made anew", isAdopted, unsealed, plain, false},
		"a word for another round":              {"only what is made anew may be in the clear", acceptsPlain, unsealed, []change{unsealedFor(clone, ""), plainAccepted}, false},
		"a word for this round":                 {"a person gave it", acceptsPlain, unsealed, []change{unsealedFor(boot, ""), plainAccepted}, true},
		"sealed, in a pod in the clear":         {"status knows of a keyring", ofSite(Site.plain), sealed, []change{inClear}, false},
		"lost silently":                         {"the data needs what died", ofSite(lostSilently), unsealed, lostInRotation, true},
		"the same, its seed is in no escrow":    {"the seed opens nothing of it", ofSite(lostSilently), unsealed, also(lostInRotation, gone), true},
		"the same, without any work":            {"I14: nothing was rotated", ofSite(lostSilently), unsealed, also(lostInRotation, work("")), false},
		"keys lost before the pod was unsealed": {"I14: there were none", ofSite(lostKeys), pending, []change{unsealedFor(rot, ""), stage(rotatingStage), podLost}, false},
		"keys lost in a clone":                  {"I14: none were rotated", ofSite(lostKeys), unsealed, []change{unsealedFor(clone, ""), stage(rotatingStage), podLost}, false},
		"to be rotated":                         {"all is well", isToRotate, unsealed, waiting, true},
		"to be rotated, not unsealed yet":       {"I14: its pod is sealed", isToRotate, pending, waiting, false},
		"a rotation that waits":                 {"no key was made", ofSite(isUntold), unsealed, waiting, true},
		"the same, rotated before":              {"keys were made", ofSite(isUntold), unsealed, also(waiting, hasRotated), false},
		"the same, from nothing":                {"what reads the data is in no escrow", ofSite(isUntold), unsealed, also(waiting, bare), false},
		"the same, its seed is another Secret":  {"the next pod could not start from it", ofSite(isUntold), unsealed, also(waiting, gone, again(4, 3)), false},
		"done":                                  {"nothing writes the keyring any more", isDone, escrowed, []change{unsealedFor(boot, digest("3"))}, true},
		"done, without any work":                {"there was none", isDone, escrowed, []change{unsealedFor(boot, digest("3")), work("")}, false},
		"done, and being sealed":                {"once", isDone, escrowed, []change{unsealedFor(boot, digest("3")), stage(sealingStage)}, false},
		"nothing is stored of nothing":          {"I16: nothing equals nothing", isEscrowed, unsealed, []change{unsealedFor(clone, ""), func(_ *Group, s *Site) { s.Versions[2].Digest, s.Versions[2].Annotated = "", "" }}, false},
		"ordered":                               {"", orderedHere, sealed, []change{rotate("b")}, true},
		"ordered before":                        {"the annotation is gone", orderedHere, sealed, []change{rotate("b"), func(g *Group, _ *Site) { g.RotateSet = false }}, false},
		"a site that there is":                  {"it answers itself", text(told, "no site"), sealed, []change{rotate("b")}, false},
		"a site that there is not":              {"the others are named", text(told, "a, b"), sealed, []change{rotate("x")}, true},
		"nothing, sealed with nothing":          {"I16: nothing equals nothing", text(digestsEqual, "the digest of the keyring"), escrowed, []change{unnamed, nothingStored, tells("")}, true},
		"its MySQL was not asked":               {"I18", text(keyringIsReadOnly, "has not said"), escrowed, []change{unheard}, true},
		"its MySQL has not answered":            {"I18", text(keyringIsReadOnly, "has not said"), escrowed, []change{unanswered}, true},
	})
	g, s := at(sealed)
	g.Sites[0].Status.Phase = unsealed
	if why := otherKeyringInFlight(g, s); !strings.Contains(why, "of a is Unsealed") {
		t.Errorf("%q", why)
	}
	if why := donorIsNotCovered(Donor{Report: &wire.KeyringReport{}}); why != "" {
		t.Errorf("a donor that has not said it: %s", why)
	}
	if wasTaken(v1alpha1.SiteKeyringStatus{Phase: unsealed, Work: clone, Rotated: true}) {
		t.Error("a clone is taken for a keyring that was found")
	}
	if n := numberIn(v1alpha1.KeyringSecret("orders", "b", 0)+"99999999999999999999", v1alpha1.KeyringSecret("orders", "b", 0)); n != 0 {
		t.Errorf("I16: a number that nobody can count to is %d", n)
	}
}

// I14, I16: what a step leaves behind.
func TestWhatAStepNotes(t *testing.T) {
	unanswered := not(has[Answer])
	decideAll(t, map[string]transition{
		"data in the clear is accepted": {"it is told", unsealed, []change{adopted, aboutToUnseal(boot), noData, refusesPlain}, unsealed, EventAdopted, func(n Next) bool { return n.Wish.AcceptPlain }},
		"its pod is lost":               {"which is said", unsealed, []change{unsealedFor(boot, ""), bare, noData, nothingStored, podLost}, stays, "", func(n Next) bool { return n.Lost }},
		"pending, withdrawn":            {"nobody asks any more", pending, []change{work(rot), stage(rotatingStage)}, sealed, "", func(n Next) bool { return n.Status.Stage == "" && unanswered(n) }},
		"given up":                      {"it goes back to its seed, whatever status named", unsealed, []change{unsealedFor(rot, digest("3")), names(2)}, escrowed, "", func(n Next) bool { return n.Wish.Version == 3 && n.Status.KeyringDigest == digest("3") }},
		"found, after another round": {"nothing of that counts", escrowed, []change{unsealedFor(rot, digest("4")), stage(sealingStage), work(""), floor(9)}, unsealed, EventFound, func(n Next) bool {
			return n.Status.SeedVersion == 0 && n.Status.SeedDigest == digest("4") && n.Status.FloorVersion == 3
		}},
	})
	if _, s := at(unsealed, unsealedFor(rot, ""), hasRotated, bare, unborn, oldPod, noData); WishOf("orders", s).Kept == "" {
		t.Error("I14: the successor of a pod that never began may have the keyring that was found")
	}
	if _, s := at(unsealed, aboutToUnseal(clone), cloneConfirmed, gone); WishOf("orders", s).Kept != "" {
		t.Error("a person gave up what a sealed pod has, and that is kept")
	}
	g, s := at(sealed, rotate("b"))
	n := Next{Name: "b", Status: s.Status, site: s}
	if n.refuse(g, s); len(n.Effects) > 0 || n.Status.RotationRefused != "" {
		t.Errorf("refused without a reason: %v", n.Effects)
	}
	g, s = at(unsealed, unsealedFor(rot, ""), stage(rotatingStage), podLost, noData)
	n = Next{Name: "b", Status: s.Status, site: s}
	if n.level(g); has[Unprovision](n) {
		t.Errorf("a mark that is off is taken off: %v", n.Effects)
	}
	_, s = at(unsealed, unsealedFor(rot, digest("3")), stage(rotatingStage), work(""), inPod("one", "two"))
	n = Next{Name: "b", Status: s.Status, site: s}
	if n.note(); n.Status.RotationPod != "one" {
		t.Errorf("I14: keys were made in %s, where nothing was under way", n.Status.RotationPod)
	}
}

// Rounds begin with what they are given, and end with nothing.
func TestWhatARoundIsMadeOfI14(t *testing.T) {
	before := v1alpha1.SiteKeyringStatus{Work: rot, Stage: rotatingStage, SeedVersion: 1, SeedDigest: digest("1"), FloorVersion: 9, RotationPod: "one", PlainAccepted: true, Round: 4}
	for name, tt := range map[string]struct {
		seed     Version
		versions []Version
		floor    int64
		says     string
	}{
		"from a version":          {ver(2), nil, 2, "from " + ver(2).Name},
		"from an earlier version": {ver(2), []Version{ver(1), ver(2), ver(3)}, 3, "from " + ver(2).Name},
		"from nothing":            {Version{}, []Version{ver(1)}, 1, "from a fresh keyring"},
	} {
		n := Next{Name: "b", Status: before, site: Site{Name: "b", Versions: tt.versions}}
		n.unseal(clone, tt.seed)
		want := v1alpha1.SiteKeyringStatus{Work: clone, Round: 5, SeedVersion: tt.seed.Number, SeedDigest: tt.seed.Digest, FloorVersion: tt.floor}
		if diff := cmp.Diff(want, n.Status); diff != "" {
			t.Errorf("I14: %s (-want +got):\n%s", name, diff)
		}
		if said := n.Effects[0].String(); !strings.HasSuffix(said, tt.says) {
			t.Errorf("%s: %s", name, said)
		}
	}
	n := Next{Status: before}
	n.endRound()
	if diff := cmp.Diff(v1alpha1.SiteKeyringStatus{Round: 4}, n.Status); diff != "" {
		t.Errorf("I14: what is left of a round (-want +got):\n%s", diff)
	}
}

// TestWhatIsToldOfAGroup: all effects in order, and whether an adoption is about to begin.
func TestWhatIsToldOfAGroup(t *testing.T) {
	d := Decision{Sites: []Next{{Effects: []Effect{DropToken{Site: "a"}, Rotate{Site: "a"}}}, {}, {Effects: []Effect{DropToken{Site: "b"}}}}, Effects: []Effect{Answer{Site: "x"}}}
	want := []Effect{DropToken{Site: "a"}, Rotate{Site: "a"}, DropToken{Site: "b"}, Answer{Site: "x"}}
	if diff := cmp.Diff(want, d.All()); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	group := func() Group {
		return Group{Name: "orders", Now: start, Adopt: true, Known: true, Sites: []Site{plainSite("a"), plainSite("b")}}
	}
	for name, tt := range map[string]struct {
		change func(*Group)
		next   bool
		a, b   string
	}{
		"one after the other":            {func(*Group) {}, true, "the site is not encrypted yet", "the site is not encrypted yet: site a is adopted first"},
		"nobody accepted it":             {func(g *Group) { g.Adopt = false }, false, "the site is not encrypted", "the site is not encrypted"},
		"the endpoint cannot be reached": {func(g *Group) { g.EscrowTrouble = "x" }, false, "the site is not encrypted yet: the escrow endpoint cannot be used: x", "the site is not encrypted yet: the escrow endpoint cannot be used: x"},
		"all have a keyring":             {func(g *Group) { g.Sites[0].Rendered.Keyring, g.Sites[1].Rendered.Keyring = true, true }, false, "the site is not encrypted", "the site is not encrypted"},
	} {
		g := group()
		tt.change(&g)
		if got := AdoptsNext(g); got != tt.next {
			t.Errorf("%s: begins: %t", name, got)
		}
		if a, b := stillPlain(g, g.Sites[0]), stillPlain(g, g.Sites[1]); a != tt.a || b != tt.b {
			t.Errorf("%s: %q, %q", name, a, b)
		}
	}
	_, s := at(unsealed, adopted, aboutToUnseal(boot), noData, refusesPlain)
	other := s
	other.Name = "a"
	const plain = "its volume holds data in the clear, of which nothing was changed"
	for want, g := range map[string]Group{
		plain + " yet: the escrow endpoint cannot be used: x": {Adopt: true, EscrowTrouble: "x", Sites: []Site{other, s}},
		plain + " yet: site a comes first":                    {Adopt: true, Sites: []Site{other, s}},
		plain + ": accept that it is encrypted in part with the annotation " + v1alpha1.AnnotationEncryptionAdopt +
			"=confirm, or make the group again without spec.encryptionAtRest": {Sites: []Site{other, s}},
	} {
		if got := plainWaits(g); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}

// TestWhatASiteWaitsFor: nothing else is said of what is said here.
func TestWhatASiteWaitsFor(t *testing.T) {
	const escrow, replace, rotates = "the keyring is to be escrowed", "its pod is to be replaced by an unsealed one", "the master keys are to be rotated"
	calm := "the keyring is to stay as it is for a moment before the site is sealed"
	for name, tt := range map[string]struct {
		from  v1alpha1.KeyringPhase
		given []change
		want  string
	}{
		"new":                           {none, []change{noData, inClear}, ""},
		"about to be unsealed":          {pending, []change{work(rot), rotate("b")}, "the site is about to be unsealed"},
		"written":                       {unsealed, []change{unsealedFor(clone, digest("4"))}, escrow},
		"written, its MySQL is silent":  {unsealed, []change{unsealedFor(clone, digest("4")), unanswered}, escrow},
		"written, diverged":             {unsealed, []change{unsealedFor(clone, digest("4")), diverged}, escrow},
		"written, without data":         {unsealed, []change{unsealedFor(boot, digest("4")), noData}, escrow},
		"written, an older one is told": {unsealed, []change{unsealedFor(clone, digest("3")), add(4)}, escrow},
		"written, a try failed before":  {unsealed, []change{unsealedFor(clone, digest("4")), tryFailed}, escrow},
		"rotated":                       {unsealed, []change{unsealedFor(rot, digest("4")), stage(rotatingStage), hasRotated, tryFailed}, escrow},
		"rotated, and no try failed":    {unsealed, []change{unsealedFor(rot, digest("4")), stage(rotatingStage), hasRotated}, escrow},
		"to be rotated":                 {unsealed, []change{unsealedFor(rot, digest("3")), rotate("b")}, rotates},
		"to be rotated, behind":         {unsealed, []change{unsealedFor(rot, digest("3")), rotate("b"), behind}, rotates + ", and wait: it does not replicate"},
		"an old pod":                    {unsealed, []change{unsealedFor(clone, digest("4")), oldPod}, replace},
		"a sealed pod":                  {unsealed, []change{aboutToUnseal(clone)}, replace},
		"in escrow":                     {escrowed, []change{unsealedFor(boot, digest("3")), restless}, calm},
		"keys are lost":                 {unsealed, []change{unsealedFor(rot, ""), stage(rotatingStage), podLost}, "the pod cannot start"},
		"keys are lost, without data":   {unsealed, []change{unsealedFor(rot, ""), stage(rotatingStage), podLost, diverged, noData}, "the pod cannot start"},
	} {
		g, s := at(tt.from, tt.given...)
		if got := waitsFor(g, s); got != tt.want {
			t.Errorf("%s: %q, want %q", name, got, tt.want)
		}
	}
	for name, tt := range map[string]struct {
		given []change
		want  string
	}{
		"late, and its Secret is there": {[]change{unsealedFor(clone, digest("4"))}, escrow},
		"late, and never escrowed":      {[]change{unsealedFor(boot, digest("4")), noData, nothingStored, bare, unnamed}, escrow},
	} {
		g, s := at(failed, tt.given...)
		if got := message(g, s); got != tt.want {
			t.Errorf("%s: %q, want %q", name, got, tt.want)
		}
	}
}

// TestEachFlagOfCoverageI18: what MySQL says of each, and of nothing else.
func TestEachFlagOfCoverageI18(t *testing.T) {
	got := func(r wire.KeyringReport) v1alpha1.CoverageStatus {
		r.Component = component
		return coverage(Site{Report: &r})
	}
	for name, tt := range map[string]struct {
		says wire.KeyringReport
		want v1alpha1.CoverageStatus
	}{
		"nothing":                  {wire.KeyringReport{}, v1alpha1.CoverageStatus{}},
		"read-only, by MySQL":      {wire.KeyringReport{ReadOnly: true}, v1alpha1.CoverageStatus{}},
		"read-only, by the kernel": {wire.KeyringReport{MountReadOnly: true}, v1alpha1.CoverageStatus{}},
		"read-only, by both":       {wire.KeyringReport{ReadOnly: true, MountReadOnly: true}, v1alpha1.CoverageStatus{KeyringReadOnly: true}},
		"the system tablespace":    {wire.KeyringReport{Coverage: &wire.CoverageReport{SystemTablespace: true}}, v1alpha1.CoverageStatus{SystemTablespaceEncrypted: true}},
		"tablespaces in the clear": {wire.KeyringReport{Coverage: &wire.CoverageReport{Unencrypted: 7}}, v1alpha1.CoverageStatus{UnencryptedTablespaces: 7}},
		"the redo log":             {wire.KeyringReport{Coverage: &wire.CoverageReport{RedoLog: true}}, v1alpha1.CoverageStatus{RedoLogEncrypted: true}},
		"the undo log":             {wire.KeyringReport{Coverage: &wire.CoverageReport{UndoLog: true}}, v1alpha1.CoverageStatus{UndoLogEncrypted: true}},
		"the binary log":           {wire.KeyringReport{Coverage: &wire.CoverageReport{BinaryLog: true}}, v1alpha1.CoverageStatus{BinlogEncrypted: true}},
	} {
		tt.want.KeyringComponent = component
		if diff := cmp.Diff(tt.want, got(tt.says)); diff != "" {
			t.Errorf("I18: %s (-want +got):\n%s", name, diff)
		}
	}
}
