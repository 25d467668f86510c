// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"syscall"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/mysql-mfg/mfg/api/v1alpha1"
	"github.com/mysql-mfg/mfg/e2e/demo/stage"
)

// The primary, or its successor, dies while something else is under way.
var deathScenarios = []Scenario{
	{
		Name:       "death-during-clone",
		Proves:     "A primary that dies while a replica is being cloned is replaced, and the clone is finished from its successor.",
		Invariants: []string{"I1", "I2", "I7"}, Role: moves, Play: deathDuringClone,
	},
	{
		Name:       "death-during-update",
		Proves:     "A primary that dies during an ordered update is replaced at once, and the update goes on to its end.",
		Invariants: []string{"I1", "I2", "I7"}, Play: deathDuringUpdate,
	},
	{
		Name:       "death-during-planned",
		Proves:     "A primary that dies in the middle of a planned failover leaves exactly one site open, with every acknowledged row or a report.",
		Invariants: []string{"I1", "I2", "I7", "I9"}, Role: moves, Play: deathDuringPlanned,
	},
	{
		Name:       "target-death-during-planned",
		Proves:     "When the target of a planned failover stops answering, the old primary is open again, or the role has moved; nothing is lost either way.",
		Invariants: []string{"I1", "I2"}, Lossless: true, Play: targetDeath,
	},
	{
		Name:       "death-while-a-new-site-waits",
		Proves:     "A primary whose node is lost is replaced although a new site has no node yet: it has nobody to vouch for.",
		Invariants: []string{"I1", "I2", "I4", "I7"}, Role: moves, Play: deathWhileANewSiteWaits,
	},
}

func deathWhileANewSiteWaits(ctx context.Context, s *Scene) error {
	const name = "north"
	if err := s.Fault(ctx, "a new site "+name+", for which there is no node", func(ctx context.Context) error {
		return s.resite(ctx, func(sites []v1alpha1.Site) []v1alpha1.Site {
			return append(sites, v1alpha1.Site{Name: name, Role: v1alpha1.PrimaryCandidate, NodeSelector: map[string]string{corev1.LabelHostname: "nowhere"}})
		})
	}, func(ctx context.Context) error {
		return s.resite(ctx, func(sites []v1alpha1.Site) []v1alpha1.Site {
			return slices.DeleteFunc(sites, func(site v1alpha1.Site) bool { return site.Name == name })
		})
	}); err != nil {
		return err
	}
	if err := s.Must(ctx, name+" waits", func(group *v1alpha1.MysqlFailoverGroup) error {
		if siteState(group, name) == "" {
			return errors.New(stage.Describe(group))
		}
		return nil
	}); err != nil {
		return err
	}
	if err := s.PowerOff(ctx, s.Active); err != nil {
		return err
	}
	return s.MustMove(ctx)
}

// resite changes spec.sites.
func (s *Scene) resite(ctx context.Context, change func([]v1alpha1.Site) []v1alpha1.Site) error {
	group, err := s.Get(ctx)
	if err != nil {
		return err
	}
	changed := group.DeepCopy()
	changed.Spec.Sites = change(changed.Spec.Sites)
	if err := s.Kube.Patch(ctx, changed, client.MergeFrom(group)); err != nil {
		return fmt.Errorf("patch spec.sites: %w", err)
	}
	return nil
}

func deathDuringClone(ctx context.Context, s *Scene) error {
	// So slowly that there is a middle. The setting goes with the data.
	for _, site := range []string{s.Active, s.DR, s.Candidate} {
		if _, err := s.Query(ctx, site, "SET GLOBAL clone_max_data_bandwidth=8"); err != nil {
			return err
		}
	}
	if err := s.Annotate(ctx, v1alpha1.AnnotationRecloneSite, s.DR+":confirm"); err != nil {
		return err
	}
	if err := s.Must(ctx, s.DR+" is being cloned", func(group *v1alpha1.MysqlFailoverGroup) error {
		if siteState(group, s.DR) != v1alpha1.SiteCloning {
			return errors.New(stage.Describe(group))
		}
		return nil
	}); err != nil {
		return err
	}
	if err := s.PowerOff(ctx, s.Active); err != nil {
		return err
	}
	if err := s.MustMove(ctx); err != nil {
		return err
	}
	_, err := s.Query(ctx, s.Candidate, "SET GLOBAL clone_max_data_bandwidth=0")
	return err
}

func siteState(group *v1alpha1.MysqlFailoverGroup, site string) v1alpha1.SiteState {
	i := slices.IndexFunc(group.Status.Sites, func(s v1alpha1.SiteStatus) bool { return s.Name == site })
	if i < 0 {
		return ""
	}
	return group.Status.Sites[i].State
}

func deathDuringUpdate(ctx context.Context, s *Scene) error {
	replaced := map[string]types.UID{}
	for _, site := range s.Others(s.Active) {
		pod, err := s.Pod(ctx, site)
		if err != nil {
			return err
		}
		replaced[site] = pod.UID
	}
	// Another value each time, so that there is always something to update.
	size := 20000 + time.Now().Unix()%1000
	if err := s.Patch(ctx, fmt.Sprintf(`{"spec":{"mysqlConf":{"wait_timeout":"%d"}}}`, size)); err != nil {
		return err
	}
	if err := s.firstReplaced(ctx, replaced); err != nil {
		return err
	}
	if err := s.PowerOff(ctx, s.Active); err != nil {
		return err
	}
	if err := s.MustWrite(ctx); err != nil {
		return err
	}
	if err := s.Heal(ctx); err != nil {
		return err
	}
	// The new active site is the last to be updated, and gives its role away first: to a site that a person may have to
	// decide about before.
	if err := s.decide(ctx); err != nil {
		return err
	}
	return s.updated(ctx, size)
}

// decide has the data of sites that are held thrown away, as a person would order.
func (s *Scene) decide(ctx context.Context) error {
	group, err := s.Await(ctx, recovery, "every site to be in its place or held", settled)
	if err != nil {
		return err
	}
	for _, site := range diverged(group) {
		if err := reclone(ctx, s.Group, site); err != nil {
			return err
		}
	}
	return nil
}

// firstReplaced waits until one of these pods is on its way out.
func (s *Scene) firstReplaced(ctx context.Context, replaced map[string]types.UID) error {
	s.Say("  expect: the first replica is updated")
	return stage.Poll(ctx, recovery, "the first replica to be updated", func(ctx context.Context) error {
		pods, err := s.Pods(ctx)
		if err != nil {
			return err
		}
		for site, old := range replaced {
			if !slices.ContainsFunc(pods, func(p corev1.Pod) bool { return p.UID == old && p.DeletionTimestamp == nil }) {
				s.Say("  it is %s", site)
				return nil
			}
		}
		return errors.New("the replicas have their old pods")
	})
}

// updated waits until the setting is in force on every site.
func (s *Scene) updated(ctx context.Context, size int64) error {
	s.Say("  expect: every site has the new setting")
	return ask(ctx, healLimit, "the update to reach every site", func(ctx context.Context) error {
		for _, site := range stage.Sites {
			if got, err := s.Query(ctx, site, "SELECT @@global.wait_timeout"); err != nil || got != fmt.Sprint(size) {
				return errors.Join(err, fmt.Errorf("wait_timeout of %s is %s", site, got))
			}
		}
		return nil
	})
}

// lockAtHome has a client hold a lock: the fence takes long enough to have a middle.
func lockAtHome(ctx context.Context, s *Scene) error {
	if _, err := s.Query(ctx, s.Active, "CREATE TABLE IF NOT EXISTS app.locked (id INT PRIMARY KEY); GRANT LOCK TABLES ON app.* TO 'app'@'%'"); err != nil {
		return err
	}
	return s.Hold(ctx, "a client holds LOCK TABLES on "+s.Active, s.Active, "LOCK TABLES app.locked WRITE")
}

// wentBack fails unless the planned failover was reverted, and the old active site is it again.
func wentBack(ctx context.Context, s *Scene) error {
	group, err := s.Get(ctx)
	if err != nil {
		return err
	}
	if p := group.Status.PlannedFailover; p == nil || p.Phase != v1alpha1.PlannedReverted || group.Status.ActiveSite != s.Active {
		return fmt.Errorf("the planned failover was to be reverted, and nothing is proven: %+v; %s", p, stage.Describe(group))
	}
	return nil
}

func deathDuringPlanned(ctx context.Context, s *Scene) error {
	if err := lockAtHome(ctx, s); err != nil {
		return err
	}
	if err := s.PlanOnly(ctx, s.Candidate); err != nil {
		return err
	}
	if err := s.awaitMoving(ctx); err != nil {
		return err
	}
	if err := s.PowerOff(ctx, s.Active); err != nil {
		return err
	}
	return s.MustMove(ctx)
}

func targetDeath(ctx context.Context, s *Scene) error {
	pod, err := s.Pod(ctx, s.Candidate)
	if err != nil {
		return err
	}
	pid, err := stage.FindIn(pod, mysqld)
	if err != nil {
		return err
	}
	if err := s.PlanOnly(ctx, s.Candidate); err != nil {
		return err
	}
	if err := s.awaitMoving(ctx); err != nil {
		return err
	}
	if err := s.Fault(ctx, "mysqld of "+s.Candidate+" is stopped",
		func(context.Context) error { return send(pid, syscall.SIGSTOP) },
		func(context.Context) error { return send(pid, syscall.SIGCONT) }); err != nil {
		return err
	}
	if err := s.Must(ctx, "the planned failover has an outcome", func(group *v1alpha1.MysqlFailoverGroup) error {
		p := group.Status.PlannedFailover
		if p == nil || p.Phase == v1alpha1.PlannedWaiting || p.Phase == v1alpha1.PlannedMoving {
			return fmt.Errorf("it is %+v", p)
		}
		return nil
	}); err != nil {
		return err
	}
	return s.MustWrite(ctx)
}
