// SPDX-License-Identifier: Apache-2.0

package cmd

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"time"

	"k8s.io/cli-runtime/pkg/genericiooptions"

	"github.com/mysql-mfg/mfg/api/v1alpha1"
	"github.com/mysql-mfg/mfg/api/wire"
	"github.com/mysql-mfg/mfg/kubectl-mfg/cli"
	"github.com/mysql-mfg/mfg/kubectl-mfg/drill"
	"github.com/mysql-mfg/mfg/kubectl-mfg/drill/verdict"
)

// TestDrillUnsettled: a group that is not seen healthy after a move ends the drill; what is said then is what is so: the move
// succeeded, nothing goes on, and where the role is.
func TestDrillUnsettled(t *testing.T) {
	ill := func(f *fakeAPI) {
		f.live.Groups[0].Sites[2].State, f.live.Groups[0].Sites[2].Reachable = "Unreachable", false
	}
	const wayBack = "kubectl mfg failover orders -n shop --to paris"
	for name, tc := range map[string]struct {
		args string
		// moved happens with each move, cancelled is true if a person interrupts the wait after it.
		moved     func(*fakeAPI)
		cancelled bool
		// moves is how many were asked for.
		moves       int
		want, never []string
	}{
		"TimedOut": {"--timeout 3s", ill, false, 1,
			[]string{"frankfurt is active", "the way back was not asked for: no outcome within 3s", "move it back: " + wayBack, "group not seen healthy after it",
				"failed: back: not tried: the group was not seen healthy after the first move, and frankfurt is active"}, nil},
		"Interrupted": {"", ill, true, 1,
			[]string{"the way back was not asked for: interrupted", "move it back: " + wayBack}, nil},
		"Staying": {"--stay 1m", func(*fakeAPI) {}, true, 1, []string{"the way back was not asked for", "move it back: " + wayBack}, nil},
		"Back": {"--timeout 3s", func(f *fakeAPI) {
			if len(f.patched) == 2 {
				ill(f)
			}
		}, false, 2, []string{"paris is active again, but the group was not seen healthy after that: no outcome within 3s", "kubectl mfg status orders -n shop"}, []string{wayBack, "not tried"}},
	} {
		for _, format := range []string{"", " -o json", " -o junit"} {
			f := loadHealthy(t)
			f.groups[0].Status.Forecast = &v1alpha1.Forecast{Site: "frankfurt"}
			ctx, cancel := context.WithCancel(t.Context())
			tick := func(int) {
				switch {
				case asked(f, v1alpha1.AnnotationPlannedFailover):
					answerMove(f, v1alpha1.PlannedSucceeded, "Opened", "")
					tc.moved(f)
				case tc.cancelled:
					cancel()
				}
			}
			got := run(t, f, runOptions{ctx: ctx, tick: tick}, append([]string{"drill", "orders", "-n", "shop", "--yes", "--canary=false"}, strings.Fields(tc.args+format)...)...)
			cancel()
			all := got.out + got.errOut
			if got.code != cli.ExitRefused || len(f.patched) != tc.moves {
				t.Errorf("%s%s: exit code %d, %d moves: %s", name, format, got.code, len(f.patched), all)
			}
			for _, want := range tc.want {
				if format == "" && !strings.Contains(all, want) {
					t.Errorf("%s: lacks %q: %s", name, want, all)
				}
			}
			for _, never := range append(tc.never, "goes on", "did not succeed", "got no row", "healthy 0.0 s later\n  failed: there") {
				if strings.Contains(all, never) {
					t.Errorf("%s%s: says %q: %s", name, format, never, all)
				}
			}
			if format == " -o json" {
				var d verdict.Drill
				if err := json.Unmarshal([]byte(got.out), &d); err != nil || d.Passed || d.Legs[0].Outcome != cli.OutcomeDone || strings.Contains(d.Next, wayBack) == (name == "Back") {
					t.Errorf("%s: %v: %+v", name, err, d)
				}
			}
		}
	}
}

// neverSettles is a group that moves at once, and of which nobody says afterwards how it is.
type neverSettles struct {
	Cluster
	g *v1alpha1.MysqlFailoverGroup
}

func (n neverSettles) Group(context.Context, string, string) (*v1alpha1.MysqlFailoverGroup, error) {
	return n.g.DeepCopy(), nil
}

func (n neverSettles) Annotate(_ context.Context, g *v1alpha1.MysqlFailoverGroup, change map[string]string, _ bool) (*v1alpha1.MysqlFailoverGroup, error) {
	to := change[v1alpha1.AnnotationPlannedFailover]
	n.g.Status.ActiveSite = to
	n.g.Status.PlannedFailover = &v1alpha1.PlannedFailoverStatus{To: to, Phase: v1alpha1.PlannedSucceeded, StartedAt: microTime(0)}
	return g, nil
}

func (neverSettles) Live(context.Context, string, string, string) (wire.StatusList, error) {
	return wire.StatusList{}, errors.New("no answer")
}

// TestDrillUnsettledCanary: what the canary saw of a move counts, also if the group is not healthy after it.
func TestDrillUnsettledCanary(t *testing.T) {
	now := noon
	env := cli.Environment{
		IOStreams: genericiooptions.IOStreams{ErrOut: &bytes.Buffer{}}, Now: func() time.Time { return now },
		Wait: func(_ context.Context, d time.Duration) bool { now = now.Add(d); return true },
	}
	op := drillOfTwo()
	op.Timeout = time.Second
	op.Writer = &drill.Canary{Env: env, Acked: []drill.Acknowledged{{Site: "paris", Row: 1, At: noon}, {Site: "frankfurt", Row: 2, At: noon.Add(time.Second)}}}
	n := neverSettles{g: &v1alpha1.MysqlFailoverGroup{Spec: v1alpha1.MysqlFailoverGroupSpec{Sites: []v1alpha1.Site{{Name: "paris", Role: v1alpha1.PrimaryCandidate}, {Name: "frankfurt", Role: v1alpha1.PrimaryCandidate}}}}}
	d := verdict.NewDrill("shop", "orders", time.Minute, noon)
	err := op.Leg(t.Context(), env, n, drill.Leg{Name: drill.LegThere, From: "paris", To: "frankfurt"}, &d)
	if l := d.Legs[0]; err == nil || l.Outcome != cli.OutcomeDone || l.Unsettled == "" || l.CanaryPauseMillis == nil {
		t.Errorf("%v: %+v", err, l)
	}
}
