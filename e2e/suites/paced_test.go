// SPDX-License-Identifier: Apache-2.0

//go:build lab && long

package suites

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/mysql-mfg/mfg/api/v1alpha1"
	"github.com/mysql-mfg/mfg/e2e/demo/stage"
	"github.com/mysql-mfg/mfg/e2e/writer/load"
)

const (
	// anotherTag is that of the second version's images.
	anotherTag = "another"
	// allRolled is how long three groups may take to be given their new pods, a failover in the middle.
	allRolled = 25 * time.Minute
)

// Each group has a namespace of its own, of the same name. In this order they have their turn.
var pacedGroups = []string{"suite-pace-a", "suite-pace-b", "suite-pace-c"}

// waiting is what the story reads of `kubectl mfg upgrade status`.
type waiting struct {
	Groups []waitingGroup `json:"groups"`
}

type waitingGroup struct {
	Name   string   `json:"name"`
	State  string   `json:"state"`
	Behind []string `json:"behind"`
}

// fleet are several groups under load, and what is watched of them.
type fleet struct {
	groups    []*stage.Group
	witnesses map[string]*stage.Witnesses
}

// fleetUnderTest are three groups that are whole, of the version that runs.
func fleetUnderTest(t *testing.T) *fleet {
	t.Helper()
	f := &fleet{witnesses: map[string]*stage.Witnesses{}}
	for _, name := range pacedGroups {
		g := fresh(t, name, name, lab.Namespace)
		spec := stage.DefaultSpec(name)
		spec.Failover.OnDivergence = v1alpha1.DivergenceReclone // so that nobody has to decide of a site that comes back
		f.groups = append(f.groups, ownGroup(t, g, spec))
	}
	for _, g := range f.groups {
		if _, err := g.AwaitReady(t.Context(), 2*bringUp); err != nil {
			t.Fatal(err)
		}
		if _, err := g.Await(t.Context(), rolling, g.Name+" to stand still", stage.NotUpdated); err != nil {
			t.Fatal(err)
		}
	}
	return f
}

func (f *fleet) load(t *testing.T) {
	t.Helper()
	for _, g := range f.groups {
		w, err := g.StartWitnesses(t.Context(), filepath.Base(t.Name())+"-"+g.Name)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = w.Abandon(context.Background()) })
		f.witnesses[g.Name] = w
	}
}

// complete waits until all groups have their new pods and nobody has the turn.
func (f *fleet) complete(t *testing.T) {
	t.Helper()
	if err := stage.Poll(t.Context(), allRolled, "all groups to have their new pods", func(ctx context.Context) error {
		lease, err := turnLease(ctx)
		if err != nil {
			return err
		}
		if why := lease.Annotations[v1alpha1.AnnotationUpgradeStopped]; why != "" {
			t.Fatalf("it stopped: %s", why)
		}
		if h := lease.Spec.HolderIdentity; h != nil && *h != "" {
			return fmt.Errorf("%s has the turn", *h)
		}
		for _, g := range f.groups {
			group, err := g.Get(ctx)
			if err != nil {
				return err
			}
			if err := stage.NotUpdated(group); err != nil {
				return fmt.Errorf("%s: %w", g.Name, err)
			}
		}
		return nil
	}); err != nil {
		t.Fatal(err)
	}
}

func turnLease(ctx context.Context) (*coordinationv1.Lease, error) {
	lease := &coordinationv1.Lease{}
	err := lab.Kube.Get(ctx, client.ObjectKey{Namespace: stage.OperatorNamespace, Name: v1alpha1.UpgradeLeaseName}, lease)
	return lease, err
}

// nothingOfThemLost ends the writers and compares what they wrote with what is there: what is missing is what the group itself says
// that a failover lost, and without an unplanned failover that is nothing.
func (f *fleet) nothingOfThemLost(t *testing.T, at time.Duration) {
	t.Helper()
	for _, g := range f.groups {
		v, _ := judge(t, f.witnesses[g.Name], at)
		checkLoss(t, g, v)
		unplanned := slices.ContainsFunc(v.Records, func(r v1alpha1.FailoverRecord) bool { return r.Kind != v1alpha1.FailoverPlanned })
		if !unplanned && (len(v.Missing) > 0 || v.Lost > 0) {
			t.Errorf("%s: %d acknowledged rows are missing, %d reported lost", g.Name, len(v.Missing), v.Lost)
		}
	}
}

// stays waits a while in which none of some groups may be given another pod.
func stays(t *testing.T, r *rolls, d time.Duration, groups ...string) {
	t.Helper()
	sleep(t, d)
	for _, group := range groups {
		if n := r.of(group); n > 0 {
			t.Errorf("%d sites of %s have another template", n, group)
		}
	}
}

// Three groups under load are given the pods of another version of the operator, one after the other; in the middle of the first one's turn the
// node of all active sites is cut off. Then back to the version before, held up by a pause and a pin on the way. With MFG_UPGRADE_FROM, the
// path of a checkout of an older commit, that one is the version before.
func TestUpgradeAtLeisure(t *testing.T) {
	from, fromTag := os.Getenv("MFG_UPGRADE_FROM"), "dev"
	to, toTag := "", anotherTag
	if from != "" {
		fromTag, toTag = anotherTag, "dev"
	}
	if err := lab.Lab.BuildAnother(t.Context(), from, anotherTag); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := lab.InstallOperator(context.Background()); err != nil {
			t.Errorf("bring the lab's operator back: %v", err)
		}
	})
	paced := map[string]any{"upgrades": map[string]any{"pause": "20s"}}
	backwards := from == "" || paces(t, from)
	before := paced
	if !backwards {
		before = nil // it knows of no such values
	}
	if err := lab.InstallVersion(t.Context(), from, fromTag, before); err != nil {
		t.Fatal(err)
	}
	f := fleetUnderTest(t)

	t.Run("there", func(t *testing.T) {
		f.load(t)
		r := watchRolls(t)
		at := load.Now()
		if err := lab.InstallVersion(t.Context(), to, toTag, paced); err != nil {
			t.Fatal(err)
		}
		r.begun(t, pacedGroups[0])
		f.cutTheActiveNode(t)
		f.complete(t)
		r.end(t, pacedGroups)
		f.nothingOfThemLost(t, at)
	})
	if t.Failed() || !backwards {
		return
	}
	t.Run("back", func(t *testing.T) {
		f.load(t)
		r := watchRolls(t)
		at := load.Now()
		if err := lab.InstallVersion(t.Context(), from, fromTag, paced); err != nil {
			t.Fatal(err)
		}
		r.begun(t, pacedGroups[0])
		plugin(t, "upgrade", "pause", "--yes").want(t, 0, nil)
		plugin(t, "upgrade", "pause", pacedGroups[1], "-n", pacedGroups[1], "--yes", "--why", "the story").want(t, 0, nil)
		if _, err := f.groups[0].Await(t.Context(), allRolled, "the first group to be done", stage.NotUpdated); err != nil {
			t.Fatal(err)
		}
		// Longer than the pause between two groups.
		stays(t, r, time.Minute, pacedGroups[1], pacedGroups[2])
		plugin(t, "upgrade", "resume", "--yes").want(t, 0, nil)
		if _, err := f.groups[2].Await(t.Context(), allRolled, "the third group to be done", stage.NotUpdated); err != nil {
			t.Fatal(err)
		}
		stays(t, r, 30*time.Second, pacedGroups[1])
		var rep waiting
		plugin(t, "upgrade", "status", "-o", "json").want(t, 0, &rep)
		i := slices.IndexFunc(rep.Groups, func(g waitingGroup) bool { return g.Name == pacedGroups[1] })
		if i < 0 || rep.Groups[i].State != "Pinned" || len(rep.Groups[i].Behind) != len(stage.Sites) {
			t.Errorf("of the pinned group is said %+v", rep)
		}
		plugin(t, "upgrade", "resume", pacedGroups[1], "-n", pacedGroups[1], "--yes").want(t, 0, nil)
		r.begun(t, pacedGroups[1])
		f.complete(t)
		r.end(t, []string{pacedGroups[0], pacedGroups[2], pacedGroups[1]})
		f.nothingOfThemLost(t, at)
	})
}

// cutTheActiveNode cuts the node of the active sites off until the role has moved in every group that had it there.
func (f *fleet) cutTheActiveNode(t *testing.T) {
	t.Helper()
	group, err := f.groups[0].Get(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	site, cut := group.Status.ActiveSite, fault(t, "node-cut")
	if _, err := f.groups[0].Break(t.Context(), cut, site); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = f.groups[0].Undo(context.Background(), cut, site) })
	for _, g := range f.groups {
		if _, err := g.Await(t.Context(), 3*time.Minute, g.Name+" to be open elsewhere", func(group *v1alpha1.MysqlFailoverGroup) error {
			if group.Status.ActiveSite == site || group.Status.Transition != nil {
				return errors.New(stage.Describe(group))
			}
			return nil
		}); err != nil {
			t.Error(err)
		}
		if err := f.witnesses[g.Name].Service.AwaitCommit(t.Context(), 2*time.Minute); err != nil {
			t.Error(err)
		}
	}
	if err := f.groups[0].Undo(t.Context(), cut, site); err != nil {
		t.Fatal(err)
	}
}

// paces says whether the chart of a checkout knows paced upgrades.
func paces(t *testing.T, repo string) bool {
	t.Helper()
	raw, err := os.ReadFile(filepath.Join(repo, "charts", "mfg", "values.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	return strings.Contains(string(raw), "\nupgrades:")
}
