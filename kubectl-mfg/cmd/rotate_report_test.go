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
	left := []string{"frankfurt", "madrid", "paris"}
	report := func(r *rotator, o runOptions, args string) (rep rotate.Report) {
		t.Helper()
		got := rotated(t, r, o, args+" --yes -o json")
		if err := json.Unmarshal([]byte(got.out), &rep); err != nil || got.code == cli.ExitHealthy {
			t.Errorf("%v: %+v", err, got)
		}
		return rep
	}
	r := &rotator{f: sealedGroup(t)}
	rep := report(r, runOptions{tick: func(n int) {
		if r.look(n); n > 2 {
			r.stuckAt = v1alpha1.KeyringFailed // and Work says for what
			keyringIn(r.f, "frankfurt").Phase = r.stuckAt
		}
	}}, "--all --timeout 3s")
	for _, want := range []string{"see how far it is: kubectl mfg status orders", "frankfurt is half done, Failed", "do not delete, restart or drain its pod", "to go on: kubectl mfg rotate"} {
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

// TestRotateAgeByTheOperatorsClock: a machine whose clock is a day ahead goes on with what was begun an hour ago.
func TestRotateAgeByTheOperatorsClock(t *testing.T) {
	r := &rotator{f: sealedGroup(t)}
	r.f.live.IssuedAt = noon.Add(-25 * time.Hour)
	r.f.groups[0].Annotations[v1alpha1.AnnotationRotation] = "2026-11-02T10:00:00Z paris=3 frankfurt=3 madrid=2"
	if got := rotated(t, r, runOptions{}, "--all --yes"); got.code != cli.ExitHealthy || len(r.did) != 4 {
		t.Errorf("%v %+v", r.did, got)
	}
	r = &rotator{f: sealedGroup(t)}
	r.f.live.IssuedAt = noon.Add(-25 * time.Hour)
	rotated(t, r, runOptions{}, "--all --yes")
	if note := r.f.patched[0][v1alpha1.AnnotationRotation]; note != "2026-11-02T11:00:00Z paris=3 frankfurt=3 madrid=2" {
		t.Errorf("the note is of another clock: %v", note)
	}
}

func TestCampaignIsReadAsWritten(t *testing.T) {
	c := rotate.NewCampaign(&sealedGroup(t).groups[0], noon.Add(time.Millisecond))
	back, err := rotate.ParseCampaign(c.String())
	if err != nil || back.String() != c.String() || !back.Began.Equal(noon) {
		t.Errorf("%v: %q, want %q", err, back, c)
	}
	for _, text := range []string{"", "yesterday", "2026-11-03T12:00:00Z paris", "2026-11-03T12:00:00Z paris=x", "2026-11-03T12:00:00Z =3", "2026-11-03T12:00:00Z paris=-1"} {
		if c, err := rotate.ParseCampaign(text); err == nil {
			t.Errorf("%q is read as %v", text, c)
		}
	}
}
