// SPDX-License-Identifier: Apache-2.0

//go:build lab && long

package suites

import (
	"cmp"
	"context"
	"errors"
	"maps"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/mysql-mfg/mfg/api/v1alpha1"
	"github.com/mysql-mfg/mfg/e2e/demo/stage"
)

// rolls watches which groups are given other pod templates. A group rolls from its first changed Deployment until all of its pods are
// of the new template and ready. A site that had no ready pod when it was changed takes no turn: a pod that does not come up is given another
// pod at once (docs/upgrades.md), and the cut makes such sites.
type rolls struct {
	stop   func()
	done   sync.WaitGroup
	groups []string

	mu       sync.Mutex
	before   map[string]string
	changed  map[string]map[string]bool
	finished map[string]bool
	// ready are the sites that had a ready pod at the last look, mended those that were changed without one.
	ready, mended map[string]bool
	order         []string
	took          map[string]time.Duration
	began         map[string]time.Time
	twice         []string
	failed        error
	looks         int
	// last is the last look, blind the longest time between two.
	last  time.Time
	blind time.Duration
}

// blindMax is shorter than any site takes to be given another pod.
const blindMax = 10 * time.Second

// watchRolls begins with the templates as they are.
func watchRolls(t *testing.T, groups []string) *rolls {
	t.Helper()
	r := &rolls{
		groups: groups, before: map[string]string{}, changed: map[string]map[string]bool{}, finished: map[string]bool{}, took: map[string]time.Duration{},
		began: map[string]time.Time{}, ready: map[string]bool{}, mended: map[string]bool{}, last: time.Now(),
	}
	list := func(ctx context.Context) (*appsv1.DeploymentList, error) {
		out := &appsv1.DeploymentList{}
		err := lab.Kube.List(ctx, out, client.MatchingLabels{v1alpha1.LabelName: v1alpha1.NameMySQL})
		out.Items = slices.DeleteFunc(out.Items, func(d appsv1.Deployment) bool { return !slices.Contains(groups, d.Namespace) })
		return out, err
	}
	first, err := list(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for _, d := range first.Items {
		r.before[d.Name] = d.Annotations[v1alpha1.AnnotationSpecHash]
		r.ready[d.Name] = d.Status.ReadyReplicas == 1
	}
	if len(r.before) != len(groups)*len(stage.Sites) {
		t.Fatalf("%d Deployments of MySQL are there", len(r.before))
	}
	ctx, cancel := context.WithCancel(context.Background())
	r.stop = sync.OnceFunc(func() { cancel(); r.done.Wait() })
	t.Cleanup(r.stop)
	r.done.Go(func() {
		for ctx.Err() == nil {
			now, err := list(ctx)
			if ctx.Err() != nil {
				return
			}
			r.look(now, err)
			time.Sleep(300 * time.Millisecond)
		}
	})
	return r
}

func (r *rolls) look(list *appsv1.DeploymentList, err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if err != nil {
		r.failed = err
		return
	}
	r.looks++
	r.blind, r.last = max(r.blind, time.Since(r.last)), time.Now()
	settled := map[string]int{}
	for _, d := range list.Items {
		group, site := d.Labels[v1alpha1.LabelGroup], d.Labels[v1alpha1.LabelSite]
		if d.Annotations[v1alpha1.AnnotationSpecHash] == r.before[d.Name] {
			r.ready[d.Name] = d.Status.ReadyReplicas == 1
			continue
		}
		r.mended[d.Name] = r.mended[d.Name] || !r.ready[d.Name] && !r.changed[group][site]
		if d.Status.ObservedGeneration == d.Generation && d.Status.UpdatedReplicas == 1 && d.Status.ReadyReplicas == 1 {
			settled[group]++
		}
		if r.mended[d.Name] {
			continue
		}
		if r.changed[group] == nil {
			r.changed[group], r.began[group] = map[string]bool{}, time.Now()
			r.order = append(r.order, group)
		}
		r.changed[group][site] = true
	}
	var rolling []string
	for _, group := range r.order {
		if r.finished[group] {
			continue
		}
		if settled[group] == len(stage.Sites) {
			r.finished[group], r.took[group] = true, time.Since(r.began[group])
			continue
		}
		rolling = append(rolling, group)
	}
	if len(rolling) > 1 {
		r.twice = append(r.twice, strings.Join(rolling, "+"))
	}
}

// of are how many sites of a group have another template.
func (r *rolls) of(group string) int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return len(r.changed[group])
}

// end ends the watch and fails the test if two groups rolled at a time, if one did not or did twice, or if others were the first and the last
// one than these; empty means whichever.
func (r *rolls) end(t *testing.T, first, last string) {
	t.Helper()
	r.stop()
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.failed != nil {
		t.Logf("some looks failed, the last one with: %v", r.failed)
	}
	if r.blind > blindMax {
		t.Errorf("nobody looked for %s: a site could have been given another pod meanwhile", r.blind)
	}
	if len(r.twice) > 0 {
		t.Errorf("two groups rolled at a time in %d of %d looks, the first time %s", len(r.twice), r.looks, r.twice[0])
	}
	if sorted := slices.Sorted(slices.Values(r.order)); !slices.Equal(sorted, r.groups) {
		t.Errorf("%v had their turn, want each of %v once", r.order, r.groups)
	} else if r.order[0] != first || last != "" && r.order[len(r.order)-1] != last {
		t.Errorf("groups had their turn in the order %v, want %s first and %s last", r.order, first, cmp.Or(last, "any"))
	}
	for _, group := range r.groups {
		if !r.finished[group] {
			t.Errorf("%s was not finished", group)
		}
	}
	for _, group := range r.order {
		lab.Say("  %s had its turn for %s", group, r.took[group].Round(time.Second))
	}
	lab.Say("  %d looks, at most %s between two; without a ready pod, and so without a turn, were changed: %v", r.looks, r.blind.Round(time.Millisecond),
		slices.Sorted(maps.Keys(r.mendedOnes())))
}

func (r *rolls) mendedOnes() map[string]bool {
	ones := maps.Clone(r.mended)
	maps.DeleteFunc(ones, func(_ string, is bool) bool { return !is })
	return ones
}

// begun waits until a group has its first changed site.
func (r *rolls) begun(t *testing.T, group string) {
	t.Helper()
	if err := stage.Poll(t.Context(), rolling, group+" to have its first new pod", func(context.Context) error {
		if n := r.of(group); n == 0 {
			return errors.New("it waits")
		}
		return nil
	}); err != nil {
		t.Fatal(err)
	}
}
