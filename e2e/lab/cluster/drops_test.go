// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

func labState(t *testing.T) *state {
	t.Helper()
	s := newState()
	var err error
	if s.Nodes, err = planNodes([]string{"east", "west"}, true); err != nil {
		t.Fatal(err)
	}
	return s
}

func TestExpand(t *testing.T) {
	s := labState(t)
	for name, c := range map[string]struct {
		a, b   string
		oneWay bool
		want   []Drop
	}{
		"both ways": {"east", "west", false, []Drop{{"east", "west"}, {"west", "east"}}},
		"one way":   {"east", "host", true, []Drop{{"east", "host"}}},
		"from all others, not from itself": {"client", "all", true, []Drop{
			{"client", "host"}, {"client", "hub"}, {"client", "east"}, {"client", "west"},
		}},
	} {
		got, err := expand(s, c.a, c.b, c.oneWay)
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		if diff := cmp.Diff(c.want, got); diff != "" {
			t.Errorf("%s: %s", name, diff)
		}
	}
	for _, pair := range [][2]string{{"east", "east"}, {"east", "mars"}, {"mars", "all"}} {
		if _, err := expand(s, pair[0], pair[1], false); err == nil {
			t.Errorf("%v accepted", pair)
		}
	}
}

func TestRenderDrops(t *testing.T) {
	s := labState(t)
	s.Drops = []Drop{{"west", "east"}, {"east", "host"}, {"host", "east"}, {"client", "west"}}
	east, west := s.Nodes[1], s.Nodes[2]
	want := `*mangle
:MFG-LAB-IN - [0:0]
:MFG-LAB-OUT - [0:0]
-A MFG-LAB-IN -i eth0 -s 10.89.0.4 -j DROP
-A MFG-LAB-IN -i eth0 -s 10.244.4.0/24 -j DROP
-A MFG-LAB-OUT -o eth0 -d 10.89.0.1 -j DROP
-A MFG-LAB-IN -i eth0 -s 10.89.0.1 -j DROP
COMMIT
`
	if diff := cmp.Diff(want, renderDrops(s, east)); diff != "" {
		t.Error(diff)
	}
	want = `*mangle
:MFG-LAB-IN - [0:0]
:MFG-LAB-OUT - [0:0]
-A MFG-LAB-IN -i eth0 -s 10.89.0.200 -j DROP
COMMIT
`
	if diff := cmp.Diff(want, renderDrops(s, west)); diff != "" {
		t.Error(diff)
	}
}
