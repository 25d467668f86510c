// SPDX-License-Identifier: Apache-2.0

package main

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/mysql-mfg/mfg/api/v1alpha1"
	"github.com/mysql-mfg/mfg/e2e/demo/stage"
)

// The group that the scenarios share. Each takes it as the one before left it, mended, or a fresh one.
const (
	namespace = "chaos"
	groupName = "chaos"
)

const (
	bringUp = 6 * time.Minute
	// mendLimit is how long a group may take to become whole before it is made again.
	mendLimit = 2 * time.Minute
	// obeyLimit is how long the operator may take to act upon an order before it counts as not heard.
	obeyLimit = 20 * time.Second
)

// lease is shorter than the default, because most scenarios wait for one; -lease changes it.
var lease = 15 * time.Second

// fenceTimeout is what a group with such leases has of it.
func fenceTimeout() time.Duration {
	var spec v1alpha1.MysqlFailoverGroupSpec
	stage.SetLease(&spec, lease)
	return cmp.Or(spec.Sidecar.FenceTimeout.Duration, 2*time.Second)
}

func sharedSpec() v1alpha1.MysqlFailoverGroupSpec {
	spec := stage.DefaultSpec(groupName)
	stage.SetLease(&spec, lease)
	spec.Failover = failoverSpec(Scenario{})
	return spec
}

// failoverSpec are the failover settings of a scenario.
func failoverSpec(sc Scenario) v1alpha1.FailoverSpec {
	spec := v1alpha1.FailoverSpec{
		Mode: v1alpha1.FailoverAuto, Cooldown: metav1.Duration{Duration: time.Second}, Threshold: 3,
		CrashGrace: metav1.Duration{Duration: 5 * time.Second}, OnDivergence: v1alpha1.DivergenceHold,
	}
	if sc.Tune != nil {
		sc.Tune(&spec)
	}
	return spec
}

// ready makes a group ready for a scenario: whole, with the scenario's settings, without orders and rows of others.
func (r *runner) ready(ctx context.Context, sc Scenario) (*stage.Group, error) {
	if err := r.Restore(ctx); err != nil {
		return nil, err
	}
	if sc.Apart {
		return r.apart(ctx)
	}
	if err := r.ensure(ctx); err != nil {
		return nil, err
	}
	g := r.group
	// A writer that an interrupted run left behind would write on and on.
	if err := g.Kube.DeleteAllOf(ctx, &corev1.Pod{}, client.InNamespace(g.Namespace), client.MatchingLabels{"app": "writer"}); err != nil {
		return nil, fmt.Errorf("remove writers: %w", err)
	}
	if err := tune(ctx, g, failoverSpec(sc)); err != nil {
		return nil, err
	}
	if err := equip(ctx, g, sc.Cache); err != nil {
		return nil, err
	}
	group, err := g.Await(ctx, bringUp, "group "+g.Name+" to be whole and out of its cooldown", func(group *v1alpha1.MysqlFailoverGroup) error {
		if until := group.Status.CooldownUntil; until != nil && time.Now().Before(until.Time) {
			return fmt.Errorf("its cooldown lasts until %s", until)
		}
		return errors.Join(whole(group), calm(group))
	})
	if err != nil {
		return nil, err
	}
	if _, err := g.RootSQL(ctx, group.Status.ActiveSite, "CREATE DATABASE IF NOT EXISTS app"); err != nil {
		return nil, err
	}
	// First: a prepared XA transaction that nobody is left to finish holds its tables for good, and DROP TABLE would wait for it.
	if err := g.Unmix(ctx, group.Status.ActiveSite); err != nil {
		return nil, err
	}
	_, err = g.RootSQL(ctx, group.Status.ActiveSite, "DROP TABLE IF EXISTS app.writes")
	return g, err
}

// ensure takes the group that is there, mends it, or makes a fresh one.
func (r *runner) ensure(ctx context.Context) error {
	if r.group == nil {
		if _, err := r.takeOver(ctx); err != nil {
			return err
		}
	}
	err := r.mend(ctx)
	if err == nil {
		return nil
	}
	if ctx.Err() != nil {
		return ctx.Err()
	}
	r.Say("making the group anew: %v", err)
	if err := r.group.Delete(ctx); err != nil {
		return err
	}
	if r.group, err = r.NewGroup(ctx, namespace, groupName, sharedSpec()); err != nil {
		return err
	}
	_, err = r.group.AwaitReady(ctx, bringUp)
	return err
}

// takeOver takes over the group of an earlier run, if it is of this build and can be mended.
func (r *runner) takeOver(ctx context.Context) (*stage.Group, error) {
	g := &stage.Group{Stage: r.Stage, Namespace: namespace, Name: groupName}
	if err := clearOrders(ctx, g); err != nil && !apierrors.IsNotFound(err) {
		return nil, err
	}
	var err error
	if r.group, err = r.EnsureGroup(ctx, namespace, groupName, sharedSpec()); err != nil {
		r.Say("removing the group of an earlier run: %v", err)
		if err := g.Delete(ctx); err != nil {
			return nil, err
		}
		r.group, err = r.NewGroup(ctx, namespace, groupName, sharedSpec())
	}
	if err != nil {
		return nil, err
	}
	_, err = r.group.AwaitReady(ctx, bringUp)
	return r.group, err
}

// mend makes the group whole: a site that is held because it lost its history is cloned again, as a person would order.
func (r *runner) mend(ctx context.Context) error {
	g := r.group
	if err := errors.Join(clearOrders(ctx, g), tune(ctx, g, failoverSpec(Scenario{}))); err != nil {
		return err
	}
	group, err := g.Await(ctx, mendLimit, "group "+g.Name+" to settle", settled)
	if err != nil {
		return err
	}
	for _, site := range diverged(group) {
		if err := reclone(ctx, g, site); err != nil {
			return err
		}
	}
	if group, err = g.Await(ctx, mendLimit, "group "+g.Name+" to be whole", whole); err != nil {
		return err
	}
	if err := refresh(ctx, g, group); err != nil {
		return err
	}
	_, err = g.Await(ctx, mendLimit, "group "+g.Name+" to be whole", whole)
	return err
}

// refresh gives standby sites whose containers were killed again and again new pods. The kubelet starts such a container later each
// time, up to five minutes, and the next scenario would wait for that.
func refresh(ctx context.Context, g *stage.Group, group *v1alpha1.MysqlFailoverGroup) error {
	for _, site := range group.Spec.Sites {
		if site.Name == group.Status.ActiveSite {
			continue
		}
		pod, err := g.Pod(ctx, site.Name)
		if err != nil {
			return err
		}
		if !slices.ContainsFunc(pod.Status.ContainerStatuses, func(c corev1.ContainerStatus) bool { return c.RestartCount > 1 }) {
			continue
		}
		if err := stage.DeletePod(ctx, g, site.Name); err != nil {
			return err
		}
		if _, err := g.Await(ctx, mendLimit, "the new pod of "+site.Name+" to be seen", func(*v1alpha1.MysqlFailoverGroup) error {
			if fresh, err := g.Pod(ctx, site.Name); err != nil || fresh.UID == pod.UID {
				return errors.Join(err, errors.New("it is not there"))
			}
			return nil
		}); err != nil {
			return err
		}
	}
	return nil
}

// reclone orders a site's data to be thrown away and made again, and waits until that was begun. Before the operator has
// seen that the active site is open, it would refuse the order: clients know that some moments earlier.
func reclone(ctx context.Context, g *stage.Group, site string) error {
	if _, err := g.Await(ctx, obeyLimit, "an active site that is open", func(group *v1alpha1.MysqlFailoverGroup) error {
		if !meta.IsStatusConditionTrue(group.Status.Conditions, v1alpha1.ConditionAvailable) {
			return errors.New(stage.Describe(group))
		}
		return nil
	}); err != nil {
		return err
	}
	g.Say("  order: %s=%s:confirm", v1alpha1.AnnotationRecloneSite, site)
	if err := annotate(ctx, g, v1alpha1.AnnotationRecloneSite, site+":confirm"); err != nil {
		return err
	}
	_, err := g.Await(ctx, obeyLimit, site+" to be cloned anew", func(group *v1alpha1.MysqlFailoverGroup) error {
		if slices.Contains(diverged(group), site) {
			return errors.New(stage.Describe(group))
		}
		return nil
	})
	return err
}

// orders are the annotations by which a person commands the group.
var orders = []string{
	v1alpha1.AnnotationPlannedFailover, v1alpha1.AnnotationAbortFailover, v1alpha1.AnnotationPauseUntil,
	v1alpha1.AnnotationRecloneSite, v1alpha1.AnnotationForceFailover,
}

func clearOrders(ctx context.Context, g *stage.Group) error {
	none := map[string]any{}
	for _, key := range orders {
		none[key] = nil
	}
	raw, err := json.Marshal(map[string]any{"metadata": map[string]any{"annotations": none}})
	if err != nil {
		return fmt.Errorf("encode annotations: %w", err)
	}
	return patchGroup(ctx, g, string(raw))
}

// tune gives the group failover settings, and takes those away that are not among them.
func tune(ctx context.Context, g *stage.Group, spec v1alpha1.FailoverSpec) error {
	raw, err := json.Marshal(spec)
	if err != nil {
		return fmt.Errorf("encode failover settings: %w", err)
	}
	settings := map[string]any{"maxLostTransactions": nil}
	if err := json.Unmarshal(raw, &settings); err != nil {
		return fmt.Errorf("decode failover settings: %w", err)
	}
	if raw, err = json.Marshal(map[string]any{"spec": map[string]any{"failover": settings}}); err != nil {
		return fmt.Errorf("encode failover settings: %w", err)
	}
	return patchGroup(ctx, g, string(raw))
}

// whole tells why a group is not whole: ready, every site in its place, all of them counted.
func whole(group *v1alpha1.MysqlFailoverGroup) error {
	all := fmt.Sprintf("%d/%d", len(group.Spec.Sites), len(group.Spec.Sites))
	if err := settled(group); err != nil {
		return err
	}
	if len(diverged(group)) > 0 || group.Status.ReadySites != all ||
		!meta.IsStatusConditionTrue(group.Status.Conditions, v1alpha1.ConditionReady) {
		return fmt.Errorf("%s sites are ready; %s", group.Status.ReadySites, stage.Describe(group))
	}
	return nil
}

// calm tells why replicas have not caught up: what an earlier scenario left in their relay logs is none of the next one's.
func calm(group *v1alpha1.MysqlFailoverGroup) error {
	if lag, err := time.ParseDuration(group.Status.ReplicationLag); err != nil || lag > 2*time.Second {
		return fmt.Errorf("replicas are %q behind", group.Status.ReplicationLag)
	}
	return nil
}

// settled tells why a group is still on its way: not every site is in its place or held.
func settled(group *v1alpha1.MysqlFailoverGroup) error {
	st := group.Status
	if st.ActiveSite == "" || st.Transition != nil {
		return errors.New(stage.Describe(group))
	}
	for _, site := range group.Spec.Sites {
		i := slices.IndexFunc(st.Sites, func(s v1alpha1.SiteStatus) bool { return s.Name == site.Name })
		if i < 0 {
			return errors.New(stage.Describe(group))
		}
		held := st.Sites[i].State == v1alpha1.SiteDiverged && st.Sites[i].Errant != ""
		if st.Sites[i].State != v1alpha1.SitePrimary && st.Sites[i].State != v1alpha1.SiteReplica && !held {
			return errors.New(stage.Describe(group))
		}
	}
	return nil
}

// diverged are the sites that are held for a person.
func diverged(group *v1alpha1.MysqlFailoverGroup) []string {
	var names []string
	for _, site := range group.Status.Sites {
		if site.State == v1alpha1.SiteDiverged {
			names = append(names, site.Name)
		}
	}
	return names
}
