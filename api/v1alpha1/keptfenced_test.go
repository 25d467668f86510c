// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import "testing"

// TestWhatKeepsASiteFencedI29: the annotation, with any value; and a change of it wakes who looks after the group.
func TestWhatKeepsASiteFencedI29(t *testing.T) {
	group := func(annotations ...string) *MysqlFailoverGroup {
		g := &MysqlFailoverGroup{}
		g.Annotations = map[string]string{"mine": "stays"}
		for _, key := range annotations {
			g.Annotations[key] = "false"
		}
		return g
	}
	none, west := group(), group(KeepFencedSite("west"))
	if !KeptFenced(west, "west") || KeptFenced(west, "wes") || KeptFenced(none, "west") || KeptFenced(group(AnnotationKeepFenced), "west") {
		t.Error("I29: who is kept fenced")
	}
	if !KeptFencedSince(none, west, "west") || KeptFencedSince(west, west, "west") || KeptFencedSince(west, none, "west") {
		t.Error("I29: who is kept fenced since")
	}
	changed := west.DeepCopy()
	changed.Annotations["mine"], changed.Annotations[KeepFencedSite("west")] = "changed", "true"
	if SameKeptFenced(none.Annotations, west.Annotations) || SameKeptFenced(west.Annotations, group(KeepFencedSite("east")).Annotations) || !SameKeptFenced(west.Annotations, changed.Annotations) {
		t.Error("I29: what changes who is kept fenced")
	}
}
