// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/mysql-mfg/mfg/api/v1alpha1"
	"github.com/mysql-mfg/mfg/e2e/demo/stage"
	"github.com/mysql-mfg/mfg/e2e/writer/journal"
	"github.com/mysql-mfg/mfg/e2e/writer/load"
)

// How long to wait for what must come. None of it is a judgement: it is when waiting has no more sense.
const (
	patience  = 90 * time.Second
	recovery  = 3 * time.Minute
	healLimit = 4 * time.Minute
)

// Scene is a group with writers on every site, and the faults that are in force.
type Scene struct {
	*stage.Group
	W *stage.Witnesses
	// Active, Candidate and DR are the sites by what they were at the start.
	Active, Candidate, DR string

	faults []fault
	// began is when the first fault was made, on the machine's monotonic clock.
	began time.Duration
	// alone is since when nobody has answered the active site, until faults are healed: its lease counts from then.
	alone time.Time
	// lives are the programs of the active site that are watched.
	lives map[stage.Program]*life
	// foreign counts transactions that the scenario itself made on the active site and that a failover may lose.
	foreign int64
	// asked is when a planned failover was ordered.
	asked time.Time
	// sessions keeps sessions in the group's cache, and promotions gathers what is on record of it, if the scenario has one.
	sessions   *stage.ServiceWriter
	promotions *stage.CacheWatch
	// keepsFrom is from when on no session may be lost, on the machine's monotonic clock; 0 is no such moment.
	keepsFrom time.Duration
}

// fault is one that is in force.
type fault struct {
	name string
	undo func(context.Context) error
}

func newScene(g *stage.Group, w *stage.Witnesses) *Scene {
	s := &Scene{Group: g, W: w, Active: w.Before.Status.ActiveSite, lives: map[stage.Program]*life{}}
	for _, site := range w.Before.Spec.Sites {
		switch {
		case site.Name == s.Active:
		case site.Role == v1alpha1.DROnly:
			s.DR = site.Name
		default:
			s.Candidate = site.Name
		}
	}
	return s
}

// Others are all sites but the one.
func (s *Scene) Others(site string) []string {
	var names []string
	for _, other := range s.W.Before.Spec.Sites {
		if other.Name != site {
			names = append(names, other.Name)
		}
	}
	return names
}

// Fault makes a fault. How to undo it is noted first, so that one that fails half-way is undone, too.
func (s *Scene) Fault(ctx context.Context, name string, do, undo func(context.Context) error) error {
	s.Say("  fault: %s", name)
	if undo != nil {
		s.faults = append(s.faults, fault{name: name, undo: undo})
	}
	if s.began == 0 {
		s.began = load.Now()
	}
	if err := do(ctx); err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	return nil
}

// Heal takes back all faults that are in force, the last one first.
func (s *Scene) Heal(ctx context.Context) error {
	var errs []error
	for len(s.faults) > 0 {
		last := len(s.faults) - 1
		f := s.faults[last]
		s.faults = s.faults[:last]
		s.Say("  heal: %s", f.name)
		if err := f.undo(ctx); err != nil {
			errs = append(errs, fmt.Errorf("take back %q: %w", f.name, err))
		}
	}
	return errors.Join(errs...)
}

// healLast takes back the last fault only.
func (s *Scene) healLast(ctx context.Context) error {
	earlier := s.faults[:len(s.faults)-1]
	s.faults = s.faults[len(s.faults)-1:]
	err := s.Heal(ctx)
	s.faults = earlier
	return err
}

// Must waits until the group is as it must be.
func (s *Scene) Must(ctx context.Context, what string, check func(*v1alpha1.MysqlFailoverGroup) error) error {
	s.Say("  expect: %s", what)
	_, err := s.Await(ctx, patience, what, check)
	return err
}

// MustMove waits until another candidate has taken over and rows go through the Service again.
func (s *Scene) MustMove(ctx context.Context) error {
	if err := s.Must(ctx, s.Candidate+" takes over", s.isActive(s.Candidate)); err != nil {
		return err
	}
	return s.MustWrite(ctx)
}

func (s *Scene) isActive(site string) func(*v1alpha1.MysqlFailoverGroup) error {
	return func(group *v1alpha1.MysqlFailoverGroup) error {
		if group.Status.ActiveSite != site || group.Status.Transition != nil {
			return errors.New(stage.Describe(group))
		}
		return nil
	}
}

// MustWrite waits until a row that is sent from now on went through the Service.
func (s *Scene) MustWrite(ctx context.Context) error {
	s.Say("  expect: clients of the primary Service write")
	return s.W.Service.AwaitCommit(ctx, recovery)
}

// MustAccept waits until a site acknowledges a row that is sent to it directly from now on.
func (s *Scene) MustAccept(ctx context.Context, site string) error {
	s.Say("  expect: %s goes on accepting commits", site)
	from := load.Now()
	return stage.Poll(ctx, 15*time.Second, "a commit on "+site, func(context.Context) error {
		if s.lastCommit(site) > from {
			return nil
		}
		return errors.New("there is none")
	})
}

// lastCommit is when the last row that a site acknowledged to a direct writer was sent, as far as is known by now.
func (s *Scene) lastCommit(site string) time.Duration {
	var last time.Duration
	for _, j := range s.W.Probes.Peek(site) {
		for _, c := range j.Commits {
			last = max(last, c.Start)
		}
	}
	return last
}

// MustKeep makes sure that for a time the active site stays what it is and accepts commits to the end.
func (s *Scene) MustKeep(ctx context.Context, d time.Duration) error {
	s.Say("  expect: for %s %s stays active and accepts commits", d, s.Active)
	if err := s.during(ctx, d, s.unmoved); err != nil {
		return err
	}
	return s.MustAccept(ctx, s.Active)
}

// MustBeShut makes sure that for a time none of these sites accepts a single commit, although it is asked to.
func (s *Scene) MustBeShut(ctx context.Context, d time.Duration, sites ...string) error {
	s.Say("  expect: for %s nobody writes on %v", d, sites)
	from := load.Now()
	if err := s.during(ctx, d, func(context.Context) error {
		for _, site := range sites {
			if at := s.lastCommit(site); at > from {
				return fmt.Errorf("%s accepted a commit", site)
			}
		}
		return nil
	}); err != nil {
		return err
	}
	return checkTried(s.W.Probes.Peek, from, sites...)
}

// checkTried makes sure that every site was knocked at after a moment: one that nobody knocks at looks shut.
func checkTried(peek func(site string) []journal.Journal, from time.Duration, sites ...string) error {
	for _, site := range sites {
		if !tried(peek(site), from) {
			return fmt.Errorf("no writer tried %s in that time: nothing is proven", site)
		}
	}
	return nil
}

// tried tells whether writers were turned away after a moment, or never learned what came of a row.
func tried(journals []journal.Journal, from time.Duration) bool {
	return slices.ContainsFunc(journals, func(j journal.Journal) bool {
		return slices.ContainsFunc(j.States, func(r journal.State) bool { return r.At > from }) ||
			slices.ContainsFunc(j.Unknown, func(a journal.Attempt) bool { return a.Start > from })
	})
}

// during checks over and over again for a time.
func (s *Scene) during(ctx context.Context, d time.Duration, check func(context.Context) error) error {
	for end := time.Now().Add(d); time.Now().Before(end); {
		if err := check(ctx); err != nil {
			return err
		}
		if err := pause(ctx, 500*time.Millisecond); err != nil {
			return err
		}
	}
	return nil
}

// unmoved tells if the role went elsewhere, be it by intent only.
func (s *Scene) unmoved(ctx context.Context) error {
	group, err := s.Get(ctx)
	if err != nil {
		return err
	}
	if group.Status.ActiveSite != s.Active || group.Status.Epoch != s.W.Before.Status.Epoch {
		return fmt.Errorf("the role was to stay with %s under epoch %d: %s", s.Active, s.W.Before.Status.Epoch, stage.Describe(group))
	}
	return nil
}

// mustBePrimary makes sure that the Service of writers leads to a site.
func (s *Scene) mustBePrimary(ctx context.Context, site string) error {
	var service corev1.Service
	if err := s.Kube.Get(ctx, client.ObjectKey{Namespace: s.Namespace, Name: v1alpha1.PrimaryService(s.Name)}, &service); err != nil {
		return fmt.Errorf("get primary Service: %w", err)
	}
	if got := service.Spec.Selector[v1alpha1.LabelSite]; got != site {
		return fmt.Errorf("the primary Service leads to %q, not to %s", got, site)
	}
	return nil
}

// mustServeReads makes sure that sites are in the Service of readers.
func (s *Scene) mustServeReads(ctx context.Context, sites ...string) error {
	s.Say("  expect: %v are read from", sites)
	for _, site := range sites {
		pod, err := s.Pod(ctx, site)
		if err != nil {
			return err
		}
		for _, label := range []string{v1alpha1.LabelHealthy, v1alpha1.LabelReadable} {
			if pod.Labels[label] != v1alpha1.HealthyYes {
				return fmt.Errorf("%s has label %s=%q: nobody reads from it", site, label, pod.Labels[label])
			}
		}
	}
	return nil
}

// MustBlock waits until a failover is due and kept back for one of these reasons.
func (s *Scene) MustBlock(ctx context.Context, reasons ...string) error {
	return s.Must(ctx, fmt.Sprintf("condition FailoverBlocked says %v", reasons), func(group *v1alpha1.MysqlFailoverGroup) error {
		c := meta.FindStatusCondition(group.Status.Conditions, v1alpha1.ConditionFailoverBlocked)
		if c == nil || c.Status != metav1.ConditionTrue || !slices.Contains(reasons, c.Reason) {
			return fmt.Errorf("FailoverBlocked is %+v; %s", c, stage.Describe(group))
		}
		if c.Message == "" {
			return errors.New("FailoverBlocked names no next step")
		}
		return nil
	})
}

// Annotate sets an annotation of the group, or takes it away.
func (s *Scene) Annotate(ctx context.Context, key, value string) error {
	if value != "" {
		s.Say("  order: %s=%s", key, value)
	}
	return annotate(ctx, s.Group, key, value)
}

func annotate(ctx context.Context, g *stage.Group, key, value string) error {
	quoted := "null"
	if value != "" {
		quoted = fmt.Sprintf("%q", value)
	}
	return patchGroup(ctx, g, fmt.Sprintf(`{"metadata":{"annotations":{%q:%s}}}`, key, quoted))
}

// Patch changes the group's spec.
func (s *Scene) Patch(ctx context.Context, merge string) error {
	s.Say("  order: %s", merge)
	return patchGroup(ctx, s.Group, merge)
}

func patchGroup(ctx context.Context, g *stage.Group, merge string) error {
	group := &v1alpha1.MysqlFailoverGroup{}
	group.Namespace, group.Name = g.Namespace, g.Name
	if err := g.Kube.Patch(ctx, group, client.RawPatch("application/merge-patch+json", []byte(merge))); err != nil {
		return fmt.Errorf("patch group %s: %w", g.Name, err)
	}
	return nil
}

// pause waits where time itself is what is tested.
func pause(ctx context.Context, d time.Duration) error {
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-time.After(d):
		return nil
	}
}

// PlanOnly orders a planned failover.
func (s *Scene) PlanOnly(ctx context.Context, to string) error {
	return s.Fault(ctx, "a planned failover to "+to+" is ordered", func(ctx context.Context) error {
		s.asked = time.Now()
		return s.Annotate(ctx, v1alpha1.AnnotationPlannedFailover, to)
	}, nil)
}

// outcome waits for the planned failover to a site to have an outcome, and compares it.
func (s *Scene) outcome(ctx context.Context, to string, want v1alpha1.PlannedPhase) error {
	var p *v1alpha1.PlannedFailoverStatus
	if err := s.Must(ctx, fmt.Sprintf("the planned failover to %s is %s", to, want), func(group *v1alpha1.MysqlFailoverGroup) error {
		p = group.Status.PlannedFailover
		if p == nil || p.To != to || p.FinishedAt == nil || p.FinishedAt.Time.Before(s.asked) || group.Annotations[v1alpha1.AnnotationPlannedFailover] != "" {
			return fmt.Errorf("it is %+v", p)
		}
		return nil
	}); err != nil {
		return err
	}
	if p.Phase != want {
		return fmt.Errorf("the planned failover to %s is %s (%s): %s", to, p.Phase, p.Reason, p.Message)
	}
	return nil
}

// awaitMoving looks closely for the moment at which a planned failover keeps writes out, or has had it.
func (s *Scene) awaitMoving(ctx context.Context) error {
	for end := time.Now().Add(patience); time.Now().Before(end); {
		group, err := s.Get(ctx)
		if err != nil {
			return err
		}
		p := group.Status.PlannedFailover
		if p != nil && p.Phase != v1alpha1.PlannedWaiting && p.StartedAt != nil && group.Status.Epoch > s.W.Before.Status.Epoch {
			return nil
		}
		if p != nil && p.Phase == v1alpha1.PlannedRefused && p.FinishedAt != nil && p.FinishedAt.After(s.asked) {
			return fmt.Errorf("the planned failover was refused (%s): %s", p.Reason, p.Message)
		}
		if err := pause(ctx, 10*time.Millisecond); err != nil {
			return err
		}
	}
	return errors.New("the planned failover never began")
}
