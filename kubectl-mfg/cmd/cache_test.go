// SPDX-License-Identifier: Apache-2.0

package cmd

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/mysql-mfg/mfg/api/v1alpha1"
	"github.com/mysql-mfg/mfg/kubectl-mfg/cli"
)

func withCache(t *testing.T, state string) *fakeAPI {
	t.Helper()
	return load(t, filepath.Join("testdata", "status", state))
}

// TestCacheScreens compares what each verb that looks says of a cache that is well, and of one that is not.
func TestCacheScreens(t *testing.T) {
	for file, tc := range map[string]struct {
		state, args string
		width       int
		code        int
	}{
		"cache-status-80.txt":       {"cached", "cache status orders -n shop", 80, cli.ExitHealthy},
		"cache-status.json":         {"cached", "cache status orders -n shop -o json", 0, cli.ExitHealthy},
		"cache-down-status-100.txt": {"cache-down", "cache status orders -n shop", 100, cli.ExitDegraded},
		"cache-list-wide.txt":       {"cached", "list -n shop -o wide", 0, cli.ExitHealthy},
		"cache-down-list-wide.txt":  {"cache-down", "list -n shop -o wide", 0, cli.ExitDegraded},
		"cache-history.txt":         {"cached", "history orders -n shop", 80, cli.ExitHealthy},
		"cache-down-history.txt":    {"cache-down", "history orders -n shop", 80, cli.ExitHealthy},
		"cache-promote-plan.txt":    {"cached", "cache promote orders --to frankfurt -n shop --dry-run", 80, cli.ExitHealthy},
	} {
		t.Run(file, func(t *testing.T) {
			got := run(t, withCache(t, tc.state), runOptions{width: tc.width, env: map[string]string{"NO_COLOR": "1"}}, strings.Fields(tc.args)...)
			if got.code != tc.code || got.errOut != "" {
				t.Errorf("exit code %d, want %d; stderr %q", got.code, tc.code, got.errOut)
			}
			golden(t, filepath.Join("testdata", "verbs", file), got.out)
		})
	}
}

// TestCacheExplained: what would become of sessions, and why the cache is not ready; the answer about the failover stays the same.
func TestCacheExplained(t *testing.T) {
	for state, want := range map[string][]string{
		"cached": {"Sessions  in a failover to frankfurt: kept, if the cache of paris still answers within 3s; else all but what the cache of frankfurt has not received (1.5Ki now)"},
		"cache-down": {"Sessions  they stay: the cache's master is on frankfurt already",
			"Cache     not ready, which keeps no failover from happening: the master is on frankfurt, because the cache of paris does not answer [CacheNotHome]",
			"kubectl get pods -o wide -n shop -l mysql-mfg.io/failover-group=orders,app.kubernetes.io/name=cache,mysql-mfg.io/site=paris",
			"kubectl logs --tail=100 -n shop -l mysql-mfg.io/failover-group=orders,app.kubernetes.io/name=cache,mysql-mfg.io/site=madrid", "kubectl mfg doctor orders -n shop"},
	} {
		f := withCache(t, state)
		f.explanation = inspected(t).explanation
		f.explanation.Blockers, f.explanation.Verdict = nil, "Wait"
		got := run(t, f, runOptions{}, "explain", "orders", "-n", "shop")
		if got.code != cli.ExitHealthy {
			t.Errorf("%s: exit code %d: a cache blocks nothing", state, got.code)
		}
		for _, w := range want {
			if !strings.Contains(got.out, w) {
				t.Errorf("%s lacks %q:\n%s", state, w, got.out)
			}
		}
	}
}

// TestCacheStatusOfOneWithout: a group without a cache is no failure of the cache.
func TestCacheStatusOfOneWithout(t *testing.T) {
	for _, args := range []string{"cache status orders -n shop", "cache promote orders -n shop --to frankfurt --yes", "cache cli orders -n shop"} {
		if got := run(t, loadHealthy(t), runOptions{}, strings.Fields(args)...); got.code != cli.ExitError || !strings.Contains(got.errOut, "orders has no cache store") {
			t.Errorf("%s: %+v", args, got)
		}
	}
	if got := run(t, loadHealthy(t), runOptions{}, "cache", "flush"); got.code != cli.ExitUsage {
		t.Errorf("%+v", got)
	}
}

func TestCachePromote(t *testing.T) {
	const key = v1alpha1.AnnotationPromoteCache
	asks := []map[string]any{{key: "frankfurt"}}
	of := func(with func(g *v1alpha1.MysqlFailoverGroup)) func(*v1alpha1.MysqlFailoverGroup) { return with }
	for name, tc := range map[string]struct {
		args, stdin string
		before      func(*v1alpha1.MysqlFailoverGroup)
		refused     string
		lost        bool
		code        int
		patched     []map[string]any
		want        string
	}{
		"Done":       {args: "--to frankfurt", stdin: "y\n", code: cli.ExitHealthy, patched: asks, want: "done, the cache of frankfurt is the master"},
		"Progress":   {args: "--to frankfurt --yes", code: cli.ExitHealthy, patched: asks, want: "moving from paris to frankfurt"},
		"JSON":       {args: "--to frankfurt --yes -o json", code: cli.ExitHealthy, patched: asks, want: `"sessionsPreserved": true`},
		"Lost":       {args: "--to frankfurt --yes", lost: true, code: cli.ExitHealthy, patched: asks, want: "sessions were lost (Gone)"},
		"Refused":    {args: "--to frankfurt --yes", refused: "CacheTargetNotSynced", code: cli.ExitRefused, patched: asks, want: "see how the cache is: kubectl mfg cache status orders -n shop"},
		"NotSure":    {args: "--to frankfurt", stdin: "n\n", code: cli.ExitUsage, want: "not confirmed"},
		"NotWaiting": {args: "--to frankfurt --yes --wait=false", code: cli.ExitHealthy, patched: asks, want: "asked for"},
		"ThereNow":   {args: "--to paris", code: cli.ExitHealthy, want: "is the master already: nothing was sent"},
		"NoSite":     {args: "--to oslo --yes", code: cli.ExitUsage, want: "its sites are paris, frankfurt, madrid"},
		"NoTo":       {args: "--yes", code: cli.ExitUsage, want: "--to is missing"},
		"Joined": {args: "--to frankfurt --yes", code: cli.ExitHealthy, patched: asks, want: "done",
			before: of(func(g *v1alpha1.MysqlFailoverGroup) { g.Annotations = map[string]string{key: "frankfurt"} })},
		"Another": {args: "--to frankfurt --yes", code: cli.ExitRefused, want: `a move of the cache to "madrid" was requested`,
			before: of(func(g *v1alpha1.MysqlFailoverGroup) { g.Annotations = map[string]string{key: "madrid"} })},
		"CacheMoves": {args: "--to frankfurt --yes", code: cli.ExitRefused, want: "the cache's master is moving to madrid",
			before: of(func(g *v1alpha1.MysqlFailoverGroup) {
				g.Status.Cache.Transition = &v1alpha1.CacheTransition{Kind: v1alpha1.CacheMoveHome, To: "madrid"}
			})},
		"RoleMoves": {args: "--to frankfurt --yes", code: cli.ExitRefused, want: "the role is moving to frankfurt",
			before: of(func(g *v1alpha1.MysqlFailoverGroup) { g.Status.Transition = &v1alpha1.Transition{To: "frankfurt"} })},
		"NotSeenYet": {args: "--to frankfurt --yes", code: cli.ExitRefused, want: "has not looked at the cache",
			before: of(func(g *v1alpha1.MysqlFailoverGroup) { g.Status.Cache = nil })},
	} {
		t.Run(name, func(t *testing.T) {
			f := withCache(t, "cached")
			g := &f.groups[0]
			if tc.before != nil {
				tc.before(g)
			}
			ticks := 0
			got := run(t, f, runOptions{stdin: tc.stdin, tick: func(int) {
				if _, is := g.Annotations[key]; !is {
					return
				}
				if ticks++; ticks < 5 {
					g.Status.Cache.Transition = &v1alpha1.CacheTransition{Kind: v1alpha1.CacheMoveRequested, From: "paris", To: "frankfurt"}
					return
				}
				g.Status.Cache.Transition = nil
				if tc.refused != "" {
					f.answer(v1alpha1.RequestPromoteCache, v1alpha1.RequestRefused, tc.refused, "the cache of frankfurt has not caught up")
					return
				}
				g.Status.Cache.ActiveSite = "frankfurt"
				g.Status.Cache.LastPromotion = &v1alpha1.CachePromotion{At: metav1.NewMicroTime(noon), To: "frankfurt", SessionsPreserved: !tc.lost, Reason: "Gone"}
				f.answer(v1alpha1.RequestPromoteCache, v1alpha1.RequestDone, v1alpha1.AnswerCompleted, "the cache of frankfurt is the master")
			}}, append([]string{"cache", "promote", "orders", "-n", "shop"}, strings.Fields(tc.args)...)...)
			if got.code != tc.code || !strings.Contains(got.out+got.errOut, tc.want) {
				t.Errorf("exit code %d, want %d: %+v", got.code, tc.code, got)
			}
			if diff := cmp.Diff(tc.patched, f.patched); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

// TestCacheRequestBlocksNoFailover: a promotion that is asked for and not answered yet keeps nobody from moving MySQL.
func TestCacheRequestBlocksNoFailover(t *testing.T) {
	f := withCache(t, "cached")
	f.groups[0].Annotations = map[string]string{v1alpha1.AnnotationPromoteCache: "madrid"}
	got := run(t, f, runOptions{}, strings.Fields("failover orders -n shop --to frankfurt --yes --wait=false")...)
	if got.code != cli.ExitHealthy || len(f.patched) != 1 {
		t.Errorf("%+v", got)
	}
}
