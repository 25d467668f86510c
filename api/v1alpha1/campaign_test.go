// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import (
	"strings"
	"testing"
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
