// SPDX-License-Identifier: Apache-2.0

package cmd

import (
	"encoding/json"
	"path/filepath"
	"testing"
	"time"

	"github.com/mysql-mfg/mfg/api/v1alpha1"
)

// TestRotateReport: typed answers, of a run that ends well and of one that does not.
func TestRotateReport(t *testing.T) {
	r := &rotator{f: sealedGroup(t)}
	got := rotated(t, r, runOptions{}, "--all --yes -o json")
	if got.code != exitHealthy {
		t.Fatalf("%+v", got)
	}
	golden(t, filepath.Join("testdata", "verbs", "rotate-all.json"), got.out)

	r = &rotator{f: sealedGroup(t), stuckAt: v1alpha1.KeyringUnsealed}
	got = rotated(t, r, runOptions{}, "--all --yes --timeout 3s -o json")
	var rep rotationReport
	if err := json.Unmarshal([]byte(got.out), &rep); err != nil || got.code != exitTimeout || rep.Outcome != outcomeUnfinished || len(rep.Left) != 3 {
		t.Errorf("%v, exit code %d, %+v", err, got.code, rep)
	}
	golden(t, filepath.Join("testdata", "verbs", "rotate-unfinished.json"), got.out)

	got = rotated(t, &rotator{f: sealedGroup(t)}, runOptions{width: 100}, "--all --dry-run=client")
	golden(t, filepath.Join("testdata", "verbs", "rotate-plan.txt"), got.out)
}

func TestCampaignIsReadAsWritten(t *testing.T) {
	c := newCampaign(&sealedGroup(t).groups[0], noon.Add(time.Millisecond))
	back, err := parseCampaign(c.String())
	if err != nil || back.String() != c.String() || !back.began.Equal(noon) {
		t.Errorf("%v: %q, want %q", err, back, c)
	}
	for _, text := range []string{"", "yesterday", "2026-11-03T12:00:00Z paris", "2026-11-03T12:00:00Z paris=x", "2026-11-03T12:00:00Z =3", "2026-11-03T12:00:00Z paris=-1"} {
		if c, err := parseCampaign(text); err == nil {
			t.Errorf("%q is read as %v", text, c)
		}
	}
}
