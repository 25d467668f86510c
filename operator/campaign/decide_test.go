// SPDX-License-Identifier: Apache-2.0

package campaign

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/mysql-mfg/mfg/api/v1alpha1"
)

var noon = time.Date(2026, 11, 3, 12, 0, 0, 0, time.UTC)

func at(t time.Time) *metav1.MicroTime { m := metav1.NewMicroTime(t); return &m }

// sealed are three sites with a sealed keyring: a is active, c is never promoted.
func sealed() Group {
	g := Group{Now: noon, Fresh: "step", Asked: true, Value: "*", ID: "r", Known: true, Active: "a"}
	for _, name := range []string{"a", "b", "c"} {
		g.Sites = append(g.Sites, Site{Name: name, Candidate: name != "c", Ready: name != "a",
			Keyring: v1alpha1.SiteKeyringStatus{Name: name, Phase: v1alpha1.KeyringSealed, KeyringVersion: 3}})
	}
	g.Sites[0].Reason, g.Sites[0].Why = v1alpha1.AnswerIsActiveSite, "a is the active site"
	return g
}

// begun is the same with a campaign that has noted its sites and nothing else.
func begun(change ...func(*Group)) Group {
	g := sealed()
	g.Status = Decide(g).Status
	for _, f := range change {
		f(&g)
	}
	return g
}

func (g *Group) keyring(site string) *v1alpha1.SiteKeyringStatus {
	return &g.Sites[slices.IndexFunc(g.Sites, func(s Site) bool { return s.Name == site })].Keyring
}

// done has new keys on some sites.
func done(sites ...string) func(*Group) {
	return func(g *Group) {
		for _, site := range sites {
			k := g.keyring(site)
			k.KeyringVersion, k.RotatedVersion = 4, 4
		}
	}
}

// refuses has the rotation of a site refused.
func refuses(site, reason, why string) func(*Group) {
	return func(g *Group) {
		i := slices.IndexFunc(g.Sites, func(s Site) bool { return s.Name == site })
		g.Sites[i].Reason, g.Sites[i].Why = reason, why
	}
}

// underWay has a site in the middle of its rotation.
func underWay(site string) func(*Group) {
	return func(g *Group) {
		k := g.keyring(site)
		k.Phase, k.Work, k.SeedVersion = v1alpha1.KeyringUnsealed, v1alpha1.KeyringRotation, k.KeyringVersion
	}
}

// moves has the campaign at its planned failover to b.
func moves(change ...func(*Group)) func(*Group) {
	return func(g *Group) {
		done("b", "c")(g)
		g.Status.Step, g.Status.Site, g.Status.StepID, g.Status.Since = v1alpha1.CampaignMoving, "b", "m", at(noon)
		for _, f := range change {
			f(g)
		}
	}
}

// replicas has the campaign rotate the replicas alone.
func replicas(g *Group) {
	g.Value, g.Status.Order = "*:replicas", "*:replicas"
	g.Status.Sites = slices.DeleteFunc(g.Status.Sites, func(s v1alpha1.CampaignSite) bool { return s.Name == g.Active })
}

func answers(outcome v1alpha1.RequestOutcome, reason string) func(*Group) {
	return func(g *Group) {
		g.Move.Answer = &v1alpha1.LastRequest{ID: "m", Outcome: outcome, Reason: reason, Message: "so it is"}
	}
}

// words is a decision in one line.
func words(d Decision) string {
	if d.Status == nil {
		return "nothing " + effects(d)
	}
	c := d.Status
	out := []string{string(c.Step) + ":" + c.Site}
	if c.Outcome != "" {
		out = []string{string(c.Outcome)}
	}
	if c.Reason != "" {
		out = append(out, c.Reason)
	}
	if d.Rotate != "" {
		out = append(out, "rotate "+d.Rotate+" as "+d.ID)
	}
	return strings.TrimSpace(strings.Join(out, " ") + " " + effects(d))
}

func effects(d Decision) string {
	var out []string
	for _, e := range d.Effects {
		switch e := e.(type) {
		case AskMove:
			out = append(out, "ask "+e.To+" as "+e.ID)
		case TakeBack:
			out = append(out, "take back "+e.ID)
		case Answer:
			out = append(out, fmt.Sprintf("answer %s (%s)", e.Outcome, e.Reason))
		case Say:
			out = append(out, "say "+string(e.What))
		}
	}
	return strings.Join(out, ", ")
}

func TestDecide(t *testing.T) {
	with := func(f func(*Group)) []func(*Group) { return []func(*Group){f} }
	tests := map[string]struct {
		change []func(*Group)
		want   string
	}{
		// What is next.
		"the first replica":                          {nil, "Rotating:b rotate b as step"},
		"the next one":                               {with(done("b")), "Rotating:c rotate c as step"},
		"the role, once all replicas are done":       {with(done("b", "c")), "Moving:b ask b as step"},
		"the former active site, once it is none":    {[]func(*Group){done("b", "c"), func(g *Group) { g.Active = "b"; refuses("a", "", "")(g) }}, "Rotating:a rotate a as step"},
		"nothing, once all are done":                 {with(done("a", "b", "c")), "Done Completed answer Done (Completed), say Done"},
		"a site that left is not waited for":         {[]func(*Group){done("a", "b"), func(g *Group) { g.Sites = g.Sites[:2] }}, "Done Completed answer Done (Completed), say Done"},
		"the site that would take over by itself":    {[]func(*Group){done("b", "c"), func(g *Group) { g.Sites[2].Candidate, g.Forecast = true, "c" }}, "Moving:c ask c as step"},
		"one that does its part":                     {[]func(*Group){done("b", "c"), func(g *Group) { g.Sites[2].Candidate, g.Sites[1].Ready = true, false }}, "Moving:c ask c as step"},
		"the first of those that are ready":          {[]func(*Group){done("b", "c"), func(g *Group) { g.Sites[2].Candidate = true }}, "Moving:b ask b as step"},
		"the first of those that are not ready":      {[]func(*Group){done("b", "c"), func(g *Group) { g.Sites[2].Candidate, g.Sites[1].Ready, g.Sites[2].Ready = true, false, false }}, "Waiting:b TargetNotReady"},
		"the rotation of another site is under way":  {[]func(*Group){underWay("c"), func(g *Group) { g.Status.Step, g.Status.Site, g.Status.StepID = "Rotating", "b", "m" }}, "Rotating:c rotate c as step"},
		"the rotation of the one that is waited for": {[]func(*Group){underWay("b"), func(g *Group) { g.Status.Step, g.Status.Site, g.Status.StepID = "Waiting", "b", "m" }}, "Rotating:b rotate b as step"},
		"a rotation that goes on is no other step":   {[]func(*Group){underWay("b"), func(g *Group) { g.Status.Step, g.Status.Site, g.Status.StepID = "Rotating", "b", "m" }}, "Rotating:b rotate b as m"},
		"of the replicas, none that has the role":    {[]func(*Group){done("c"), func(g *Group) { replicas(g); g.Active = "b" }}, "Done Completed answer Done (Completed), say Done"},
		"the site that was asked for": {[]func(*Group){done("b", "c"), func(g *Group) {
			g.Sites[2].Candidate, g.Forecast = true, "b"
			g.Value, g.Status.Order = "*:to=c", "*:to=c"
		}}, "Moving:c ask c as step"},
		"another one, if that is active by now":      {[]func(*Group){done("b", "c"), func(g *Group) { g.Value, g.Status.Order = "*:to=a", "*:to=a" }}, "Moving:b ask b as step"},
		"a clone makes a version, and rotates none":  {with(func(g *Group) { g.keyring("b").KeyringVersion = 4 }), "Rotating:b rotate b as step"},
		"after a roll-back the older keys count":     {[]func(*Group){done("b"), func(g *Group) { g.keyring("b").KeyringVersion = 3 }}, "Rotating:b rotate b as step"},
		"one that is not sealed yet is not done":     {[]func(*Group){done("b"), func(g *Group) { g.keyring("b").Phase = v1alpha1.KeyringEscrowed }, refuses("b", "NotSealed", "")}, "Waiting:b NotSealed"},
		"an active site is never rotated (I20)":      {with(func(g *Group) { done("b", "c")(g); refuses("a", "", "")(g) }), "Moving:b ask b as step"},
		"one that became active comes last":          {with(func(g *Group) { g.Active = "b"; refuses("a", "", "")(g); refuses("b", "IsActiveSite", "")(g) }), "Rotating:a rotate a as step"},
		"nothing before anything is known of a site": {with(func(g *Group) { g.Known = false }), ":"},

		// What is at hand.
		"a rotation that is under way goes on":         {[]func(*Group){underWay("b"), func(g *Group) { g.Status.Step, g.Status.Site, g.Status.StepID = "Rotating", "b", "old" }}, "Rotating:b rotate b as old"},
		"one that somebody else ordered is taken on":   {with(underWay("c")), "Rotating:c rotate c as step"},
		"also while nothing is known":                  {[]func(*Group){underWay("b"), func(g *Group) { g.Known = false }}, "Rotating:b rotate b as step"},
		"also while the group is paused":               {[]func(*Group){underWay("b"), func(g *Group) { g.Paused = true }}, "Rotating:b rotate b as step"},
		"also where the site became active":            {[]func(*Group){underWay("b"), func(g *Group) { g.Active = "b" }}, "Rotating:b rotate b as step"},
		"the one that the campaign names comes first":  {[]func(*Group){underWay("b"), underWay("c"), func(g *Group) { g.Status.Step, g.Status.Site, g.Status.StepID = "Rotating", "c", "old" }}, "Rotating:c rotate c as old"},
		"one that was given up is begun again":         {with(func(g *Group) { g.Status.Step, g.Status.Site, g.Status.StepID = "Rotating", "b", "old" }), "Rotating:b rotate b as step"},
		"but not for ever":                             {with(func(g *Group) { g.Status.Sites[1].Tries = maxTries }), "Failed TooManyTries answer Failed (TooManyTries), say Stopped"},
		"and never while it would be refused":          {with(func(g *Group) { g.Status.Sites[1].Tries = maxTries; refuses("b", "X", "")(g) }), "Waiting:b X"},
		"a rotation that is done is not ordered again": {[]func(*Group){done("b"), func(g *Group) { g.Status.Step, g.Status.Site, g.Status.StepID = "Rotating", "b", "old" }}, "Rotating:c rotate c as step"},

		// What it waits for.
		"a refusal is waited for":          {with(refuses("b", "SiteNotFollowing", "b does not replicate")), "Waiting:b SiteNotFollowing"},
		"a pause":                          {with(func(g *Group) { g.Paused = true }), "Waiting:b Paused"},
		"a moving role":                    {with(func(g *Group) { g.RoleMoving = "x" }), "Waiting:b RoleIsMoving"},
		"a group without an active site":   {with(func(g *Group) { g.Active = "" }), "Waiting:a RoleIsMoving"},
		"another request":                  {with(func(g *Group) { g.Other = "x" }), "Waiting:b OtherRequest"},
		"an update, before the role moves": {[]func(*Group){done("b", "c"), func(g *Group) { g.Update = "x" }}, "Waiting:b UpdateUnderWay"},
		"a keyring, before the role moves": {[]func(*Group){done("b", "c"), func(g *Group) { g.keyring("a").Phase = v1alpha1.KeyringFailed }}, "Waiting:a KeyringNotSealed"},
		"the target":                       {[]func(*Group){done("b", "c"), func(g *Group) { g.Sites[1].Ready = false }}, "Waiting:b TargetNotReady"},
		"no other candidate":               {[]func(*Group){done("b", "c"), func(g *Group) { g.Sites[1].Candidate = false }}, "Failed NotACandidate answer Failed (NotACandidate), say Stopped"},
		"a role that moved too often":      {[]func(*Group){done("b", "c"), func(g *Group) { g.Status.Moves = maxMoves }}, "Failed TooManyTries answer Failed (TooManyTries), say Stopped"},
		"until a move is asked for again": {[]func(*Group){done("b", "c"), func(g *Group) {
			g.Status.Step, g.Status.Site, g.Status.Reason, g.Status.RetryAt = "Waiting", "b", "TargetLags", at(noon.Add(time.Second))
		}}, "Waiting:b TargetLags"},
		"and then it is": {[]func(*Group){done("b", "c"), func(g *Group) {
			g.Status.Step, g.Status.Site, g.Status.Reason, g.Status.RetryAt = "Waiting", "b", "TargetLags", at(noon)
		}}, "Moving:b TargetLags ask b as step"},
		"what else it waited for is over": {[]func(*Group){done("b", "c"), func(g *Group) {
			g.Status.Step, g.Status.Site, g.Status.Reason = "Waiting", "b", "TargetNotReady"
		}}, "Moving:b ask b as step"},
		"a pause is waited for before the role": {[]func(*Group){done("b", "c"), func(g *Group) { g.Paused = true }}, "Waiting:a Paused"},

		// What becomes of the move.
		"it is asked for again by who finds it not asked for": {with(moves()), "Moving:b ask b as m"},
		"it stands":                           {with(moves(func(g *Group) { g.Move.Stands, g.Move.Words = true, "Waiting: it lags" })), "Moving:b"},
		"it is done":                          {with(moves(answers(v1alpha1.RequestDone, "Opened"), func(g *Group) { g.Active = "b"; refuses("a", "", "")(g) })), "Rotating:a rotate a as step"},
		"done without an answer":              {with(moves(func(g *Group) { g.Active = "b"; refuses("a", "", "")(g) })), "Rotating:a rotate a as step"},
		"active, and not answered yet":        {with(moves(func(g *Group) { g.Active, g.Move.Stands = "b", true })), "Moving:b"},
		"it is refused":                       {with(moves(answers(v1alpha1.RequestRefused, "TargetLags"))), "Waiting:b TargetLags"},
		"it is refused, as b has the role":    {with(moves(answers(v1alpha1.RequestRefused, "AlreadyActive"), func(g *Group) { g.Active = "b" })), "Waiting:b AlreadyActive"},
		"it is reverted":                      {with(moves(answers(v1alpha1.RequestFailed, "PauseTimeout"))), "Waiting:b PauseTimeout"},
		"it is given up":                      {with(moves(answers(v1alpha1.RequestFailed, "Aborted"))), "Failed Aborted answer Failed (Aborted), say Stopped"},
		"it is withdrawn":                     {with(moves(func(g *Group) { g.Status.Asked = true })), "Failed MoveWithdrawn answer Failed (MoveWithdrawn), say Stopped"},
		"nothing else begins beside it (I20)": {with(moves(func(g *Group) { g.Move.Stands = true; g.keyring("c").RotatedVersion = 0 })), "Moving:b"},

		// How it ends.
		"the request is gone":              {with(func(g *Group) { g.Asked = false }), "Cancelled Withdrawn say Stopped"},
		"another one took its place":       {with(func(g *Group) { g.ID = "other" }), "Cancelled Withdrawn say Stopped"},
		"another order took its place":     {with(func(g *Group) { g.Value = "*:replicas" }), "Cancelled Withdrawn say Stopped"},
		"a move that stands is taken back": {with(moves(func(g *Group) { g.Asked, g.Move.Stands = false, true })), "Cancelled Withdrawn take back m, say Stopped"},
		"nothing is rotated any more":      {[]func(*Group){underWay("b"), func(g *Group) { g.Asked = false }}, "Cancelled Withdrawn say Stopped"},
	}
	for name, tc := range tests {
		if got := words(Decide(begun(tc.change...))); got != tc.want {
			t.Errorf("%s:\n got %s\nwant %s", name, got, tc.want)
		}
	}
}

// What is asked for is begun by a look of its own, or refused.
func TestBegin(t *testing.T) {
	stopped := func(began time.Time, outcome v1alpha1.CampaignOutcome) func(*Group) {
		return func(g *Group) {
			done("b")(g)
			g.Status = &v1alpha1.CampaignStatus{Request: "before", Order: "*", Outcome: outcome, BeganAt: *at(began), Sites: []v1alpha1.CampaignSite{
				{Name: "a", FromVersion: 3}, {Name: "b", FromVersion: 3}, {Name: "c", FromVersion: 3}}}
		}
	}
	for name, tc := range map[string]struct {
		value  string
		change func(*Group)
		want   string
		left   string
	}{
		"all":                                {"*", nil, ": say Began", "a b c"},
		"replicas":                           {"*:replicas", nil, ": say Began", "b c"},
		"to":                                 {"*:to=b", nil, ": say Began", "a b c"},
		"all, while no site is active":       {"*", func(g *Group) { g.Active = "" }, ": say Began", "a b c"},
		"to a site that is active":           {"*:to=a", nil, "nothing answer Refused (IsActiveSite), say Refused", ""},
		"to one that is no candidate":        {"*:to=c", nil, "nothing answer Refused (NotACandidate), say Refused", ""},
		"to none":                            {"*:to=rome", nil, "nothing answer Refused (NotACandidate), say Refused", ""},
		"not understood":                     {"*:all", nil, "nothing answer Refused (NotUnderstood), say Refused", ""},
		"without another candidate":          {"*", func(g *Group) { g.Sites[1].Candidate = false }, "nothing answer Refused (NotACandidate), say Refused", ""},
		"replicas without another candidate": {"*:replicas", func(g *Group) { g.Sites[1].Candidate = false }, ": say Began", "b c"},
		"one that was stopped goes on":       {"*", stopped(noon.Add(-time.Hour), v1alpha1.CampaignCancelled), ": say Began", "a c"},
		"also one that failed":               {"*", stopped(noon.Add(-time.Hour), v1alpha1.CampaignFailed), ": say Began", "a c"},
		"unless a restart is asked for":      {"*:restart", stopped(noon.Add(-time.Hour), v1alpha1.CampaignCancelled), ": say Began", "a b c"},
		"or it is a day old":                 {"*", stopped(noon.Add(-24*time.Hour), v1alpha1.CampaignCancelled), ": say Began", "a b c"},
		"or it was done":                     {"*", stopped(noon.Add(-time.Hour), v1alpha1.CampaignDone), ": say Began", "a b c"},
		"what it left behind is taken back":  {"*", func(g *Group) { stopped(noon, v1alpha1.CampaignFailed)(g); g.Status.StepID, g.Move.Stands = "m", true }, ": take back m, say Began", "a c"},
	} {
		g := sealed()
		g.Value = tc.value
		if tc.change != nil {
			tc.change(&g)
		}
		d := Decide(g)
		if got, left := words(d), strings.Join(d.Status.Left(), " "); got != tc.want || left != tc.left {
			if !strings.HasPrefix(tc.want, "nothing") || got != tc.want {
				t.Errorf("%s: got %q, left %q, want %q, left %q", name, got, left, tc.want, tc.left)
			}
		}
		if c := d.Status; c != nil && (c.Request != "r" || c.Order != tc.value || d.Rotate != "") {
			t.Errorf("%s: %+v", name, d)
		}
	}
	g := sealed()
	stopped(noon.Add(-time.Hour), v1alpha1.CampaignCancelled)(&g)
	if began := Decide(g).Status.BeganAt; !began.Time.Equal(noon.Add(-time.Hour)) {
		t.Errorf("what goes on began at %s: after a day it would be gone on with for ever", began)
	}
	g = sealed()
	underWay("b")(&g)
	g.keyring("b").KeyringVersion = 9 // in escrow, and not sealed yet
	if from := Decide(g).Status.Sites[1].FromVersion; from != 3 {
		t.Errorf("a rotation that is under way is counted from v%d: it would be done twice", from)
	}
}

// Whatever ends a campaign is answered, also by an operator that comes after the one that ended it, and nothing is done after it.
func TestAfterTheEnd(t *testing.T) {
	for outcome, want := range map[v1alpha1.CampaignOutcome]string{
		v1alpha1.CampaignDone: "Done X answer Done (Completed)", v1alpha1.CampaignFailed: "Failed X answer Failed (X)",
	} {
		g := begun()
		g.Status.Outcome, g.Status.Reason = outcome, "X"
		if got := words(Decide(g)); got != want {
			t.Errorf("got %q, want %q", got, want)
		}
		g.Asked = false
		if got := words(Decide(g)); got != string(outcome)+" X" {
			t.Errorf("without a request: %q", got)
		}
		g.Move.Stands, g.Status.StepID = true, "m"
		if got := words(Decide(g)); got != string(outcome)+" X take back m" {
			t.Errorf("a move that stands: %q", got)
		}
	}
	if got := words(Decide(Group{Move: Move{Stands: true}})); got != "nothing " {
		t.Errorf("a group that was never asked, whose role a person moves: %q", got)
	}
	if got := words(Decide(Group{})); got != "nothing " {
		t.Errorf("a group that was never asked: %q", got)
	}
	d := Refuse(sealed(), "NotEncrypted", "no")
	if got := words(d); got != "nothing answer Refused (NotEncrypted), say Refused" {
		t.Error(got)
	}
}

// The time of a step, and of a wait for one thing, does not move with every look: people are told by it.
func TestSince(t *testing.T) {
	g := begun(refuses("b", "SiteNotFollowing", "b does not replicate"))
	g.Status = Decide(g).Status
	g.Now = noon.Add(time.Minute)
	refuses("b", "SiteNotFollowing", "b lags by 3")(&g)
	d := Decide(g)
	if !d.Status.Since.Time.Equal(noon) || d.Status.Message != "b lags by 3" {
		t.Errorf("%+v", d.Status)
	}
	refuses("b", "SiteDiverged", "x")(&g)
	if d := Decide(g); !d.Status.Since.Time.Equal(g.Now) {
		t.Errorf("another reason: %+v", d.Status)
	}
	g.Status = d.Status
	done("b")(&g)
	refuses("c", "SiteNotFollowing", "c does not replicate")(&g)
	if d := Decide(g); !d.Status.Since.Time.Equal(g.Now) || d.Status.Site != "c" {
		t.Errorf("another site: %+v", d.Status)
	}
	g = begun(moves(answers(v1alpha1.RequestRefused, "TargetLags")))
	d = Decide(g)
	if d.Status.Moves != 0 || !d.Status.RetryAt.Time.Equal(noon.Add(askAgain)) {
		t.Errorf("refused: %+v", d.Status)
	}
	for outcome, want := range map[v1alpha1.RequestOutcome]int32{v1alpha1.RequestFailed: 1, v1alpha1.RequestDone: 1} {
		if d := Decide(begun(moves(answers(outcome, "X")))); d.Status.Moves != want {
			t.Errorf("%s: %d moves", outcome, d.Status.Moves)
		}
	}
	if d := Decide(begun(moves(func(g *Group) { g.Move.Stands = true }))); !d.Status.Asked {
		t.Error("it is not noted that the move was seen: one that is withdrawn would be asked for again")
	}
	g = begun()
	d = Decide(g)
	if d.Status.Sites[1].Tries != 1 || d.Status.Sites[0].Tries+d.Status.Sites[2].Tries != 0 || !d.Status.Since.Time.Equal(noon) {
		t.Errorf("tries %+v", d.Status.Sites)
	}
}

// A step forgets what the one before waited for. To ask again for a move that was refused is no step.
func TestAStepForgets(t *testing.T) {
	g := begun(moves())
	c := g.Status
	c.Step, c.Asked, c.RetryAt, c.Reason, c.Message = v1alpha1.CampaignWaiting, true, at(noon), "X", "x"
	if c := Decide(g).Status; c.Asked || c.RetryAt != nil || c.Reason != "X" || c.Message != "x" || c.StepID != "step" {
		t.Errorf("%+v", c)
	}
	c.Site = "c" // it waited for another site
	if c := Decide(g).Status; c.Asked || c.RetryAt != nil || c.Reason != "" || c.Message != "" || c.StepID != "step" {
		t.Errorf("%+v", c)
	}
	g = begun(func(g *Group) { g.Asked, g.Status.RetryAt, g.Status.Site = false, at(noon), "b" })
	if c := Decide(g).Status; c.RetryAt != nil || c.Site != "" || c.Step != "" || c.EndedAt == nil || !strings.HasSuffix(c.Message, "left: a, b, c") {
		t.Errorf("%+v", c)
	}
	g = begun(done("a", "b", "c"), func(g *Group) { g.Asked = false })
	if c := Decide(g).Status; !strings.HasSuffix(c.Message, "left: no site") {
		t.Errorf("%+v", c)
	}
}

// What others say has any length, status has not.
func TestTheStatusIsBounded(t *testing.T) {
	long := strings.Repeat("ä", 5000)
	for name, g := range map[string]Group{
		"a refusal":        begun(refuses("b", long, long)),
		"words of a move":  begun(moves(func(g *Group) { g.Move.Stands, g.Move.Words = true, long })),
		"an answer":        begun(moves(answers(v1alpha1.RequestRefused, long), func(g *Group) { g.Move.Answer.Message = long })),
		"a withdrawn move": begun(moves(func(g *Group) { g.Status.Asked, g.Status.Site = true, long })),
	} {
		c := Decide(g).Status
		if len(c.Reason) > maxReason || len(c.Message) > maxMessage || c.Message == "" {
			t.Errorf("%s: reason %d, message %d", name, len(c.Reason), len(c.Message))
		}
	}
	g := sealed()
	g.Value = "*:" + long
	if d := Decide(g); d.Status != nil {
		t.Error("an order without end is noted")
	}
}

func TestEffectsInWords(t *testing.T) {
	for _, e := range []Effect{AskMove{To: "b"}, TakeBack{}, Answer{}, Say{}} {
		if e.effect(); e.String() == "" {
			t.Errorf("%T says nothing", e)
		}
	}
}

// TestAMoveThatIsRefusedAgainAndAgainIsOneWait: it is asked for every 30 seconds, and people are told since when the campaign waits, and for what. A
// move that begins is a step of its own.
func TestAMoveThatIsRefusedAgainAndAgainIsOneWait(t *testing.T) {
	g := begun(moves(answers(v1alpha1.RequestRefused, "TargetLags")))
	g.Status = Decide(g).Status
	since := g.Status.Since
	if g.Status.Step != v1alpha1.CampaignWaiting || !g.Status.Waits() || !since.Time.Equal(noon) {
		t.Fatalf("%+v", g.Status)
	}
	for i := range 20 {
		g.Now, g.Fresh, g.Move = g.Now.Add(askAgain), fmt.Sprint("again", i), Move{}
		d := Decide(g)
		if g.Status = d.Status; effects(d) != "ask b as "+g.Fresh || g.Status.StepID != g.Fresh {
			t.Fatalf("it does not ask again: %s", words(d))
		}
		g.Move.Stands = true
		g.Status = Decide(g).Status
		if c := g.Status; !c.Waits() || !c.Asked || !c.Since.Equal(since) || c.Reason != "TargetLags" || c.Message == "" {
			t.Fatalf("while it asks: %+v", c)
		}
		g.Move = Move{Answer: &v1alpha1.LastRequest{ID: g.Fresh, Outcome: v1alpha1.RequestRefused, Reason: "TargetLags", Message: "so it is"}}
		g.Status = Decide(g).Status
		if c := g.Status; c.Step != v1alpha1.CampaignWaiting || !c.Since.Equal(since) {
			t.Fatalf("refused once more: %+v", c)
		}
	}
	// For another reason it is another wait.
	g.Now, g.Move = g.Now.Add(askAgain), Move{}
	g.Status = Decide(g).Status
	g.Move = Move{Answer: &v1alpha1.LastRequest{Outcome: v1alpha1.RequestRefused, Reason: "TargetUnhealthy"}}
	g.Status = Decide(g).Status
	if c := g.Status; c.Reason != "TargetUnhealthy" || !c.Since.Time.Equal(g.Now) {
		t.Errorf("another reason: %+v", c)
	}
	g.Now, g.Move = g.Now.Add(askAgain), Move{}
	g.Status = Decide(g).Status
	g.Now, g.Move = g.Now.Add(time.Second), Move{Stands: true, Words: "Moving: b catches up"}
	g.Status = Decide(g).Status
	if c := g.Status; c.Waits() || c.Reason != "" || c.Message != "Moving: b catches up" || !c.Since.Time.Equal(g.Now) {
		t.Errorf("it moves now: %+v", c)
	}
	began := g.Now
	g.Now = g.Now.Add(time.Second)
	if c := Decide(g).Status; !c.Since.Time.Equal(began) {
		t.Errorf("it moves since then: %+v", c)
	}
}

// TestWhatPeopleAreToldOfACampaign: what was begun, why nothing was, and what became of it.
func TestWhatPeopleAreToldOfACampaign(t *testing.T) {
	told := func(d Decision) string {
		for _, e := range d.Effects {
			if s, says := e.(Say); says {
				return s.Text
			}
		}
		return ""
	}
	for name, tc := range map[string]struct {
		value  string
		change func(*Group)
		want   string
	}{
		"all":                  {"*", func(*Group) {}, "The rotation of all sites begins: a, b, c"},
		"the replicas":         {"*:replicas", func(*Group) {}, "The rotation of all replicas begins: b, c"},
		"to one that may not":  {"*:to=c", func(*Group) {}, `The rotation of all sites was refused: the role cannot move to "c": that is no primary-candidate of the group`},
		"without any that may": {"*", func(g *Group) { g.Sites[1].Candidate = false }, "The rotation of all sites was refused: there is no other primary-candidate that the role could move to: ask for the replicas alone (*:replicas)"},
	} {
		g := sealed()
		g.Value = tc.value
		tc.change(&g)
		if got := told(Decide(g)); got != tc.want {
			t.Errorf("%s: %q", name, got)
		}
	}
	// A site that has the role now was left out, and nothing is said of its versions.
	g := begun(done("c"), func(g *Group) {
		replicas(g)
		g.Active, g.Status.Step, g.Status.Site = "b", v1alpha1.CampaignRotating, "c"
	})
	g.Now = noon.Add(time.Minute)
	d := Decide(g)
	c, want := d.Status, "new master keys, in escrow and sealed: c v3 -> v4"
	if c.Outcome != v1alpha1.CampaignDone || c.Message != want || told(d) != want || c.Step != "" || c.Site != "" || !c.Since.Time.Equal(g.Now) {
		t.Errorf("at its end: %+v, and %q", c, told(d))
	}
}

// TestAMoveThatIsDoneIsForgotten: also while nothing is known, and no step can begin in its place; one that was refused is not asked for any more.
func TestAMoveThatIsDoneIsForgotten(t *testing.T) {
	asked := func(g *Group) { g.Status.Asked, g.Status.Reason = true, "TargetLags" }
	c := Decide(begun(moves(answers(v1alpha1.RequestDone, "Opened"), asked, func(g *Group) { g.Active, g.Known = "b", false }))).Status
	if c.Step != "" || c.Asked || c.Reason != "" || c.Moves != 1 {
		t.Errorf("done: %+v", c)
	}
	if c := Decide(begun(moves(answers(v1alpha1.RequestRefused, "TargetLags"), asked))).Status; c.Step != v1alpha1.CampaignWaiting || c.Asked {
		t.Errorf("refused: %+v", c)
	}
}
