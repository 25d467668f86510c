// SPDX-License-Identifier: Apache-2.0

package cmd

import (
	"strings"
	"testing"
	"time"

	"github.com/mysql-mfg/mfg/api/v1alpha1"
	"github.com/mysql-mfg/mfg/kubectl-mfg/cli"
	"github.com/mysql-mfg/mfg/kubectl-mfg/failover"
	"github.com/mysql-mfg/mfg/kubectl-mfg/request"
)

const asksRotation = v1alpha1.AnnotationRotateKeyring

// rotationOf has the first group ask for the rotation of a site.
func rotationOf(f *fakeAPI, site, id string) {
	f.groups[0].Annotations = map[string]string{asksRotation: site, v1alpha1.RequestRotateKeyring.IDAnnotation(): id}
}

// Each request has an id of its own, and the one that is asked for already keeps its: two who ask for the same hear the same answer.
func TestARequestHasAnID(t *testing.T) {
	const idKey = asksRotation + "-id"
	for name, tc := range map[string]struct {
		change func(*fakeAPI)
		kept   string
	}{
		"nothing is asked for":      {func(*fakeAPI) {}, ""},
		"another site is asked for": {func(f *fakeAPI) { rotationOf(f, "madrid", "theirs") }, ""},
		"the same is asked for":     {func(f *fakeAPI) { rotationOf(f, "frankfurt", "theirs") }, "theirs"},
		"the same, by hand":         {func(f *fakeAPI) { rotationOf(f, "frankfurt", "") }, ""},
		"the same was answered by now": {func(f *fakeAPI) {
			rotationOf(f, "frankfurt", "theirs")
			f.groups[0].Status.LastRequests = answers("theirs")
		}, ""},
		"the same, another was answered": {func(f *fakeAPI) { rotationOf(f, "frankfurt", "theirs"); f.groups[0].Status.LastRequests = answers("x") }, "theirs"},
	} {
		f := loadHealthy(t)
		tc.change(f)
		r := request.Request{}
		sent := r.Named(&f.groups[0], map[string]string{asksRotation: "frankfurt", "mine": "stays"})
		if r.ID == "" || sent[idKey] != r.ID || sent["mine"] != "stays" || sent[asksRotation] != "frankfurt" {
			t.Errorf("%s: id %q, sent %v", name, r.ID, sent)
		}
		if (tc.kept == "") == (r.ID == "theirs") || tc.kept != "" && r.ID != tc.kept {
			t.Errorf("%s: the id is %q", name, r.ID)
		}
		again := request.Request{}
		if again.Named(&f.groups[0], map[string]string{asksRotation: "frankfurt"}); tc.kept == "" && again.ID == r.ID {
			t.Errorf("%s: two requests have the id %q", name, r.ID)
		}
	}
	r := request.Request{}
	if sent := r.Named(&loadHealthy(t).groups[0], map[string]string{asksRotation: ""}); r.ID != "" || len(sent) != 2 || sent[idKey] != "" {
		t.Errorf("what is taken back: id %q, sent %v", r.ID, sent)
	}
}

func answers(id string) []v1alpha1.LastRequest {
	return []v1alpha1.LastRequest{
		{Kind: v1alpha1.RequestRecloneSite, ID: "mine", Target: "frankfurt", Outcome: v1alpha1.RequestRefused},
		{Kind: v1alpha1.RequestRotateKeyring, ID: id, Target: "frankfurt", Outcome: v1alpha1.RequestDone},
	}
}

// Whoever waits goes on until there is an answer, takes none that another got, and does not wait for those who ask the same after that.
func TestARequestStandsUntilItIsAnswered(t *testing.T) {
	const kind = v1alpha1.RequestRotateKeyring
	for name, tc := range map[string]struct {
		site, id string
		answered string
		stands   bool
		answer   bool
	}{
		"as it was asked for":                {"frankfurt", "mine", "", true, false},
		"an earlier one was answered":        {"frankfurt", "mine", "earlier", true, false},
		"answered, and not taken off yet":    {"frankfurt", "mine", "mine", true, true},
		"answered, and taken off":            {"", "", "mine", false, true},
		"taken off without an answer":        {"", "", "earlier", false, false},
		"replaced by another":                {"madrid", "theirs", "earlier", false, false},
		"answered, and asked for once more":  {"frankfurt", "theirs", "mine", false, true},
		"not answered, and got another's id": {"frankfurt", "theirs", "earlier", true, false},
	} {
		f := loadHealthy(t)
		if tc.site != "" {
			rotationOf(f, tc.site, tc.id)
		}
		if tc.answered != "" {
			f.groups[0].Status.LastRequests = answers(tc.answered)
		}
		r := request.Request{ID: "mine"}
		if got := r.Stands(&f.groups[0], kind, "frankfurt"); got != tc.stands {
			t.Errorf("%s: stands %t", name, got)
		}
		if tc.stands && r.ID != tc.id {
			t.Errorf("%s: goes on with the id %q", name, r.ID)
		}
		if got := r.Answer(&f.groups[0], kind); (got != nil) != tc.answer || got != nil && got.Kind != kind {
			t.Errorf("%s: the answer is %+v", name, got)
		}
	}
	if got := (&request.Request{}).Answer(&v1alpha1.MysqlFailoverGroup{Status: v1alpha1.MysqlFailoverGroupStatus{LastRequests: answers("")}}, kind); got != nil {
		t.Errorf("without an id every answer is taken: %+v", got)
	}
}

// Where another planned failover has taken its place in status, the answer tells what came of one.
func TestAnAnswerTellsOfAPlannedFailover(t *testing.T) {
	for outcome, want := range map[v1alpha1.LastRequest]string{
		{Outcome: v1alpha1.RequestDone, Reason: "Opened"}:                 string(v1alpha1.PlannedSucceeded),
		{Outcome: v1alpha1.RequestRefused, Reason: "NotFit"}:              string(v1alpha1.PlannedRefused),
		{Outcome: v1alpha1.RequestFailed, Reason: "PauseTimeout"}:         string(v1alpha1.PlannedReverted),
		{Outcome: v1alpha1.RequestFailed, Reason: v1alpha1.AnswerAborted}: string(v1alpha1.PlannedAborted),
	} {
		rep := &request.Report{}
		failover.Settle(&v1alpha1.MysqlFailoverGroup{}, failover.Move{To: "frankfurt"}, &outcome, rep)
		if rep.Outcome != want || string(rep.Reason) != outcome.Reason {
			t.Errorf("%+v: %s (%s)", outcome, rep.Outcome, rep.Reason)
		}
	}
	rep := &request.Report{}
	if failover.Settle(&v1alpha1.MysqlFailoverGroup{}, failover.Move{To: "frankfurt"}, nil, rep); rep.Outcome != cli.OutcomeRefused || !strings.Contains(rep.Message, "without an answer") {
		t.Errorf("%+v", rep)
	}
}

// What was withdrawn in the moment in which it was carried out was too late to withdraw. An answer to an earlier order says nothing.
func TestWithdrawnInTheMomentOfItsAnswer(t *testing.T) {
	const kind = v1alpha1.RequestForceFailover
	at := func(id, site string, outcome v1alpha1.RequestOutcome, seconds int) *v1alpha1.LastRequest {
		return &v1alpha1.LastRequest{Kind: kind, ID: id, Target: site, Outcome: outcome, AnsweredAt: *microTime(time.Duration(seconds) * time.Second)}
	}
	const done = v1alpha1.RequestDone
	for name, tc := range map[string]struct {
		id            string
		former, after *v1alpha1.LastRequest
		want          bool
	}{
		"not answered":                   {"1", nil, nil, false},
		"carried out":                    {"1", at("0", "b", done, 1), at("1", "b", done, 2), true},
		"answered before it was seen":    {"1", at("1", "b", done, 1), at("1", "b", done, 1), true},
		"refused":                        {"1", nil, at("1", "b", v1alpha1.RequestRefused, 2), false},
		"another order":                  {"1", nil, at("2", "b", done, 2), false},
		"another site":                   {"1", nil, at("1", "c", done, 2), false},
		"by hand":                        {"", nil, at("", "b", done, 2), true},
		"by hand, as an earlier one":     {"", at("", "b", done, 1), at("", "b", done, 2), true},
		"by hand, the earlier one alone": {"", at("", "b", done, 1), at("", "b", done, 1), false},
	} {
		before, after := &v1alpha1.MysqlFailoverGroup{}, &v1alpha1.MysqlFailoverGroup{}
		before.Annotations = map[string]string{kind.Annotation(): "b", kind.IDAnnotation(): tc.id}
		if tc.former != nil {
			before.Status.LastRequests = []v1alpha1.LastRequest{*tc.former}
		}
		if tc.after != nil {
			after.Status.LastRequests = []v1alpha1.LastRequest{*tc.after}
		}
		if got := (failover.Undone{Order: "b", Ordered: true}).WasDone(before, after); got != tc.want {
			t.Errorf("%s: %t", name, got)
		}
	}
}
