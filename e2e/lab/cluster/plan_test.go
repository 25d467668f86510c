// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestPlanNodes(t *testing.T) {
	got, err := planNodes([]string{"east", "west"}, true)
	if err != nil {
		t.Fatal(err)
	}
	want := []Endpoint{
		{Name: "hub", Index: 2, IP: "10.89.0.2", MAC: "02:6d:66:67:00:02", PodCIDR: "10.244.2.0/24"},
		{Name: "east", Index: 3, IP: "10.89.0.3", MAC: "02:6d:66:67:00:03", PodCIDR: "10.244.3.0/24"},
		{Name: "west", Index: 4, IP: "10.89.0.4", MAC: "02:6d:66:67:00:04", PodCIDR: "10.244.4.0/24"},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	if clientEndpoint().PodCIDR != "" || hostEndpoint().Netns() != "" {
		t.Error("client and host run no pods, and the host has no namespace of its own")
	}
}

func TestPlanNodesRefuses(t *testing.T) {
	for reason, sites := range map[string][]string{
		"twice":                  {"a", "a"},
		"the hub is there":       {"hub"},
		"taken":                  {"client"},
		"means every place":      {"all"},
		"no DNS label":           {"East"},
		"ends with a dash":       {"a-"},
		"too long":               {strings.Repeat("a", 31)},
		"more than the client's": strings.Split(strings.Repeat("a", 21), ""),
	} {
		if _, err := planNodes(sites, true); err == nil {
			t.Errorf("%v accepted, but: %s", sites, reason)
		}
	}
	if _, err := planNodes(nil, false); err == nil {
		t.Error("a lab without nodes accepted")
	}
}

func TestInterfaceNamesFit(t *testing.T) {
	if n := clientEndpoint().Veth(); len(n) > 15 {
		t.Errorf("the kernel refuses %s", n)
	}
}
