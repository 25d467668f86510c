// SPDX-License-Identifier: Apache-2.0

package cmd

import (
	"strings"
	"testing"

	"github.com/mysql-mfg/mfg/api/v1alpha1"
	"github.com/mysql-mfg/mfg/kubectl-mfg/cli"
)

// failsOver has the operator move the role to a site in an emergency.
func failsOver(f *fakeAPI, to string) {
	s := &f.groups[0].Status
	s.ActiveSite, s.Epoch = to, s.Epoch+1
	for i := range s.Sites {
		if s.Sites[i].State = v1alpha1.SiteReplica; s.Sites[i].Name == to {
			s.Sites[i].State = v1alpha1.SitePrimary
		}
	}
}

// TestRotateMeanwhile: the order names no sites. If the role moves while a person reads the plan, it would move again, to a site that nobody
// confirmed.
func TestRotateMeanwhile(t *testing.T) {
	forecast := func(site string) func(*fakeAPI) {
		return func(f *fakeAPI) { f.groups[0].Status.Forecast = &v1alpha1.Forecast{Site: site} }
	}
	for name, tc := range map[string]struct {
		args      string
		meanwhile func(*fakeAPI)
		want      string
	}{
		"Moved":         {"--all", func(f *fakeAPI) { failsOver(f, "frankfurt") }, "frankfurt is active under epoch"},
		"MovedReplicas": {"--all-replicas", func(f *fakeAPI) { failsOver(f, "frankfurt") }, "frankfurt is active under epoch"},
		"ThereAndBack":  {"--all", func(f *fakeAPI) { f.groups[0].Status.Epoch += 2 }, "moved meanwhile"},
		"OtherTarget":   {"--all", forecast("madrid"), "the role would move to madrid by now, and the plan said frankfurt"},
	} {
		r := &rotator{f: sealedGroup(t)}
		r.f.groups[0].Spec.Sites[2].Role = v1alpha1.PrimaryCandidate
		forecast("frankfurt")(r.f)
		got := rotated(t, r, runOptions{stdin: "y\n", typed: func() { tc.meanwhile(r.f) }}, tc.args+" --timeout 3s")
		if got.code != cli.ExitRefused || len(r.f.patched) != 0 || !strings.Contains(got.errOut, tc.want) {
			t.Errorf("%s: %+v, asked %v", name, got, r.f.patched)
		}
	}
}

// TestDrillMeanwhile: a drill moves the role away from the site that its plan names, and back to it. From another one it is not begun.
func TestDrillMeanwhile(t *testing.T) {
	for name, tc := range map[string]struct {
		meanwhile func(*fakeAPI)
		want      string
	}{
		"Moved":        {func(f *fakeAPI) { failsOver(f, "madrid") }, "madrid is active under epoch"},
		"ThereAndBack": {func(f *fakeAPI) { f.groups[0].Status.Epoch += 2 }, "moved meanwhile"},
	} {
		f := loadHealthy(t)
		f.groups[0].Status.Forecast = &v1alpha1.Forecast{Site: "frankfurt"}
		got := run(t, f, runOptions{stdin: "y\n", typed: func() { tc.meanwhile(f) }}, strings.Fields("drill orders -n shop --canary=false --timeout 3s")...)
		if got.code != cli.ExitRefused || len(f.patched) != 0 || !strings.Contains(got.errOut, tc.want) {
			t.Errorf("%s: %+v, asked %v", name, got, f.patched)
		}
	}
}

// TestRotateJoinsAndDoesNotRepeat: a rotation that was requested before, and that ends while a person reads the plan, is not requested again.
func TestRotateJoinsAndDoesNotRepeat(t *testing.T) {
	r := &rotator{f: sealedGroup(t)}
	g := &r.f.groups[0]
	g.Annotations = map[string]string{v1alpha1.AnnotationRotateKeyring: "madrid", v1alpha1.RequestRotateKeyring.IDAnnotation(): "theirs"}
	got := rotated(t, r, runOptions{stdin: "y\n", typed: func() {
		for range 20 {
			r.look(0)
		}
	}}, "--site madrid --timeout 3s")
	if got.code != cli.ExitHealthy || len(r.f.patched) != 0 || !strings.Contains(got.errOut, "is being rotated already: it is waited for") ||
		!strings.Contains(got.out, "v2 -> v3") {
		t.Errorf("%+v, asked %v", got, r.f.patched)
	}
}
