// SPDX-License-Identifier: Apache-2.0

//go:build lab

package suites

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/mysql-mfg/mfg/api/v1alpha1"
	"github.com/mysql-mfg/mfg/api/wire"
	"github.com/mysql-mfg/mfg/e2e/demo/stage"
	"github.com/mysql-mfg/mfg/e2e/writer/load"
)

// rolling is after how long an update of three sites counts as stuck. It takes one to two minutes, and more on a busy machine.
const rolling = 12 * time.Minute

// edit changes the group's specification, and takes that back when the test ends. Both are ordered updates.
func edit(t *testing.T, g *stage.Group, change func(*v1alpha1.MysqlFailoverGroupSpec)) {
	t.Helper()
	group, err := g.Get(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	before := group.Spec.DeepCopy()
	t.Cleanup(func() {
		if err := setSpec(context.Background(), g, func(spec *v1alpha1.MysqlFailoverGroupSpec) { *spec = *before }); err != nil {
			t.Errorf("take the change back: %v", err)
		}
		if _, err := g.Await(context.Background(), rolling, "the change to be taken back", stage.NotUpdated); err != nil {
			t.Error(err)
		}
	})
	if err := setSpec(t.Context(), g, change); err != nil {
		t.Fatal(err)
	}
}

func setSpec(ctx context.Context, g *stage.Group, change func(*v1alpha1.MysqlFailoverGroupSpec)) error {
	group, err := g.Get(ctx)
	if err != nil {
		return err
	}
	before := group.DeepCopy()
	change(&group.Spec)
	return g.Kube.Patch(ctx, group, client.MergeFrom(before))
}

// order notes in which order the sites get another pod, and who was active then.
type order struct {
	before map[string]string
	sites  []string
	// inPlace are the sites that were active when their pod went, torn whether two pods were not ready at a time.
	inPlace, torn []string
}

func watchOrder(t *testing.T, g *stage.Group) *order {
	t.Helper()
	o := &order{before: map[string]string{}}
	for _, site := range stage.Sites {
		pod, err := g.Pod(t.Context(), site)
		if err != nil {
			t.Fatal(err)
		}
		o.before[site] = string(pod.UID)
	}
	return o
}

// look takes in what is there now.
func (o *order) look(ctx context.Context, g *stage.Group) error {
	group, err := g.Get(ctx)
	if err != nil {
		return err
	}
	pods, err := g.Pods(ctx)
	if err != nil {
		return err
	}
	there := map[string]bool{}
	var gone []string
	for _, pod := range pods {
		if pod.DeletionTimestamp == nil {
			there[string(pod.UID)] = true
		}
	}
	for site, uid := range o.before {
		if there[uid] || slices.Contains(o.sites, site) {
			continue
		}
		o.sites, gone = append(o.sites, site), append(gone, site)
		if group.Status.ActiveSite == site {
			o.inPlace = append(o.inPlace, site)
		}
	}
	if len(gone) > 1 {
		o.torn = append(o.torn, gone...)
	}
	return nil
}

// follow waits until the update is complete.
func (o *order) follow(t *testing.T, g *stage.Group) *v1alpha1.MysqlFailoverGroup {
	t.Helper()
	after, err := g.Await(t.Context(), rolling, "the update", func(group *v1alpha1.MysqlFailoverGroup) error {
		return errors.Join(o.look(t.Context(), g), stage.NotUpdated(group))
	})
	if err != nil {
		t.Fatal(err)
	}
	return after
}

// carriedOut leaves out the planned moves that were taken back. On a busy machine MySQL of the target can need longer than an opening may take. Then
// the role stays, and the operator tries again, or who ordered the move does.
func carriedOut(t *testing.T, records []v1alpha1.FailoverRecord) []v1alpha1.FailoverRecord {
	t.Helper()
	return slices.DeleteFunc(slices.Clone(records), func(r v1alpha1.FailoverRecord) bool {
		reverted := r.Kind == v1alpha1.FailoverPlanned && r.Reason == v1alpha1.ReasonPlannedReverted
		if reverted {
			t.Logf("a move was reverted: %+v", r)
		}
		return reverted
	})
}

// nothingLost judges a test in which the role moves once by plan.
func nothingLost(t *testing.T, w *stage.Witnesses, at time.Duration, cause string) stage.Verdict {
	t.Helper()
	v, _ := judge(t, w, at)
	if len(v.Missing) > 0 || v.Lost > 0 {
		t.Errorf("%d acknowledged rows are missing, %d reported lost", len(v.Missing), v.Lost)
	}
	moves := carriedOut(t, v.Records)
	if len(moves) != 1 || moves[0].Kind != v1alpha1.FailoverPlanned || string(moves[0].Reason) != cause || v.From == v.To {
		t.Errorf("%s -> %s, records %+v: want one planned failover because of %s", v.From, v.To, v.Records, cause)
	}
	if v.Pause.Length() > tooLong {
		t.Errorf("clients waited %s", v.Pause.Length())
	}
	return v
}

// A changed setting and changed resources reach every site in one ordered update. They are taken back in another one, which waits for
// the end of a pause.
func TestUpdateMovesTheRoleAndLosesNothing(t *testing.T) {
	g, before := whole(t)
	w := witnesses(t, g)
	o := watchOrder(t, g)
	active := before.Status.ActiveSite
	at := load.Now()
	edit(t, g, func(spec *v1alpha1.MysqlFailoverGroupSpec) {
		spec.MysqlConf = map[string]string{"max_connections": "123"}
		for i := range spec.Sites {
			spec.Sites[i].Resources.Requests = corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("11m")}
		}
	})
	after := o.follow(t, g)
	if err := w.Service.AwaitCommit(t.Context(), time.Minute); err != nil {
		t.Error(err)
	}
	nothingLost(t, w, at, "OrderedUpdate")
	if len(o.sites) != len(stage.Sites) || o.sites[0] != "south" || o.sites[len(o.sites)-1] != active {
		t.Errorf("updated in the order %v: want south, which is never promoted, first, and %s, which was active, last", o.sites, active)
	}
	if len(o.inPlace) > 0 || len(o.torn) > 0 {
		t.Errorf("replaced while active: %v; at the same time: %v", o.inPlace, o.torn)
	}
	for _, site := range stage.Sites {
		if got := query(t, g, site, "SELECT @@max_connections"); got != "123" {
			t.Errorf("%s: max_connections = %s", site, got)
		}
		pod, err := g.Pod(t.Context(), site)
		if err != nil {
			t.Fatal(err)
		}
		if got := requestOf(pod); got != "11m" {
			t.Errorf("%s: mysqld requests %s of a processor", site, got)
		}
	}
	if after.Status.ActiveSite == "south" {
		t.Error("south is dr-only and was promoted")
	}
	takenBackAfterAPause(t, g, *before.Spec.DeepCopy())
}

// requestOf is how much of a processor mysqld's container asks for.
func requestOf(pod *corev1.Pod) string {
	for _, c := range pod.Spec.Containers {
		if c.Name == "mysql" {
			return c.Resources.Requests.Cpu().String()
		}
	}
	return "nothing: it has no such container"
}

// takenBackAfterAPause takes a change back while the group is paused: no site gets another pod before the pause ends, and then all do.
func takenBackAfterAPause(t *testing.T, g *stage.Group, was v1alpha1.MysqlFailoverGroupSpec) {
	t.Helper()
	pause := func(ctx context.Context, value any) error {
		patch, err := json.Marshal(map[string]any{"metadata": map[string]any{"annotations": map[string]any{v1alpha1.AnnotationPauseUntil: value}}})
		if err != nil {
			return err
		}
		group, err := g.Get(ctx)
		if err != nil {
			return err
		}
		return g.Kube.Patch(ctx, group, client.RawPatch("application/merge-patch+json", patch))
	}
	// However this ends: what waits for the update would otherwise wait for an hour.
	t.Cleanup(func() {
		if err := pause(context.Background(), nil); err != nil {
			t.Errorf("end the pause: %v", err)
		}
	})
	if err := pause(t.Context(), time.Now().Add(time.Hour).UTC().Format(time.RFC3339)); err != nil {
		t.Fatal(err)
	}
	o := watchOrder(t, g)
	if err := setSpec(t.Context(), g, func(spec *v1alpha1.MysqlFailoverGroupSpec) { *spec = was }); err != nil {
		t.Fatal(err)
	}
	sleep(t, 15*time.Second)
	if err := o.look(t.Context(), g); err != nil || len(o.sites) > 0 {
		t.Errorf("updated %v although paused (%v)", o.sites, err)
	}
	if err := pause(t.Context(), nil); err != nil {
		t.Fatal(err)
	}
	o.follow(t, g)
	if len(o.sites) != len(stage.Sites) || len(o.inPlace) > 0 || len(o.torn) > 0 {
		t.Errorf("after the pause updated in the order %v; replaced while active: %v; at the same time: %v", o.sites, o.inPlace, o.torn)
	}
}

// What people do before they service a node.
func TestDrainMovesTheRoleFirst(t *testing.T) {
	g, before := whole(t)
	w := witnesses(t, g)
	active := before.Status.ActiveSite
	pod, err := g.Pod(t.Context(), active)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if out, err := lab.Lab.Kubectl(context.Background(), "uncordon", active); err != nil {
			t.Errorf("uncordon: %v\n%s", err, out)
		}
	})
	at := load.Now()
	out, err := lab.Lab.Kubectl(t.Context(), "drain", active, "--ignore-daemonsets", "--delete-emptydir-data",
		"--pod-selector="+v1alpha1.LabelGroup+"="+g.Name, "--timeout=2m")
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	if now := (&corev1.Pod{}); g.Kube.Get(t.Context(), client.ObjectKeyFromObject(pod), now) == nil && now.UID == pod.UID {
		t.Error("the drain ended, and the pod is still there")
	}
	if err := w.Service.AwaitCommit(t.Context(), time.Minute); err != nil {
		t.Error(err)
	}
	if _, err := lab.Lab.Kubectl(t.Context(), "uncordon", active); err != nil {
		t.Fatal(err)
	}
	if _, err := g.AwaitReady(t.Context(), comeBack); err != nil {
		t.Error(err)
	}
	nothingLost(t, w, at, "SiteLeaving")
}

// `kubectl delete pod` on the active site: mysqld ends after the role has moved.
func TestDeletedActivePodMovesTheRoleFirst(t *testing.T) {
	g, before := whole(t)
	w := witnesses(t, g)
	at := load.Now()
	if err := stage.DeletePod(t.Context(), g, before.Status.ActiveSite); err != nil {
		t.Fatal(err)
	}
	if _, err := g.Await(t.Context(), time.Minute, "the role to move", func(now *v1alpha1.MysqlFailoverGroup) error {
		if now.Status.ActiveSite == before.Status.ActiveSite || now.Status.Transition != nil {
			return errors.New(stage.Describe(now))
		}
		return nil
	}); err != nil {
		t.Error(err)
	}
	if err := w.Service.AwaitCommit(t.Context(), time.Minute); err != nil {
		t.Error(err)
	}
	if _, err := g.AwaitReady(t.Context(), comeBack); err != nil {
		t.Error(err)
	}
	nothingLost(t, w, at, "SiteLeaving")
}

func evict(ctx context.Context, g *stage.Group, site string) error {
	pod, err := g.Pod(ctx, site)
	if err != nil {
		return err
	}
	return g.Core.PolicyV1().Evictions(g.Namespace).Evict(ctx, &policyv1.Eviction{
		ObjectMeta:    metav1.ObjectMeta{Namespace: pod.Namespace, Name: pod.Name},
		DeleteOptions: &metav1.DeleteOptions{DryRun: []string{metav1.DryRunAll}},
	})
}

// East and west may be promoted, south never is: whichever of them is the replica is the only one that can take over.
func TestOnlyCandidateIsNotEvicted(t *testing.T) {
	g, before := whole(t)
	other := "east"
	if before.Status.ActiveSite == "east" {
		other = "west"
	}
	// The budgets follow the labels within a moment.
	if err := stage.Poll(t.Context(), time.Minute, "the protection of "+other, func(ctx context.Context) error {
		for _, site := range []string{before.Status.ActiveSite, other} {
			if err := evict(ctx, g, site); !apierrors.IsTooManyRequests(err) {
				return fmt.Errorf("eviction of %s: %w, want a refusal", site, err)
			}
		}
		return nil
	}); err != nil {
		t.Error(err)
	}
	if err := stage.Poll(t.Context(), time.Minute, "the right to evict south", func(ctx context.Context) error {
		return evict(ctx, g, "south")
	}); err != nil {
		t.Errorf("nobody needs south for a failover: %v", err)
	}
}

func TestLeaveAnswers(t *testing.T) {
	g, group := whole(t)
	for _, site := range stage.Sites {
		pod, err := g.Pod(t.Context(), site)
		if err != nil {
			t.Fatal(err)
		}
		body, err := get(t.Context(), fmt.Sprintf("http://%s:%d%s?wait=300ms", pod.Status.PodIP, wire.PortSidecar, wire.PathLeave))
		if err != nil {
			t.Fatal(err)
		}
		var answer wire.Leave
		if err := json.Unmarshal([]byte(body), &answer); err != nil {
			t.Fatalf("%s: %v in %q", site, err, body)
		}
		if answer.Left != (site != group.Status.ActiveSite) {
			t.Errorf("%s answers %+v", site, answer)
		}
	}
}
