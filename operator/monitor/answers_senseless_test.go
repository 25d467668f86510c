// SPDX-License-Identifier: Apache-2.0

package monitor

import (
	"maps"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/mysql-mfg/mfg/api/v1alpha1"
	"github.com/mysql-mfg/mfg/operator/report/events"
)

// A request that names no site, or orders one to take over that never can, is answered like any other, and what else the annotations say stays.
func TestARequestWithoutASiteIsAnswered(t *testing.T) {
	const planned, order = v1alpha1.AnnotationPlannedFailover, v1alpha1.AnnotationForceFailover
	const none = ": Refused (UnknownSite): it names no site; the sites are east, west, south"
	for name, tc := range map[string]struct {
		annotations map[string]string
		answers     string
		left        map[string]string
	}{
		"planned": {map[string]string{planned: "", "mine": "stays"}, "PlannedFailover  " + none, map[string]string{"mine": "stays"}},
		"forced":  {map[string]string{order: "", planned: "west"}, "ForceFailover  " + none, map[string]string{planned: "west"}},
		"both":    {map[string]string{order: "", planned: ""}, "ForceFailover  " + none + "\nPlannedFailover  " + none, nil},
		"never": {map[string]string{order: "north"},
			"ForceFailover  north: Refused (UnknownSite): north is no site of the group; those that may take over are east, west", nil},
		"dr-only": {map[string]string{order: "south"}, "ForceFailover  south: Refused (NotACandidate): " +
			"south is dr-only (make it a primary-candidate first, if that is what is wanted); those that may take over are east, west", nil},
		"kept fenced": {map[string]string{order: "west", v1alpha1.KeepFencedSite("west"): ""}, "ForceFailover  west: Refused (KeptFenced): " +
			"west is kept fenced by a person (end that first: kubectl mfg fence off orders west -n shop); those that may take over are east", map[string]string{v1alpha1.KeepFencedSite("west"): ""}},
		"one that may": {map[string]string{order: "west"}, "", map[string]string{order: "west"}},
		"none":         {map[string]string{planned: "west"}, "", map[string]string{planned: "west"}},
	} {
		group := &v1alpha1.MysqlFailoverGroup{
			ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "orders", Annotations: tc.annotations},
			Spec:       v1alpha1.MysqlFailoverGroupSpec{Sites: []v1alpha1.Site{{Name: "east"}, {Name: "west"}, {Name: "south", Role: v1alpha1.DROnly}}},
		}
		l := testLoop(t, &pushes{}, nil)
		l.m.Client = groupAPI(t, group)
		said := &spoken{}
		l.m.Events = events.NewRecorder(said)
		for range 2 { // the group may be seen as it was before the answer
			answerer{l.m, l.log, &l.told}.senseless(t.Context(), group)
		}
		reason := v1alpha1.ReasonForceFailoverRefused
		switch {
		case name == "planned":
			reason = v1alpha1.ReasonPlannedFailoverRefused
		case tc.answers == "":
			reason = ""
		}
		if name != "both" {
			_, why, _ := strings.Cut(tc.answers, "Refused")
			said.want(t, name, reason, why)
		} else if len(*said) != 2 {
			t.Errorf("%s: said %q", name, *said)
		}
		if answers, left := answersOf(t, l); answers != tc.answers || !maps.Equal(left, tc.left) {
			t.Errorf("%s: %q, want %q; left %v", name, answers, tc.answers, left)
		}
	}
}

// An annotation without a value wakes the loop like one with a value, and asks to give up a planned failover like that.
func TestAnEmptyAnnotationIsSeen(t *testing.T) {
	for _, key := range []string{v1alpha1.AnnotationPlannedFailover, v1alpha1.AnnotationForceFailover, v1alpha1.AnnotationAbortFailover, v1alpha1.KeepFencedSite("west")} {
		if sameAnnotations(nil, map[string]string{key: ""}) {
			t.Errorf("%s= goes unnoticed", key)
		}
	}
	group := &v1alpha1.MysqlFailoverGroup{ObjectMeta: metav1.ObjectMeta{Annotations: map[string]string{v1alpha1.AnnotationAbortFailover: ""}}}
	if !policy(group).AbortPlanned {
		t.Error("an abort without a value gives nothing up, and waits for ever")
	}
	if policy(&v1alpha1.MysqlFailoverGroup{}).AbortPlanned {
		t.Error("what nobody asked for is given up")
	}
}

// The same order given again is another one, and is told of again.
func TestAnOrderThatIsGivenAgainIsToldOfAgain(t *testing.T) {
	l, said := testLoop(t, &pushes{}, nil), &spoken{}
	l.m.Events = events.NewRecorder(said)
	for i, annotations := range []map[string]string{{v1alpha1.AnnotationForceFailover: "north"}, nil, {v1alpha1.AnnotationForceFailover: "north"}} {
		group := &v1alpha1.MysqlFailoverGroup{
			ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "orders", Annotations: annotations},
			Spec:       v1alpha1.MysqlFailoverGroupSpec{Sites: []v1alpha1.Site{{Name: "east"}}},
		}
		l.m.Client = groupAPI(t, group)
		answerer{l.m, l.log, &l.told}.senseless(t.Context(), group)
		if want := i/2 + 1; len(*said) != want {
			t.Errorf("look %d: said %q, want %d", i, *said, want)
		}
	}
}
