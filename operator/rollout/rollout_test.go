// SPDX-License-Identifier: Apache-2.0

package rollout_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/mysql-mfg/mfg/operator/rollout"
)

// sites reads "a active new settled; b old": words are facts of a site.
func sites(text string) []rollout.Site {
	var out []rollout.Site
	for _, part := range strings.Split(text, ";") {
		words := strings.Fields(part)
		s := rollout.Site{Name: words[0], Exists: true}
		for _, w := range words[1:] {
			switch w {
			case "active":
				s.Active = true
			case "missing":
				s.Exists = false
			case "new":
				s.UpToDate = true
			case "old":
			case "settled":
				s.Settled = true
			case "broken":
				s.Broken = true
			case "busy":
				s.Busy = true
			default:
				panic(w)
			}
		}
		out = append(out, s)
	}
	return out
}

func TestNext(t *testing.T) {
	tests := map[string]struct {
		because    string
		sites      string
		transition bool
		create     []string
		update     string
		reason     rollout.Reason
		site       string
	}{
		"new group": {
			because: "nothing is disturbed by creating all at once",
			sites:   "a missing; b missing; c missing", create: []string{"a", "b", "c"}, reason: rollout.Creating,
		},
		"all done": {because: "nothing to do", sites: "a active new settled; b new settled", reason: rollout.UpToDate},
		"all new but one silent": {
			because: "an update is done when its last site is back",
			sites:   "a active new settled; b new", reason: rollout.WaitingForSite, site: "b",
		},
		"replicas first": {
			because: "the active site is last wherever it stands",
			sites:   "a active old settled; b old settled; c old settled", update: "b", reason: rollout.Updating, site: "b",
		},
		"one at a time": {
			because: "the updated site must be back first",
			sites:   "a active old settled; b new; c old settled", reason: rollout.WaitingForSite, site: "b",
		},
		"the next replica": {
			because: "b is back",
			sites:   "a active old settled; b new settled; c old settled", update: "c", reason: rollout.Updating, site: "c",
		},
		"the active site last": {
			because: "all others are back",
			sites:   "a active old settled; b new settled; c new settled", update: "a", reason: rollout.UpdatingActive, site: "a",
		},
		"the active site waits": {
			because: "without c only b would hold the data",
			sites:   "a active old settled; b new settled; c new", reason: rollout.WaitingForSite, site: "c",
		},
		"the active site is fenced": {
			because: "a failover may be due",
			sites:   "a active old; b old settled", reason: rollout.WaitingForSite, site: "a",
		},
		"a replica that does not replicate": {
			because: "the update may be its cure, and costs nothing",
			sites:   "a active old settled; b old settled; c old", update: "c", reason: rollout.Updating, site: "c",
		},
		"a broken pod": {
			because: "a bad setting was corrected: the site that has the bad one is not waited for",
			sites:   "a active old settled; b old broken; c old settled", update: "b", reason: rollout.Repairing, site: "b",
		},
		"all broken": {
			because: "a new group with a bad setting: corrected site by site, without waiting for a group to exist",
			sites:   "a new; b old broken; c old broken", update: "b", reason: rollout.Repairing, site: "b",
		},
		"the broken active site last": {
			because: "a replica that can come up may be promoted instead",
			sites:   "a active old broken; b old broken", update: "b", reason: rollout.Repairing, site: "b",
		},
		"only the active site is broken": {
			because: "nothing is open, so the correction must reach it",
			sites:   "a active old broken; b new", update: "a", reason: rollout.Repairing, site: "a",
		},
		"failover in flight": {
			because: "a pod replaced now may be the one that is needed", transition: true,
			sites: "a active old settled; b old settled", reason: rollout.FailoverInFlight,
		},
		"clone in flight": {
			because: "the clone would be lost",
			sites:   "a active old settled; b old settled; c new busy", reason: rollout.LongWorkInFlight, site: "c",
		},
		"a new site while another is updated": {
			because: "creating disturbs nobody",
			sites:   "a active old settled; b old settled; c missing", create: []string{"c"}, update: "b",
			reason: rollout.Updating, site: "b",
		},
		"a new site during a failover": {
			because: "creating disturbs nobody", transition: true,
			sites: "a active old settled; b old settled; c missing", create: []string{"c"}, reason: rollout.Creating,
		},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			got := rollout.Next(sites(tt.sites), tt.transition)
			want := rollout.Decision{
				Create: tt.create, Update: tt.update, Reason: tt.reason, Site: tt.site, Message: got.Message,
			}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("%s (-want +got):\n%s", tt.because, diff)
			}
			if got.Message == "" {
				t.Error("no message")
			}
		})
	}
}

// Whatever the facts, a pod that serves is replaced only while every other site serves, the active site's only when
// all others have the new template, and none while the active site changes or long work runs.
func TestNeverTakesASecondSite(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var in []rollout.Site
		active := rapid.IntRange(-1, 4).Draw(t, "active")
		for i := range rapid.IntRange(2, 5).Draw(t, "sites") {
			s := rollout.Site{
				Name: fmt.Sprint(i), Active: i == active,
				Exists: rapid.Bool().Draw(t, "exists"), UpToDate: rapid.Bool().Draw(t, "upToDate"),
				Settled: rapid.Bool().Draw(t, "settled"), Broken: rapid.Bool().Draw(t, "broken"),
				Busy: rapid.Bool().Draw(t, "busy"),
			}
			s.Settled = s.Settled && s.Exists && !s.Broken
			in = append(in, s)
		}
		transition := rapid.Bool().Draw(t, "transition")
		d := rollout.Next(in, transition)
		if d.Update == "" {
			return
		}
		for _, s := range in {
			switch {
			case transition || s.Busy:
				t.Fatalf("%+v although it is not the time", d)
			case s.Name == d.Update && (!s.Exists || s.UpToDate):
				t.Fatalf("%+v has nothing to update", d)
			case s.Name == d.Update || !s.Exists:
			case d.Reason == rollout.Repairing:
			case s.UpToDate && !s.Settled:
				t.Fatalf("%+v while %s is not back", d, s.Name)
			case d.Reason == rollout.UpdatingActive && !(s.UpToDate && s.Settled):
				t.Fatalf("%+v before %s", d, s.Name)
			}
		}
		for _, s := range in {
			if s.Name == d.Update && s.Settled {
				for _, o := range in {
					if o.Exists && !o.Settled {
						t.Fatalf("%+v takes a serving site while %s does not serve", d, o.Name)
					}
				}
			}
		}
	})
}
