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

// anotherTag is that of the second version's images.
const anotherTag = "another"

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

// names are those of the groups, each in a namespace of the same name, in the order of their turns.
func (f *fleet) names() (all []string) {
	for _, g := range f.groups {
		all = append(all, g.Name)
	}
	return all
}

// allRolled is how long the groups may take to be given their new pods, a failover and the clones after it in the middle.
func (f *fleet) allRolled() time.Duration {
	return 10*time.Minute + time.Duration(len(f.groups))*4*time.Minute
}

// atOnce is how many groups are brought up beside each other: each initialises three servers, and the machine has two processors.
const atOnce = 2

// fleetUnderTest are groups that are whole, of the version that runs.
func fleetUnderTest(t *testing.T, n int) *fleet {
	t.Helper()
	f := &fleet{witnesses: map[string]*stage.Witnesses{}}
	for batch := range slices.Chunk(fleetNames(n), atOnce) {
		var fresher []*stage.Group
		for _, name := range batch {
			g := fresh(t, name, name, lab.Namespace)
			g = ownGroup(t, g, fleetSpec(name, n))
			// All groups together have half the load of one: more would make the machine what fails.
			g.WriterArgs = []string{fmt.Sprintf("--rate=%d", max(10, 100/n))}
			g.ProbeArgs = []string{fmt.Sprintf("--rate=%d", max(10, 50/n)), fmt.Sprintf("--refused-rate=%d", max(5, 20/n))}
			fresher = append(fresher, g)
		}
		for _, g := range fresher {
			if _, err := g.AwaitReady(t.Context(), 2*bringUp); err != nil {
				t.Fatal(err)
			}
			if _, err := g.Await(t.Context(), rolling, g.Name+" to stand still", stage.NotUpdated); err != nil {
				t.Fatal(err)
			}
		}
		f.groups = append(f.groups, fresher...)
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
	if err := stage.Poll(t.Context(), f.allRolled(), "all groups to have their new pods", func(ctx context.Context) error {
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
		return f.allUpdated(ctx)
	}); err != nil {
		t.Fatal(err)
	}
}

func (f *fleet) allUpdated(ctx context.Context) error {
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
		v, testimony := judge(t, f.witnesses[g.Name], at)
		// Its old active site was cloned since: its rows are gone, its kept logs are not.
		if err := v.CheckKeptLoss(testimony); err != nil {
			t.Errorf("%s: %v", g.Name, err)
		}
		for _, r := range v.Records {
			if r.To == "south" {
				t.Errorf("%s: south is dr-only and was promoted", g.Name)
			}
		}
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

// Groups under load, three or as many as MFG_UPGRADE_GROUPS says, are given the pods of another version of the operator, one after the other; in the middle of the
// first one's turn the node of all active sites is cut off. Then back to the version before: held up by a pause and a pin on the way, or, if
// that version does not pace, one group after the other by hand, as docs/upgrades.md has it. With MFG_UPGRADE_FROM, a commit or the path of a
// checkout of one, that one is the version before. With MFG_UPGRADE_WAY there or back only that way is played, by groups that the other version made.
func TestUpgradeAtLeisure(t *testing.T) {
	n, from, way := fleetSize(t), checkout(t, os.Getenv("MFG_UPGRADE_FROM")), os.Getenv("MFG_UPGRADE_WAY")
	if !slices.Contains([]string{"", "there", "back"}, way) {
		t.Fatalf("WAY=%s: want there or back, or nothing for both", way)
	}
	alone(t)
	roomFor(t, n)
	fromTag, toTag := "dev", anotherTag
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
	paces := from == "" || pacesUpgrades(t, from)
	before := paced
	if !paces {
		before = nil // it knows of no such values
	}
	first := func() error { return lab.InstallVersion(t.Context(), from, fromTag, before) }
	if way == "back" {
		first = func() error { return lab.InstallVersion(t.Context(), "", toTag, paced) }
	}
	if err := first(); err != nil {
		t.Fatal(err)
	}
	f := fleetUnderTest(t, n)
	lab.Say("%d groups run: sites of %s", n, residents(t, f))

	if way != "back" && !t.Run("there", func(t *testing.T) {
		f.played(t, func(r *rolls) {
			if err := lab.InstallVersion(t.Context(), "", toTag, paced); err != nil {
				t.Fatal(err)
			}
			r.begun(t, f.groups[0].Name)
			f.cutTheActiveNode(t)
			f.complete(t)
			// Who is not whole after the failover is passed over until it is.
			r.end(t, f.groups[0].Name, "")
		})
	}) || way == "there" {
		return
	}
	t.Run("back", func(t *testing.T) {
		f.played(t, func(r *rolls) {
			if !paces {
				f.backByHand(t, r, from, fromTag)
				return
			}
			if err := lab.InstallVersion(t.Context(), from, fromTag, paced); err != nil {
				t.Fatal(err)
			}
			f.heldUp(t, r)
		})
	})
}

// played tells a story of all groups under load, judges it, and says how long it took.
func (f *fleet) played(t *testing.T, story func(*rolls)) {
	t.Helper()
	f.load(t)
	r := watchRolls(t, f.names())
	at, began := load.Now(), time.Now()
	story(r)
	lab.Say("%s: %d groups in %s", t.Name(), len(f.groups), time.Since(began).Round(time.Second))
	f.nothingOfThemLost(t, at)
}

// heldUp is a campaign in which nobody follows the first group for a while, and the second one is pinned until all others are done.
func (f *fleet) heldUp(t *testing.T, r *rolls) {
	t.Helper()
	names := f.names()
	first, pinned, others := names[0], names[1], f.groups[2:]
	r.begun(t, first)
	plugin(t, "upgrade", "pause", "--yes").want(t, 0, nil)
	plugin(t, "upgrade", "pause", pinned, "-n", pinned, "--yes", "--why", "the story").want(t, 0, nil)
	if _, err := f.groups[0].Await(t.Context(), f.allRolled(), "the first group to be done", stage.NotUpdated); err != nil {
		t.Fatal(err)
	}
	// Longer than the pause between two groups.
	stays(t, r, time.Minute, names[1:]...)
	plugin(t, "upgrade", "resume", "--yes").want(t, 0, nil)
	for _, g := range others {
		if _, err := g.Await(t.Context(), f.allRolled(), g.Name+" to be done", stage.NotUpdated); err != nil {
			t.Fatal(err)
		}
	}
	stays(t, r, 30*time.Second, pinned)
	var rep waiting
	plugin(t, "upgrade", "status", "-o", "json").want(t, 0, &rep)
	i := slices.IndexFunc(rep.Groups, func(g waitingGroup) bool { return g.Name == pinned })
	if i < 0 || rep.Groups[i].State != "Pinned" || len(rep.Groups[i].Behind) != len(stage.Sites) {
		t.Errorf("of the pinned group is said %+v", rep)
	}
	plugin(t, "upgrade", "resume", pinned, "-n", pinned, "--yes").want(t, 0, nil)
	r.begun(t, pinned)
	f.complete(t)
	r.end(t, first, pinned)
}

// backByHand goes back to a version that would roll all groups at once.
func (f *fleet) backByHand(t *testing.T, r *rolls, from, tag string) {
	t.Helper()
	for _, g := range f.groups {
		plugin(t, "pause", g.Name, "-n", g.Namespace, "--for", "168h", "--yes").want(t, 0, nil)
	}
	if err := lab.InstallVersion(t.Context(), from, tag, nil); err != nil {
		t.Fatal(err)
	}
	stays(t, r, time.Minute, f.names()...)
	for _, g := range f.groups {
		plugin(t, "resume", g.Name, "-n", g.Namespace, "--yes").want(t, 0, nil)
		r.begun(t, g.Name)
		if _, err := g.Await(t.Context(), f.allRolled(), g.Name+" to be done", stage.NotUpdated); err != nil {
			t.Fatal(err)
		}
	}
	if err := stage.Poll(t.Context(), rolling, "all groups to have their old pods", f.allUpdated); err != nil {
		t.Fatal(err)
	}
	names := f.names()
	r.end(t, names[0], names[len(names)-1])
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

// pacesUpgrades says whether the chart of a checkout knows paced upgrades.
func pacesUpgrades(t *testing.T, repo string) bool {
	t.Helper()
	raw, err := os.ReadFile(filepath.Join(repo, "charts", "mfg", "values.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	return strings.Contains(string(raw), "\nupgrades:")
}
