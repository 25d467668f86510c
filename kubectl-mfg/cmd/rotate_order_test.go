// SPDX-License-Identifier: Apache-2.0

package cmd

import (
	"context"
	"slices"
	"strings"
	"testing"

	"github.com/mysql-mfg/mfg/api/v1alpha1"
	"github.com/mysql-mfg/mfg/kubectl-mfg/cli"
	"github.com/mysql-mfg/mfg/kubectl-mfg/request"
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
	const gone = request.WithoutAnswer
	r := &rotator{f: sealedGroup(t)}
	got := rotated(t, r, runOptions{tick: vanish(r, false)}, "--site madrid --yes")
	if got.code != cli.ExitRefused || !strings.Contains(got.errOut, gone) || got.out != "" {
		t.Errorf("%+v", got)
	}
	r = &rotator{f: sealedGroup(t)}
	got = rotated(t, r, runOptions{tick: vanish(r, false)}, "--all-replicas --yes")
	if got.code != cli.ExitRefused || !strings.Contains(got.errOut, gone) || !strings.Contains(got.errOut, "done meanwhile: nothing; left: frankfurt, madrid") {
		t.Errorf("%+v", got)
	}
	r = &rotator{f: sealedGroup(t)}
	got = rotated(t, r, runOptions{tick: vanish(r, true)}, "--site madrid --yes")
	if got.code != cli.ExitHealthy || !strings.Contains(got.out, "madrid v2 -> v3") {
		t.Errorf("it was rotated: %+v", got)
	}
}

// TestRotateLooksAgain: what came up since it was last looked at keeps the order from being given, as the operator would
// refuse it.
func TestRotateLooksAgain(t *testing.T) {
	r := &rotator{f: sealedGroup(t)}
	r.f.conflicts = 1 // somebody changes the group just then
	got := rotated(t, r, runOptions{tick: func(int) { r.f.groups[0].Annotations[v1alpha1.AnnotationRecloneSite] = "frankfurt" }}, "--site madrid --yes --timeout 3s")
	if got.code != cli.ExitRefused || !strings.Contains(got.errOut, "a new copy of a site was requested") || len(r.f.patched) > 0 {
		t.Errorf("patched %v: %+v", r.f.patched, got)
	}
	if slices.Contains(r.did, "rotate madrid") {
		t.Error("it was rotated")
	}
}

// TestRotateGivesUpBeforeItAsks: a wait that ends before the step was asked for leaves nothing behind that goes on, and says so.
func TestRotateGivesUpBeforeItAsks(t *testing.T) {
	const said = "given up: the rotation was not requested, and will not happen"
	for name, tc := range map[string]struct {
		args   string
		change func(*rotator)
		cancel bool
		did    int
		want   string
	}{
		"Calm": {"--site madrid --timeout 3s", func(r *rotator) { r.f.groups[0].Status.Sites[2].State = v1alpha1.SiteUnreachable }, false, 0,
			"(no outcome within 3s, it waits for: madrid is unreachable)"},
		"Interrupted": {"--site madrid", func(r *rotator) { r.f.groups[0].Status.Sites[2].State = v1alpha1.SiteUnreachable }, true, 0,
			"(interrupted, it waits for: madrid is unreachable)"},
	} {
		t.Run(name, func(t *testing.T) {
			r := &rotator{f: sealedGroup(t)}
			tc.change(r)
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			got := rotated(t, r, runOptions{ctx: ctx, tick: func(n int) {
				r.look(n)
				if tc.cancel {
					cancel()
				}
			}}, tc.args+" --yes")
			if got.code != cli.ExitRefused || len(r.did) != tc.did || !strings.Contains(got.errOut, said+" "+tc.want) || strings.Contains(got.errOut, "goes on") {
				t.Errorf("did %v: %+v", r.did, got)
			}
			if !strings.Contains(got.errOut, "to go on: kubectl mfg rotate orders") {
				t.Errorf("no next step: %+v", got)
			}
		})
	}
}
