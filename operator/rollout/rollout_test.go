// SPDX-License-Identifier: Apache-2.0

package rollout_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/mysql-mfg/mfg/api/v1alpha1"
	"github.com/mysql-mfg/mfg/operator/rollout"
)

// sites reads "a active new settled; b old": words are facts of a site.
func sites(text string) []rollout.Site {
	var out []rollout.Site
	for _, part := range strings.Split(text, ";") {
		words := strings.Fields(part)
		s := rollout.Site{Name: words[0], Exists: true, Candidate: true}
		for _, w := range words[1:] {
			switch w {
			case "active":
				s.Active = true
			case "missing":
				s.Exists = false
			case "refused":
				s.Exists, s.Refused = false, true
			case "new":
				s.UpToDate = true
			case "old":
			case "settled":
				s.Settled = true
			case "broken":
				s.Broken = true
			case "partitioned":
				s.MayServe = "its node is silent"
			case "busy":
				s.Busy = true
			case "loading":
				s.Loading = true
			case "dr":
				s.Candidate = false
			case "late":
				s.Late = true
			case "starting":
				s.Starting = true
			case "diverged":
				s.Diverged = true
			case "moving":
				s.Moving = true
			case "kept":
				s.Kept = "its memory holds the only copy"
			case "fenced":
				s.Fenced = "a person keeps it fenced"
			case "doomed":
				s.Doomed = "its claim is being deleted"
			case "uncloned":
				s.Uncloned = true
			case "apart":
				s.Held, s.Trouble = true, "another series"
			case "held":
				s.Diverged, s.Held = true, true
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
		because string
		sites   string
		group   rollout.Group
		create  []string
		update  string
		leave   string
		reason  rollout.Reason
		site    string
	}{
		"a backup is loaded": {
			because: "a new pod would begin again",
			sites:   "a old loading", reason: v1alpha1.ReasonLongWorkInFlight, site: "a",
		},
		"a backup is loaded, and the pod looks broken": {
			because: "while it loads, mysqld has no network",
			sites:   "a old loading broken", reason: v1alpha1.ReasonLongWorkInFlight, site: "a",
		},
		"a backup could not be loaded": {
			because: "there is nothing to lose, and the load may need just this",
			sites:   "a old broken", update: "a", reason: v1alpha1.ReasonRepairing, site: "a",
		},
		"a backup is loaded, and the pod is up to date": {
			sites: "a new loading", reason: v1alpha1.ReasonWaitingForSite, site: "a",
		},
		"pod kept": {
			because: "what its memory holds would be lost with it",
			sites:   "a active new settled; b old settled kept; c new settled", reason: v1alpha1.ReasonPodKept, site: "b",
		},
		"pod kept, broken": {
			because: "a pod that is not ready may hold the only copy all the same",
			sites:   "a active new settled; b old broken kept; c new settled", reason: v1alpha1.ReasonWaitingForSite, site: "b",
		},
		"pod kept, others": {
			because: "the others do not wait for a person who restores a Secret",
			sites:   "a active old settled; b old settled kept; c old settled", update: "c", reason: v1alpha1.ReasonUpdating, site: "c",
		},
		"pod of the active site kept": {
			because: "its role is not moved for an update that does not come",
			sites:   "a active old settled kept; b new settled; c new settled", reason: v1alpha1.ReasonPodKept, site: "a",
		},
		"pod of the only other candidate kept": {
			because: "I16: the role would move to a keyring that dies with its pod, and the active site is not taken in place either",
			sites:   "a active old settled; b old settled kept", reason: v1alpha1.ReasonNoCandidate, site: "a",
		},
		"pod of another candidate kept": {
			because: "the role moves to the one that has nothing to lose",
			sites:   "a active old settled; b old settled kept; c new settled", leave: "a", reason: v1alpha1.ReasonMovingRole, site: "a",
		},
		"new group": {
			because: "nothing is disturbed by creating all at once",
			sites:   "a missing; b missing; c missing", create: []string{"a", "b", "c"}, reason: v1alpha1.ReasonCreating,
		},
		"one that cannot be made": {
			because: "it is not tried here, and the others do not wait for it",
			sites:   "a active old settled; b old settled; c old settled; d refused", update: "b", reason: v1alpha1.ReasonUpdating, site: "b",
		},
		"one that cannot be made, and another that can": {
			sites: "a active new settled; b missing; d refused", create: []string{"b"}, reason: v1alpha1.ReasonCreating,
		},
		"all but one that cannot be made": {sites: "a active new settled; b new settled; d refused", reason: v1alpha1.ReasonUpToDate},
		"the only other candidate cannot be made": {
			because: "the active site is not taken in place: it will have someone to give its role to",
			sites:   "a active old settled; b new settled dr; d refused", reason: v1alpha1.ReasonWaitingForSite, site: "d",
		},
		"all done": {because: "nothing to do", sites: "a active new settled; b new settled", reason: v1alpha1.ReasonUpToDate},
		"all new but one silent": {
			because: "an update is done when its last site is back",
			sites:   "a active new settled; b new", reason: v1alpha1.ReasonWaitingForSite, site: "b",
		},
		"the last one does not come back": {
			because: "it is said although nothing waits for it",
			sites:   "a new late; b active new settled", reason: v1alpha1.ReasonSiteNotBack, site: "a",
		},
		"replicas first": {
			because: "the active site is last wherever it stands",
			sites:   "a active old settled; b old settled; c old settled", update: "b", reason: v1alpha1.ReasonUpdating, site: "b",
		},
		"those that no failover needs come first": {
			because: "an update that goes wrong is found there",
			sites:   "a active old settled; b old settled; c dr old settled", update: "c", reason: v1alpha1.ReasonUpdating, site: "c",
		},
		"one at a time": {
			because: "the updated site must be back first",
			sites:   "a active old settled; b new; c old settled", reason: v1alpha1.ReasonWaitingForSite, site: "b",
		},
		"a site that does not come back": {
			because: "the next one would not come back either",
			sites:   "a active old settled; b new late; c old settled", reason: v1alpha1.ReasonSiteNotBack, site: "b",
		},
		"a site that has diverged and is back": {
			because: "a person decides about it, perhaps in a week, and the update is not what it waits for",
			sites:   "a active old settled; b new late held; c old settled", update: "c", reason: v1alpha1.ReasonUpdating, site: "c",
		},
		"a site that has diverged and is not back": {
			because: "what went wrong with its pod goes wrong with the next",
			sites:   "a active old settled; b new late diverged; c old settled", reason: v1alpha1.ReasonSiteNotBack, site: "b",
		},
		"a diverged site takes no role": {
			because: "c is fit, and takes it",
			sites:   "a active old settled; b new held; c new settled", leave: "a", reason: v1alpha1.ReasonMovingRole, site: "a",
		},
		"nobody but a diverged site": {
			because: "it is never promoted by itself",
			sites:   "a active old settled; b new held", reason: v1alpha1.ReasonNoCandidate, site: "a",
		},
		"all new and one diverged": {
			because: "the update is done; that b has diverged is said elsewhere",
			sites:   "a active new settled; b new late held; c new settled", reason: v1alpha1.ReasonUpToDate,
		},
		"the next replica": {
			because: "b is back",
			sites:   "a active old settled; b new settled; c old settled", update: "c", reason: v1alpha1.ReasonUpdating, site: "c",
		},
		"the active site gives its role away": {
			because: "clients must not wait for a restart, nor lose what only it holds",
			sites:   "a active old settled; b new settled; c new settled", leave: "a", reason: v1alpha1.ReasonMovingRole, site: "a",
		},
		"the former active site last": {
			because: "the role has moved",
			sites:   "a old settled; b active new settled; c new settled", update: "a", reason: v1alpha1.ReasonUpdating, site: "a",
		},
		"the former active site at once": {
			because: "it has nothing that the others lack, and does its part anyway only after a restart",
			sites:   "a old; b active new settled; c new settled", update: "a", reason: v1alpha1.ReasonUpdating, site: "a",
		},
		"the role stays": {
			because: "the operator may not move it",
			sites:   "a active old settled; b new settled", group: rollout.Group{RoleStays: "a person said so"},
			reason: v1alpha1.ReasonRoleStays, site: "a",
		},
		"nobody can take the role": {
			because: "b has diverged and c is never promoted",
			sites:   "a active old settled; b new settled diverged; c dr new settled", reason: v1alpha1.ReasonNoCandidate, site: "a",
		},
		"the only candidate is kept fenced": {
			because: "the role would be asked to move for ever; and while the active site's pod is replaced no site could take over",
			sites:   "a active old settled; b new settled fenced; c dr new settled", reason: v1alpha1.ReasonNoCandidate, site: "a",
		},
		"the only candidate would lose its data with its pod": {
			because: "nobody else has all of it; a replica that is never promoted does not count",
			sites:   "a active old settled doomed; c dr new settled", reason: v1alpha1.ReasonVolumeTerminating, site: "a",
		},
		"the only other candidate would lose its data with its pod": {
			because: "a planned failover to it is refused each time, and the turn of the group would never end",
			sites:   "a active old settled; b new settled doomed; c dr new settled", reason: v1alpha1.ReasonVolumeTerminating, site: "a",
		},
		"of two candidates one would lose its data with its pod": {
			because: "the other one takes the role",
			sites:   "a active old settled; b new settled doomed; c new settled", leave: "a", reason: v1alpha1.ReasonMovingRole, site: "a",
		},
		"of two candidates one would lose its data with its pod, and the other has diverged": {
			because: "neither can take the role",
			sites:   "a active old settled; b new settled doomed; c new settled diverged", reason: v1alpha1.ReasonNoCandidate, site: "a",
		},
		"a replica that would lose its data with its pod": {
			because: "the active site has all of it",
			sites:   "a active old settled; b old settled doomed; c new settled", update: "b", reason: v1alpha1.ReasonUpdating, site: "b",
		},
		"another can take the role of one that would lose its data": {
			because: "then it has what the volume had",
			sites:   "a active old settled doomed; b new settled", leave: "a", reason: v1alpha1.ReasonMovingRole, site: "a",
		},
		"another candidate is kept fenced": {
			because: "c is fit, and takes it",
			sites:   "a active old settled; b new settled fenced; c new settled", leave: "a", reason: v1alpha1.ReasonMovingRole, site: "a",
		},
		"a site that is kept fenced is updated": {
			because: "it is a replica like any other",
			sites:   "a active old settled; b old settled fenced", update: "b", reason: v1alpha1.ReasonUpdating, site: "b",
		},
		"the only other candidate is being made": {
			because: "a site was replaced by another: the active one waits for it, or it would be gone with nobody to take its role",
			sites:   "a active old settled; b missing", create: []string{"b"}, reason: v1alpha1.ReasonCreating,
		},
		"the only other site that is made is no candidate": {
			because: "nobody can ever take the role",
			sites:   "a active old settled; c dr missing", create: []string{"c"}, update: "a", reason: v1alpha1.ReasonUpdatingActive, site: "a",
		},
		"nobody ever can take the role": {
			because: "nothing else is possible",
			sites:   "a active old settled; c dr new settled", update: "a", reason: v1alpha1.ReasonUpdatingActive, site: "a",
		},
		"the active site waits": {
			because: "without c only b would hold the data",
			sites:   "a active old settled; b new settled; c new", reason: v1alpha1.ReasonWaitingForSite, site: "c",
		},
		"the active site is fenced": {
			because: "a failover may be due",
			sites:   "a active old; b old settled", reason: v1alpha1.ReasonWaitingForSite, site: "a",
		},
		"the active site has crashed": {
			because: "that its replicas do not follow now is no reason to take the one that takes over",
			sites:   "a active old; b old; c new settled", reason: v1alpha1.ReasonWaitingForSite, site: "a",
		},
		"the active site's pod is being replaced": {
			because: "not even a broken one is touched now",
			sites:   "a active old starting; b old broken", reason: v1alpha1.ReasonWaitingForSite, site: "a",
		},
		"the active site has its new pod": {
			because: "a pod that is settled is not being replaced any more",
			sites:   "a active new settled starting; b old settled", update: "b", reason: v1alpha1.ReasonUpdating, site: "b",
		},
		"a replica that does not replicate": {
			because: "the update may be its cure, and costs nothing",
			sites:   "a active old settled; b old settled; c old", update: "c", reason: v1alpha1.ReasonUpdating, site: "c",
		},
		"a broken pod": {
			because: "a bad setting was corrected: the site that has the bad one is not waited for",
			sites:   "a active old settled; b old broken; c old settled", update: "b", reason: v1alpha1.ReasonRepairing, site: "b",
		},
		"all broken": {
			because: "a new group with a bad setting: corrected site by site, without waiting for a group to exist",
			sites:   "a new; b old broken; c old broken", update: "b", reason: v1alpha1.ReasonRepairing, site: "b",
		},
		"the broken active site last": {
			because: "a replica that can come up may be promoted instead",
			sites:   "a active old broken; b old broken", update: "b", reason: v1alpha1.ReasonRepairing, site: "b",
		},
		"the active site may serve where only the operator does not reach it": {
			because: "I30: with its pod would go what no other site has yet",
			sites:   "a active old partitioned; b old settled", reason: v1alpha1.ReasonWaitingForSite, site: "a",
		},
		"it may serve, and another site is down too": {
			because: "I30: that one cannot vouch for it, and a pod that does not come up is of no use",
			sites:   "a active old partitioned; b old broken; c old", update: "b", reason: v1alpha1.ReasonRepairing, site: "b",
		},
		"it may serve, and another site may vouch for it": {
			because: "I30", sites: "a active old partitioned; b old partitioned; c new", reason: v1alpha1.ReasonWaitingForSite, site: "a",
		},
		"it may serve, and only others are to be updated": {
			because: "I30", sites: "a active new partitioned; b old settled; c new settled", reason: v1alpha1.ReasonWaitingForSite, site: "a",
		},
		"a replica is cut off, and the active site is open": {
			because: "nobody needs its word for the site that the operator reaches",
			sites:   "a active old settled; b old partitioned; c old settled", update: "b", reason: v1alpha1.ReasonUpdating, site: "b",
		},
		"only the active site is broken": {
			because: "nothing is open, so the correction must reach it",
			sites:   "a active old broken; b new", update: "a", reason: v1alpha1.ReasonRepairing, site: "a",
		},
		"failover in flight": {
			because: "a pod replaced now may be the one that is needed", group: rollout.Group{Transition: true},
			sites: "a active old settled; b old settled", reason: v1alpha1.ReasonFailoverInFlight,
		},
		"paused": {
			because: "a person said so, also of a broken site", group: rollout.Group{Paused: "tomorrow"},
			sites: "a active old settled; b old broken", reason: v1alpha1.ReasonPaused,
		},
		"other series": {
			because: "it is cloned once the active site is updated too",
			sites:   "a active old settled; b new apart; c new settled", leave: "a", reason: v1alpha1.ReasonMovingRole, site: "a",
		},
		"other series, nobody else": {
			because: "the only copy is not taken down for a site that has none",
			sites:   "a active old settled; b new apart", reason: v1alpha1.ReasonNoCandidate, site: "a",
		},
		"to be cloned, another is down": {
			because: "it has nothing to be spared, and would wait for the dead one",
			sites:   "a active new settled; b new late; c old uncloned", update: "c", reason: v1alpha1.ReasonUpdating, site: "c",
		},
		"to be cloned, another starts": {
			because: "one at a time",
			sites:   "a active new settled; b new starting; c old uncloned", reason: v1alpha1.ReasonWaitingForSite, site: "b",
		},
		"to be cloned, the active site is down": {
			because: "a failover may be due", sites: "a active new; b new settled; c old uncloned", reason: v1alpha1.ReasonWaitingForSite, site: "a",
		},
		"to be cloned, paused": {
			because: "a person ordered that too", group: rollout.Group{Paused: "tomorrow"},
			sites: "a active old settled; b old settled; c old uncloned", update: "c", reason: v1alpha1.ReasonUpdating, site: "c",
		},
		"to be cloned, paused, not now": {
			because: "there are other reasons to wait", group: rollout.Group{Paused: "tomorrow"},
			sites: "a active old; b old settled; c old uncloned", reason: v1alpha1.ReasonPaused,
		},
		"to be cloned, paused, failover in flight": {
			because: "a pause spares a pod that is broken", group: rollout.Group{Paused: "tomorrow", Transition: true},
			sites: "a active moving old; b moving old settled; c old broken uncloned", reason: v1alpha1.ReasonFailoverInFlight,
		},
		"paused before the role moves": {
			because: "a person said so", group: rollout.Group{Paused: "tomorrow"},
			sites: "a active old settled; b new settled", reason: v1alpha1.ReasonPaused,
		},
		"paused with nothing to do": {
			because: "there is nothing to wait for", group: rollout.Group{Paused: "tomorrow"},
			sites: "a active new settled; b new settled", reason: v1alpha1.ReasonUpToDate,
		},
		"paused, a clone in flight into a new pod": {
			because: "what waits for no end of the pause is a new pod, and that one is there", group: rollout.Group{Paused: "tomorrow"},
			sites: "a active old settled; b old settled; c new busy uncloned", reason: v1alpha1.ReasonPaused,
		},
		"the active site is new and not open": {
			because: "nobody decides for it: what it could wait for is itself",
			sites:   "a active new late held; b new settled", reason: v1alpha1.ReasonSiteNotBack, site: "a",
		},
		"the only other candidate has lost its Deployment": {
			because: "whatever is said of its pod, nothing would bring that back while it has the role",
			sites:   "a active old settled; b missing settled", create: []string{"b"}, reason: v1alpha1.ReasonCreating,
		},
		"clone in flight": {
			because: "the clone would be lost",
			sites:   "a active old settled; b old settled; c new busy", reason: v1alpha1.ReasonLongWorkInFlight, site: "c",
		},
		"a new site while another is updated": {
			because: "creating disturbs nobody",
			sites:   "a active old settled; b old settled; c missing", create: []string{"c"}, update: "b",
			reason: v1alpha1.ReasonUpdating, site: "b",
		},
		"failover in flight, a third site does not come up": {
			because: "the failover may wait for it", group: rollout.Group{Transition: true},
			sites: "a moving old broken; b active moving old settled; c old broken", update: "c", reason: v1alpha1.ReasonRepairing, site: "c",
		},
		"failover in flight, its own sites do not come up": {
			because: "what they hold, and whether they are fenced, decides it", group: rollout.Group{Transition: true},
			sites: "a moving old broken; b active moving old broken; c old settled", reason: v1alpha1.ReasonFailoverInFlight,
		},
		"a third site may vouch for the former active site during a failover": {
			because: "I30: it does so where only the operator does not reach it", group: rollout.Group{Transition: true},
			sites: "a moving old; b active moving old settled; c old partitioned", reason: v1alpha1.ReasonFailoverInFlight,
		},
		"failover in flight, paused": {
			because: "a person keeps the pods", group: rollout.Group{Transition: true, Paused: "noon"},
			sites: "a moving old broken; b active moving old settled; c old broken", reason: v1alpha1.ReasonPaused,
		},
		"a new site during a failover": {
			because: "creating disturbs nobody", group: rollout.Group{Transition: true},
			sites: "a active old settled; b old settled; c missing", create: []string{"c"}, reason: v1alpha1.ReasonCreating,
		},
		"a new site while the role moves": {
			because: "creating disturbs nobody",
			sites:   "a active old settled; b new settled; c missing", create: []string{"c"}, leave: "a", reason: v1alpha1.ReasonCreating,
		},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			tt.group.Sites = sites(tt.sites)
			got := rollout.Next(tt.group)
			want := rollout.Decision{
				Create: tt.create, Update: tt.update, Leave: tt.leave, Reason: tt.reason, Site: tt.site, Message: got.Message,
			}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("%s (-want +got):\n%s", tt.because, diff)
			}
			if got.Message == "" {
				t.Error("no message")
			}
			if got.Done() != (tt.reason == v1alpha1.ReasonUpToDate) {
				t.Errorf("done: %t", got.Done())
			}
		})
	}
}

// What a person has to know is in the message.
func TestMessages(t *testing.T) {
	group := func(text string) rollout.Group { return rollout.Group{Sites: sites(text)} }
	late := group("a active old settled; b new late; c old settled")
	late.Sites[1].Trouble = "container mysql: ImagePullBackOff"
	again := group("a active old settled; b new settled")
	again.LastTry = "b did not catch up"
	stays := group("a active old settled; b new settled")
	stays.RoleStays = "spec.failover.mode is Observe"
	cutOff := group("a moving old; b active moving old settled; c old partitioned")
	cutOff.Transition = true
	onlyKept := group("a active old settled; b old settled kept")
	for name, tt := range map[string]struct {
		group rollout.Group
		want  []string
	}{
		"kept":        {onlyKept, []string{"a", "b: its memory holds the only copy"}},
		"not back":    {late, []string{"b", "ImagePullBackOff", "no other site is updated"}},
		"asked again": {again, []string{"a", "b did not catch up"}},
		"cut off":     {cutOff, []string{"the active site is changing", "c does not answer", "its node is silent"}},
		"role stays":  {stays, []string{"a", "Observe"}},
	} {
		got := rollout.Next(tt.group)
		for _, want := range tt.want {
			if !strings.Contains(got.Message, want) {
				t.Errorf("%s: %q is not in %q", name, want, got.Message)
			}
		}
	}
	// Where nothing more is known, nothing more is said.
	for text, want := range map[string]string{
		"a missing; b missing":             "creating 2 of 2 sites",
		"a active new settled; b new":      "b is up to date, but not ready or not replicating yet",
		"a active new settled; b new late": "b has the pod that is specified, but does not come back. Look at its pod and its state, or correct the specification",
		"a active old partitioned; b old": "the active site a does not answer, and may serve all the same: its node is silent. The update waits until the operator " +
			"reaches the site again. Repair the network between them; if the node is off, taint it node.kubernetes.io/out-of-service=nodeshutdown:NoExecute",
		"a active old settled; b new settled": "only a is left to update: its role of the active site is moved away first",
		"a active old settled; b new settled diverged": "only the active site a is left to update, and no other site can take its role: " +
			"its pod is replaced when one can",
		"a active old settled; b new apart": "only the active site a is left to update, and no other site can take its role: " +
			"its pod is replaced when one can; b: another series",
		"a active old settled; b new settled fenced": "only the active site a is left to update, and no other site can take its role: " +
			"its pod is replaced when one can; b: a person keeps it fenced",
	} {
		if got := rollout.Next(group(text)); got.Message != want {
			t.Errorf("%s:\n%q, want\n%q", text, got.Message, want)
		}
	}
}

func randomSite(t *rapid.T, name string, active bool) rollout.Site {
	s := rollout.Site{
		Name: name, Active: active, Candidate: rapid.Bool().Draw(t, "candidate"),
		Exists: rapid.Bool().Draw(t, "exists"), UpToDate: rapid.Bool().Draw(t, "upToDate"),
		Settled: rapid.Bool().Draw(t, "settled"), Broken: rapid.Bool().Draw(t, "broken"),
		Starting: rapid.Bool().Draw(t, "starting"), Late: rapid.Bool().Draw(t, "late"),
		Busy: rapid.Bool().Draw(t, "busy"), Loading: rapid.Bool().Draw(t, "loading"), Diverged: rapid.Bool().Draw(t, "diverged"), Held: rapid.Bool().Draw(t, "held"),
		Moving: rapid.Bool().Draw(t, "moving"), Uncloned: rapid.Bool().Draw(t, "uncloned"),
	}
	s.Settled, s.Refused = s.Settled && s.Exists && !s.Broken, !s.Exists && rapid.Bool().Draw(t, "refused")
	s.Kept = rapid.SampledFrom([]string{"", "", "", "only copy"}).Draw(t, "kept")
	if !s.Settled && !s.Broken {
		s.MayServe = rapid.SampledFrom([]string{"", "its node is silent"}).Draw(t, "mayServe")
	}
	s.Fenced = rapid.SampledFrom([]string{"", "", "", "kept fenced"}).Draw(t, "fenced")
	return s
}

// Whatever the facts, a pod that serves is replaced only while every other site serves, the active site's only when
// no other could ever take its role or nothing of it serves, and none while paused, while the active site changes (but for a
// third one that does not come up), or while long work runs.
func TestNeverTakesASecondSite(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var g rollout.Group
		active := rapid.IntRange(-1, 4).Draw(t, "active")
		for i := range rapid.IntRange(2, 5).Draw(t, "sites") {
			g.Sites = append(g.Sites, randomSite(t, fmt.Sprint(i), i == active))
		}
		g.Transition = rapid.Bool().Draw(t, "transition")
		g.Paused = rapid.SampledFrom([]string{"", "tomorrow"}).Draw(t, "paused")
		d := rollout.Next(g)
		for _, s := range g.Sites {
			if s.Refused && slices.Contains(d.Create, s.Name) {
				t.Fatalf("%+v makes a site that cannot be made", d)
			}
		}
		if d.Update != "" && d.Leave != "" {
			t.Fatalf("%+v does two things", d)
		}
		if taken := d.Update + d.Leave; taken != "" {
			checkTaken(t, g, d, taken)
		}
	})
}

func checkTaken(t *rapid.T, g rollout.Group, d rollout.Decision, taken string) {
	var self rollout.Site
	others, made, spared := 0, 0, 0
	for _, s := range g.Sites {
		if s.Name != taken && s.Exists && s.Candidate && (s.Kept != "" || s.Fenced != "") {
			spared++
		}
		switch {
		case s.Name == taken:
			self = s
		case s.Exists && s.Candidate:
			others++
		case s.Candidate:
			made++
		}
	}
	cure := d.Reason == v1alpha1.ReasonRepairing && self.Broken && !self.Moving && !self.Active
	if g.Paused != "" && (!self.Uncloned || g.Transition) || g.Transition && !cure {
		t.Fatalf("%+v although it is not the time", d)
	}
	if self.Active && self.MayServe != "" {
		t.Fatalf("I30: %+v replaces the active site, which may serve", d)
	}
	if self.Kept != "" {
		t.Fatalf("%+v replaces a pod that must stay", d)
	}
	if self.Loading {
		t.Fatalf("%+v has the load begin again", d)
	}
	if !self.Exists || self.UpToDate || (d.Leave != "" && !self.Active) {
		t.Fatalf("%+v has nothing to update", d)
	}
	if d.Update != "" && self.Active && self.Settled && others+made > 0 {
		t.Fatalf("%+v takes the active site in place", d)
	}
	for _, s := range g.Sites {
		switch {
		case s.Busy:
			t.Fatalf("%+v while %s is busy", d, s.Name)
		case d.Leave != "" && others == spared:
			t.Fatalf("I16, I29: %+v although nobody can take the role but a site whose pod has the only copy of its keyring, or that a person keeps fenced", d)
		case s.Name == taken || !s.Exists:
		case s.Held && !s.Active && (s.UpToDate || s.Kept != ""): // as far as it can come
		case d.Update != "" && self.Uncloned && !self.Active && (!s.Active || s.Settled) && (!s.Starting || s.Settled): // it takes nothing away
		case self.Settled && !s.Settled:
			t.Fatalf("%+v takes a serving site while %s does not serve", d, s.Name)
		case self.Active && self.Settled && !s.UpToDate && s.Kept == "":
			t.Fatalf("%+v before %s", d, s.Name)
		case d.Reason != v1alpha1.ReasonRepairing && s.UpToDate && !s.Settled:
			t.Fatalf("%+v while %s is not back", d, s.Name)
		case d.Reason != v1alpha1.ReasonRepairing && s.Active && !s.Settled:
			t.Fatalf("%+v while the active site %s is not open", d, s.Name)
		}
	}
}
