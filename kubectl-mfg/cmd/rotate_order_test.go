// SPDX-License-Identifier: Apache-2.0

package cmd

import (
	"slices"
	"strings"
	"testing"

	"github.com/mysql-mfg/mfg/api/v1alpha1"
)

// TestRotateOrderVanishes: an order that is gone without an outcome was not carried out, unless status shows that it was.
func TestRotateOrderVanishes(t *testing.T) {
	vanish := func(r *rotator, rotated bool) func(int) {
		return func(int) {
			g := &r.f.groups[0]
			site, is := g.Annotations[v1alpha1.AnnotationRotateKeyring]
			if k := keyringIn(r.f, "madrid"); is && rotated && site == "madrid" {
				k.KeyringVersion++
				k.RotatedVersion = k.KeyringVersion
			}
			delete(g.Annotations, v1alpha1.AnnotationRotateKeyring)
		}
	}
	const gone = "the order is gone from the group, and the operator left no outcome"
	r := &rotator{f: sealedGroup(t)}
	got := rotated(t, r, runOptions{tick: vanish(r, false)}, "--site madrid --yes")
	if got.code != exitRefused || !strings.Contains(got.errOut, gone) || got.out != "" {
		t.Errorf("%+v", got)
	}
	r = &rotator{f: sealedGroup(t)}
	got = rotated(t, r, runOptions{tick: vanish(r, false)}, "--all-replicas --yes")
	if got.code != exitRefused || !strings.Contains(got.errOut, gone) || !strings.Contains(got.errOut, "done by this run: nothing; left: frankfurt, madrid") {
		t.Errorf("%+v", got)
	}
	r = &rotator{f: sealedGroup(t)}
	got = rotated(t, r, runOptions{tick: vanish(r, true)}, "--site madrid --yes")
	if got.code != exitHealthy || !strings.Contains(got.out, "madrid v2 -> v3") {
		t.Errorf("it was rotated: %+v", got)
	}
}

// TestRotateLooksAgain: what came up since it was last looked at keeps the order from being given, as the operator would
// refuse it.
func TestRotateLooksAgain(t *testing.T) {
	r := &rotator{f: sealedGroup(t)}
	r.f.conflicts = 1 // somebody changes the group just then
	got := rotated(t, r, runOptions{tick: func(int) { r.f.groups[0].Annotations[v1alpha1.AnnotationRecloneSite] = "frankfurt" }}, "--site madrid --yes --timeout 3s")
	if got.code != exitRefused || !strings.Contains(got.errOut, "a new copy of a site was asked for") || len(r.f.patched) > 0 {
		t.Errorf("patched %v: %+v", r.f.patched, got)
	}
	if slices.Contains(r.did, "rotate madrid") {
		t.Error("it was rotated")
	}
}
