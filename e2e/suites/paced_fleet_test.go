// SPDX-License-Identifier: Apache-2.0

//go:build lab && long

package suites

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/mysql-mfg/mfg/api/v1alpha1"
	"github.com/mysql-mfg/mfg/e2e/demo/stage"
)

// A story of turns needs one group that goes first and one that is pinned; a third one goes on meanwhile. There are names for twenty.
const leastGroups, mostGroups = 2, 20

// fleetSize is how many groups `make test-upgrade-lab GROUPS=n` asks for. In bash a variable GROUPS cannot be set: it has the groups of the user.
func fleetSize(t *testing.T) int {
	t.Helper()
	text := os.Getenv("MFG_UPGRADE_GROUPS")
	if text == "" {
		return leastGroups
	}
	n, err := strconv.Atoi(text)
	if err != nil || n < leastGroups || n > mostGroups {
		t.Fatalf("MFG_UPGRADE_GROUPS is %q: choose a number from %d to %d", text, leastGroups, mostGroups)
	}
	return n
}

// fleetNames are those of the groups and of their namespaces, in the order in which they have their turn.
func fleetNames(n int) (names []string) {
	for i := range n {
		names = append(names, "suite-pace-"+string(rune('a'+i)))
	}
	return names
}

// manyGroups is from how many groups on two processors have no rest left: a site at rest takes some 5 % of one.
const manyGroups = 6

// fleetSpec is that of one group. With many of them it is asked half as often, and has twice the time: turns are what is tested here, not how
// soon a site is missed.
func fleetSpec(name string, n int) v1alpha1.MysqlFailoverGroupSpec {
	spec := stage.DefaultSpec(name)
	spec.Failover.OnDivergence = v1alpha1.DivergenceReclone // so that nobody has to decide of a site that comes back
	if n >= manyGroups {
		spec.Failover.PollInterval = metav1.Duration{Duration: 4 * time.Second}
		spec.Sidecar.PeerCheckInterval = metav1.Duration{Duration: 4 * time.Second}
		spec.Sidecar.LeaseTimeout = metav1.Duration{Duration: 40 * time.Second}
	}
	return spec
}

// checkout is the directory of the version before: as it was named, or one that is made of a commit and goes with the test.
func checkout(t *testing.T, from string) string {
	t.Helper()
	if from == "" {
		return ""
	}
	if info, err := os.Stat(from); err == nil && info.IsDir() {
		return from
	}
	dir := filepath.Join(t.TempDir(), "before")
	git(t, "worktree", "add", "--detach", dir, from)
	t.Cleanup(func() {
		if out, err := exec.Command("git", "-C", lab.Repo, "worktree", "remove", "--force", dir).CombinedOutput(); err != nil {
			t.Errorf("remove the checkout of %s: %v: %s", from, err, out)
		}
	})
	return dir
}

func git(t *testing.T, args ...string) {
	t.Helper()
	if out, err := exec.CommandContext(t.Context(), "git", append([]string{"-C", lab.Repo}, args...)...).CombinedOutput(); err != nil {
		t.Fatalf("git %s: %v: %s", strings.Join(args, " "), err, out)
	}
}

// alone removes every other group of the lab, which would have its turn before these or beside them and takes memory, and what an earlier run
// left in the Lease of the turn: a pause or a stop would hold this one up.
func alone(t *testing.T) {
	t.Helper()
	var groups v1alpha1.MysqlFailoverGroupList
	if err := lab.Kube.List(t.Context(), &groups); err != nil {
		t.Fatal(err)
	}
	for _, g := range groups.Items {
		lab.Say("removing group %s of namespace %s: the fleet wants the lab for itself", g.Name, g.Namespace)
		if err := (&stage.Group{Stage: lab, Namespace: g.Namespace, Name: g.Name}).Delete(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	lease := &coordinationv1.Lease{}
	lease.Namespace, lease.Name = stage.OperatorNamespace, v1alpha1.UpgradeLeaseName
	if err := lab.Kube.Delete(t.Context(), lease); client.IgnoreNotFound(err) != nil {
		t.Fatal(err)
	}
}

// roomFor ends the test at its beginning if the machine has no room for the groups.
func roomFor(t *testing.T, n int) {
	t.Helper()
	if _, err := lab.Lab.RecycleVolumes(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := lab.Room(t.Context(), n); err != nil {
		t.Fatal(err)
	}
	back, err := lab.RoomForAIO(n)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := back(); err != nil {
			t.Error(err)
		}
	})
}

// residents says how much memory the sites of the first group hold.
func residents(t *testing.T, f *fleet) string {
	t.Helper()
	held, err := f.groups[0].SitesMiB(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	var each []string
	for _, site := range stage.Sites {
		each = append(each, fmt.Sprintf("%s %.0f MiB", site, held[site]))
	}
	return f.groups[0].Name + " hold " + strings.Join(each, ", ")
}
