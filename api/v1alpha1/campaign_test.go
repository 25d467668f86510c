// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import (
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

func TestCampaignOrders(t *testing.T) {
	for value, want := range map[string]CampaignOrder{
		"*": {}, "*:replicas": {Replicas: true}, "*:restart": {Restart: true}, "*:to=b": {To: "b"},
		"*:replicas,restart": {Replicas: true, Restart: true}, "*:restart,to=b": {Restart: true, To: "b"},
	} {
		got, err := ParseCampaignOrder(value)
		if err != nil || got != want || got.String() != value || !AsksForCampaign(value) {
			t.Errorf("%s: %+v (%s), %v", value, got, got, err)
		}
	}
	for _, value := range []string{"", "b", "**", "*b", "*:", "*:all", "*:replicas,", "*:to=", "*:to=b,to=c", "*:replicas,replicas",
		"*:restart,restart", "*:replicas,to=b", "* ", "*:to=" + strings.Repeat("b", 300)} {
		if got, err := ParseCampaignOrder(value); err == nil {
			t.Errorf("%q is read as %+v", value, got)
		} else if len(err.Error()) > 400 {
			t.Errorf("%q: an error of %d bytes", value, len(err.Error()))
		}
	}
	for _, site := range []string{"b", "", "replicas"} {
		if AsksForCampaign(site) {
			t.Errorf("the site %q is taken for all", site)
		}
	}
}

func TestCampaignLeft(t *testing.T) {
	var none *CampaignStatus
	if none.UnderWay() || len(none.Left()) != 0 {
		t.Error("no campaign is under way, and has sites left")
	}
	c := &CampaignStatus{Sites: []CampaignSite{{Name: "a"}, {Name: "b", ToVersion: 2}}}
	if got := c.Left(); len(got) != 1 || got[0] != "a" || !c.UnderWay() {
		t.Error(got)
	}
	if c.Outcome = CampaignFailed; c.UnderWay() {
		t.Error("it has ended")
	}
}

func TestCampaignInWords(t *testing.T) {
	sites := []CampaignSite{{Name: "a"}, {Name: "b", ToVersion: 2}}
	for want, c := range map[string]*CampaignStatus{
		"the operator has not begun it yet": nil,
		"begins; left: a":                   {Sites: sites},
		"rotates a; left: a":                {Sites: sites, Step: CampaignRotating, Site: "a"},
		"moves the role to b; left: a":      {Sites: sites, Step: CampaignMoving, Site: "b"},
		"waits (Paused): by Ann; left: a":   {Sites: sites, Step: CampaignWaiting, Site: "b", Reason: "Paused", Message: "by Ann"},
		"failed (Aborted): by Ann":          {Sites: sites, Outcome: CampaignFailed, Reason: "Aborted", Message: "by Ann"},
	} {
		if got := c.Words(); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}

// What one of the two versions alone says is not enough.
func TestRotatedSince(t *testing.T) {
	for name, tc := range map[string]struct {
		k    SiteKeyringStatus
		want int64
	}{
		"rotated":           {SiteKeyringStatus{Phase: KeyringSealed, KeyringVersion: 4, RotatedVersion: 4}, 4},
		"and cloned since":  {SiteKeyringStatus{Phase: KeyringSealed, KeyringVersion: 5, RotatedVersion: 4}, 4},
		"only cloned":       {SiteKeyringStatus{Phase: KeyringSealed, KeyringVersion: 4, RotatedVersion: 3}, 0},
		"rolled back since": {SiteKeyringStatus{Phase: KeyringSealed, KeyringVersion: 3, RotatedVersion: 4}, 0},
		"not sealed yet":    {SiteKeyringStatus{Phase: KeyringEscrowed, KeyringVersion: 4, RotatedVersion: 4}, 0},
	} {
		if got := tc.k.RotatedSince(3); got != tc.want {
			t.Errorf("%s: v%d", name, got)
		}
	}
	if v := (SiteKeyringStatus{KeyringVersion: 4, SeedVersion: 3}).VersionBefore(); v != 3 {
		t.Errorf("under way: v%d", v)
	}
}

func TestACampaignGoesOnForADay(t *testing.T) {
	began := metav1.NewMicroTime(time.Date(2026, 11, 3, 12, 0, 0, 0, time.UTC))
	for name, tc := range map[string]struct {
		c     *CampaignStatus
		after time.Duration
		want  bool
	}{
		"none":      {nil, 0, false},
		"under way": {&CampaignStatus{BeganAt: began}, 0, false},
		"done":      {&CampaignStatus{BeganAt: began, Outcome: CampaignDone}, 0, false},
		"cancelled": {&CampaignStatus{BeganAt: began, Outcome: CampaignCancelled}, 24*time.Hour - 1, true},
		"failed":    {&CampaignStatus{BeganAt: began, Outcome: CampaignFailed}, 0, true},
		"a day old": {&CampaignStatus{BeganAt: began, Outcome: CampaignFailed}, 24 * time.Hour, false},
	} {
		if got := tc.c.GoesOn(began.Add(tc.after)); got != tc.want {
			t.Errorf("%s: %t", name, got)
		}
	}
}
