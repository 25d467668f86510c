// SPDX-License-Identifier: Apache-2.0

package cmd

import (
	"encoding/json"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/mysql-mfg/mfg/api/v1alpha1"
	"github.com/mysql-mfg/mfg/kubectl-mfg/cli"
	"github.com/mysql-mfg/mfg/kubectl-mfg/report"
	"github.com/mysql-mfg/mfg/kubectl-mfg/rotate"
)

// TestRotateReport: typed answers, of a run that ends well and of one that does not.
func TestRotateReport(t *testing.T) {
	r := &rotator{f: sealedGroup(t)}
	got := rotated(t, r, runOptions{}, "--all --yes -o json")
	if got.code != cli.ExitHealthy {
		t.Fatalf("%+v", got)
	}
	golden(t, filepath.Join("testdata", "verbs", "rotate-all.json"), got.out)

	r = &rotator{f: sealedGroup(t), stuckAt: v1alpha1.KeyringUnsealed}
	got = rotated(t, r, runOptions{}, "--all --yes --timeout 3s -o json")
	var rep rotate.Report
	if err := json.Unmarshal([]byte(got.out), &rep); err != nil || got.code != cli.ExitTimeout || rep.Outcome != rotate.OutcomeUnfinished || len(rep.Left) != 3 {
		t.Errorf("%v, exit code %d, %+v", err, got.code, rep)
	}
	golden(t, filepath.Join("testdata", "verbs", "rotate-unfinished.json"), got.out)

	got = rotated(t, &rotator{f: sealedGroup(t)}, runOptions{width: 100}, "--all --dry-run=client")
	golden(t, filepath.Join("testdata", "verbs", "rotate-plan.txt"), got.out)
}

// TestRotateReportOfFailure: a script reads the same remedies as a person, and which sites are left.
func TestRotateReportOfFailure(t *testing.T) {
	left := []string{"frankfurt", "madrid", "paris"} // in whatever order
	report := func(r *rotator, o runOptions, args string) (rep rotate.Report) {
		t.Helper()
		got := rotated(t, r, o, args+" --yes -o json")
		if err := json.Unmarshal([]byte(got.out), &rep); err != nil || got.code == cli.ExitHealthy {
			t.Errorf("%v: %+v", err, got)
		}
		slices.Sort(rep.Left)
		return rep
	}
	r := &rotator{f: sealedGroup(t)}
	rep := report(r, runOptions{tick: func(n int) {
		if r.look(n); n > 2 {
			r.stuckAt = v1alpha1.KeyringFailed // and Work says for what
			keyringIn(r.f, "frankfurt").Phase = r.stuckAt
		}
	}}, "--all --timeout 3s")
	for _, want := range []string{"see how far it is: kubectl mfg status orders", "frankfurt is half done, Failed", "do not delete, restart or drain its pod", "to watch it: kubectl mfg rotate"} {
		if !strings.Contains(rep.Next, want) {
			t.Errorf("lacks %q: %+v", want, rep)
		}
	}
	if rep.Outcome != rotate.OutcomeUnfinished || strings.Contains(rep.Message, "kubectl") || !slices.Equal(rep.Left, left) {
		t.Errorf("%+v", rep)
	}

	r = &rotator{f: sealedGroup(t), stuckAt: v1alpha1.KeyringUnsealed} // the group cannot be read in the end
	rep = report(r, runOptions{tick: func(n int) {
		if r.look(n); n > 2 {
			r.f.answers["/apis/mysql-mfg.io/v1alpha1/namespaces/shop/mysqlfailovergroups/orders"] = status(403, metav1.StatusReasonForbidden, "no")
		}
	}}, "--all --timeout 3s")
	if !slices.Equal(rep.Left, left) {
		t.Errorf("%+v", rep)
	}

	r = &rotator{f: sealedGroup(t)} // refused before it began
	keyringIn(r.f, "madrid").Phase = v1alpha1.KeyringFailed
	if rep = report(r, runOptions{}, "--all"); rep.Outcome != cli.OutcomeRefused || !slices.Equal(rep.Left, left) {
		t.Errorf("%+v", rep)
	}
	r.f.live = nil
	if rep = report(r, runOptions{}, "--all"); rep.Outcome != cli.OutcomeRefused || rep.Left != nil {
		t.Errorf("%+v", rep)
	}
}

// TestRotateAgeByTheOperatorsClock: a machine whose clock is a day ahead goes on with what was stopped an hour ago.
func TestRotateAgeByTheOperatorsClock(t *testing.T) {
	for began, want := range map[time.Time]bool{noon.Add(-26 * time.Hour): true, noon.Add(-50 * time.Hour): false} {
		r := &rotator{f: sealedGroup(t)}
		r.f.live.IssuedAt = noon.Add(-25 * time.Hour)
		r.f.groups[0].Status.EncryptionAtRest.Campaign = &v1alpha1.CampaignStatus{Outcome: v1alpha1.CampaignCancelled, BeganAt: metav1.NewMicroTime(began),
			Sites: []v1alpha1.CampaignSite{{Name: "paris", FromVersion: 3}}}
		if got := rotated(t, r, runOptions{}, "--all --dry-run"); strings.Contains(got.out, "Goes on") != want {
			t.Errorf("began at %s: %+v", began, got)
		}
	}
}

// TestStatusShowsACampaign: for people and for scripts, while it is under way.
func TestStatusShowsACampaign(t *testing.T) {
	f := sealedGroup(t)
	c := &v1alpha1.CampaignStatus{Request: "r", Order: "*", Step: v1alpha1.CampaignWaiting, Site: "madrid", Reason: "SiteNotFollowing", Message: "madrid does not replicate",
		Sites: []v1alpha1.CampaignSite{{Name: "paris", FromVersion: 3}, {Name: "frankfurt", FromVersion: 2, ToVersion: 3}, {Name: "madrid", FromVersion: 2}}}
	f.groups[0].Status.EncryptionAtRest.Campaign = c
	told := func() string {
		return strings.Join(strings.Fields(run(t, f, runOptions{}, "status", "orders", "-n", "shop").out), " ")
	}
	if got := told(); !strings.Contains(got, "Rotation of all sites: waits (SiteNotFollowing): madrid does not replicate; left: paris, madrid") {
		t.Error(got)
	}
	if got := run(t, f, runOptions{}, "status", "orders", "-n", "shop", "-o", "json"); !strings.Contains(got.out, `"campaign": {`) || !strings.Contains(got.out, `"step": "Waiting"`) {
		t.Error(got.out)
	}
	if c.Outcome = v1alpha1.CampaignDone; strings.Contains(told(), "Rotation") {
		t.Error("it is shown after its end")
	}
}

// TestExplainShowsACampaign: at which site it is, for what it waits, since when, and what to do; with the operator's answer and without.
func TestExplainShowsACampaign(t *testing.T) {
	f := sealedGroup(t)
	since := metav1.NewMicroTime(noon.Add(-3 * time.Hour))
	c := &v1alpha1.CampaignStatus{Request: "r", Order: "*", Step: v1alpha1.CampaignWaiting, Site: "madrid", Reason: "SiteNotFollowing", Message: "madrid does not replicate",
		Since: &since, Sites: []v1alpha1.CampaignSite{{Name: "paris", FromVersion: 3}, {Name: "madrid", FromVersion: 2}}}
	told := func() string {
		return strings.Join(strings.Fields(run(t, f, runOptions{}, "explain", "orders", "-n", "shop").out), " ")
	}
	if got := told(); strings.Contains(got, "Rotation") {
		t.Error("it is shown although there is none: " + got)
	}
	f.groups[0].Status.EncryptionAtRest.Campaign = c
	for _, explains := range []bool{false, true} {
		if explains {
			f.explanation = inspected(t).explanation
		}
		got := told()
		for _, want := range []string{
			"Rotation of all sites, which keeps no failover from happening: waits (SiteNotFollowing): madrid does not replicate; left: paris, madrid; since 3h",
			"kubectl mfg status orders -n shop", "kubectl mfg rotate orders -n shop --stop",
		} {
			if !strings.Contains(got, want) {
				t.Errorf("the operator explains: %v: %q is missing: %s", explains, want, got)
			}
		}
	}
	var typed report.Explained
	if err := json.Unmarshal([]byte(run(t, f, runOptions{}, "explain", "orders", "-n", "shop", "-o", "json").out), &typed); err != nil || typed.Campaign == nil ||
		typed.Campaign.Site != "madrid" || !typed.Campaign.Since.Equal(since.Time) || typed.Campaign.Reason != "SiteNotFollowing" || len(typed.CampaignHints) != 2 {
		t.Errorf("%v: %+v", err, typed.Campaign)
	}
	if c.Outcome = v1alpha1.CampaignDone; strings.Contains(told(), "Rotation") {
		t.Error("it is shown after its end")
	}
}
