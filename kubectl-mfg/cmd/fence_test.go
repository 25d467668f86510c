// SPDX-License-Identifier: Apache-2.0

package cmd

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/mysql-mfg/mfg/api/v1alpha1"
	"github.com/mysql-mfg/mfg/kubectl-mfg/cli"
)

// TestFence: it is over once the operator says of the very site that it goes by the word. The active site is refused.
func TestFence(t *testing.T) {
	const key = v1alpha1.AnnotationKeepFenced + "-frankfurt"
	on, off := []map[string]any{{key: "2026-11-03T12:00:00Z"}}, []map[string]any{{key: nil}}
	says := func(g *v1alpha1.MysqlFailoverGroup, kept bool) {
		for i := range g.Status.Sites {
			if g.Status.Sites[i].Name == "frankfurt" {
				g.Status.Sites[i].KeptFenced = kept
			}
		}
	}
	isKept := func(g *v1alpha1.MysqlFailoverGroup) {
		g.Annotations = map[string]string{key: ""}
		says(g, true)
	}
	for name, tc := range map[string]struct {
		args, stdin string
		change      func(*v1alpha1.MysqlFailoverGroup)
		// meanwhile is what happens once the word is on the group, or off.
		meanwhile func(*v1alpha1.MysqlFailoverGroup)
		down      bool
		code      int
		patched   []map[string]any
		want      string
	}{
		"On":          {"on orders frankfurt", "y\n", nil, func(g *v1alpha1.MysqlFailoverGroup) { says(g, true) }, false, cli.ExitHealthy, on, "frankfurt is kept fenced, until: kubectl mfg fence off orders frankfurt -n shop"},
		"Unconfirmed": {"on orders frankfurt --yes --timeout 2s", "", nil, func(*v1alpha1.MysqlFailoverGroup) {}, false, cli.ExitTimeout, on, "no outcome within 2s"},
		"NotWaited":   {"on orders frankfurt --yes --wait=false", "", nil, nil, false, cli.ExitHealthy, on, "asked for"},
		"NoOperator":  {"on orders frankfurt --yes", "", nil, nil, true, cli.ExitHealthy, on, "the word is on the group"},
		"BecameActive": {"on orders frankfurt --yes", "", nil, func(g *v1alpha1.MysqlFailoverGroup) { says(g, true); g.Status.ActiveSite = "frankfurt" }, false,
			cli.ExitRefused, on, "move the role: kubectl mfg failover orders -n shop --to SITE"},
		"Overtaken": {"on orders frankfurt --yes", "", nil, func(g *v1alpha1.MysqlFailoverGroup) { g.Annotations = nil }, false, cli.ExitRefused, on, "another person has ended the fence meanwhile"},
		"Active":    {"on orders paris --yes", "", nil, nil, false, cli.ExitRefused, nil, "move the role first: kubectl mfg failover orders -n shop --to SITE"},
		"Target": {"on orders frankfurt --yes", "", func(g *v1alpha1.MysqlFailoverGroup) { g.Status.Transition = &v1alpha1.Transition{To: "frankfurt"} }, nil, false,
			cli.ExitRefused, nil, "move the role first"},
		"Asked": {"on orders frankfurt --yes", "", func(g *v1alpha1.MysqlFailoverGroup) {
			g.Annotations = map[string]string{v1alpha1.AnnotationPlannedFailover: "frankfurt"}
		}, nil, false, cli.ExitRefused, nil, "kubectl mfg failover orders -n shop --abort"},
		"Ordered": {"on orders frankfurt --yes", "", func(g *v1alpha1.MysqlFailoverGroup) {
			g.Annotations = map[string]string{v1alpha1.AnnotationForceFailover: "frankfurt"}
		}, nil, false, cli.ExitRefused, nil, "kubectl mfg failover orders -n shop --abort"},
		"Moving": {"on orders frankfurt --yes", "", func(g *v1alpha1.MysqlFailoverGroup) {
			g.Status.PlannedFailover = &v1alpha1.PlannedFailoverStatus{To: "frankfurt", Phase: v1alpha1.PlannedWaiting}
		}, nil, false, cli.ExitRefused, nil, "a planned failover to frankfurt is under way"},
		"Unknown":   {"on orders rome --yes", "", nil, nil, false, cli.ExitRefused, nil, `has no site "rome"`},
		"Already":   {"on orders frankfurt", "", isKept, nil, false, cli.ExitHealthy, nil, "is kept fenced already"},
		"NotSure":   {"on orders frankfurt", "n\n", nil, nil, false, cli.ExitUsage, nil, "not confirmed"},
		"Dry":       {"on orders frankfurt --dry-run=client", "", nil, nil, false, cli.ExitHealthy, nil, "Would     set annotation " + key},
		"NoSite":    {"on orders --yes", "", nil, nil, false, cli.ExitUsage, nil, "SITE is missing"},
		"Neither":   {"orders", "", nil, nil, false, cli.ExitUsage, nil, "there are on and off"},
		"Off":       {"off orders frankfurt", "y\n", isKept, func(g *v1alpha1.MysqlFailoverGroup) { says(g, false) }, false, cli.ExitHealthy, off, "frankfurt is not kept fenced any more"},
		"OffAgain":  {"off orders frankfurt --yes", "", isKept, func(g *v1alpha1.MysqlFailoverGroup) { isKept(g) }, false, cli.ExitRefused, off, "frankfurt is kept fenced again"},
		"OffDown":   {"off orders frankfurt --yes", "", isKept, nil, true, cli.ExitHealthy, off, "the word is taken off the group"},
		"OffNot":    {"off orders frankfurt", "", nil, nil, false, cli.ExitHealthy, nil, "frankfurt is not kept fenced; nothing was changed"},
		"OffNobody": {"off orders rome", "", nil, nil, false, cli.ExitRefused, nil, `has no site "rome"`},
	} {
		t.Run(name, func(t *testing.T) {
			f := loadHealthy(t)
			if tc.change != nil {
				tc.change(&f.groups[0])
			}
			if tc.down {
				f.live = nil
			}
			got := run(t, f, runOptions{stdin: tc.stdin, tick: func(int) {
				if tc.meanwhile != nil {
					tc.meanwhile(&f.groups[0])
				}
			}}, append(append([]string{"fence"}, strings.Fields(tc.args)...), "-n", "shop")...)
			if got.code != tc.code || !strings.Contains(got.out+got.errOut, tc.want) {
				t.Errorf("exit code %d, want %d: %+v", got.code, tc.code, got)
			}
			if tc.down && len(f.patched) == 1 && f.patched[0][key] != nil {
				f.patched[0][key] = "2026-11-03T12:00:00Z" // by the clock of the API server, which is this machine's here
			}
			if diff := cmp.Diff(tc.patched, f.patched); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

// TestFenceSaysWhoIsLeft: before somebody takes the last site away that could take over.
func TestFenceSaysWhoIsLeft(t *testing.T) {
	f := loadHealthy(t)
	if got := run(t, f, runOptions{}, strings.Fields("fence on orders frankfurt -n shop --dry-run=client")...); !strings.Contains(got.out, "no other site may take over: if paris is lost, writes stop") {
		t.Errorf("%+v", got)
	}
	for i := range f.groups[0].Spec.Sites {
		f.groups[0].Spec.Sites[i].Role = v1alpha1.PrimaryCandidate
	}
	if got := run(t, f, runOptions{}, strings.Fields("fence on orders frankfurt -n shop --dry-run=client")...); !strings.Contains(got.out, "if paris is lost, only these may take over: madrid") {
		t.Errorf("%+v", got)
	}
	f.groups[0].Annotations = map[string]string{v1alpha1.KeepFencedSite("madrid"): ""}
	if got := run(t, f, runOptions{}, strings.Fields("fence on orders frankfurt -n shop --dry-run=client")...); !strings.Contains(got.out, "no other site may take over") || !strings.Contains(got.out, "kept fenced: madrid") {
		t.Errorf("%+v", got)
	}
}
