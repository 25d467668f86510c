// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"time"

	"github.com/mysql-mfg/mfg/api/v1alpha1"
	"github.com/mysql-mfg/mfg/e2e/demo/stage"
)

// timeline notes what status says of each site's keyring, whenever that changes.
type timeline struct {
	began time.Time
	names []string
	steps map[string][]keyringStep
}

func newTimeline(began time.Time) *timeline {
	return &timeline{began: began, steps: map[string][]keyringStep{}}
}

// note takes what status says at a moment.
func (l *timeline) note(group *v1alpha1.MysqlFailoverGroup, at time.Time) {
	if group.Status.EncryptionAtRest == nil {
		return
	}
	for _, s := range group.Status.EncryptionAtRest.Sites {
		if s.Phase == "" {
			continue
		}
		step := keyringStep{
			AtSeconds: round(at.Sub(l.began).Seconds()), Phase: s.Phase, Work: s.Work, Stage: s.Stage, Rotated: s.Rotated, Version: s.KeyringVersion,
		}
		before, known := l.steps[s.Name]
		if !known {
			l.names = append(l.names, s.Name)
		} else if last := before[len(before)-1]; sameStep(last, step) {
			continue
		}
		l.steps[s.Name] = append(before, step)
	}
}

func sameStep(a, b keyringStep) bool {
	b.AtSeconds = a.AtSeconds
	return a == b
}

// follow notes until a check says nothing against the group, and tells when that was.
func (l *timeline) follow(ctx context.Context, g *stage.Group, limit time.Duration, check func(*v1alpha1.MysqlFailoverGroup) error) (float64, error) {
	var at time.Time
	_, err := g.Await(ctx, limit, "every keyring to be sealed", func(group *v1alpha1.MysqlFailoverGroup) error {
		at = time.Now()
		l.note(group, at)
		return check(group)
	})
	return round(at.Sub(l.began).Seconds()), err
}

// sites are the steps of each site, in the order of the specification.
func (l *timeline) sites() []siteSteps {
	var all []siteSteps
	for _, name := range l.names {
		s := siteSteps{Site: name, Steps: l.steps[name]}
		s.mark()
		all = append(all, s)
	}
	return all
}
