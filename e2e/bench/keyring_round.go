// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/mysql-mfg/mfg/api/v1alpha1"
	"github.com/mysql-mfg/mfg/e2e/demo/stage"
)

// rotationLimit is how long a site may take from the annotation until it is sealed again.
const rotationLimit = 10 * time.Minute

// round makes a new encrypted group and rotates one of its sites. Nothing else runs on the lab meanwhile.
func (k *keyringBench) round(ctx context.Context) error {
	for _, a := range append(slices.Clone(arms), arm{namespace: namespace}) {
		g := &stage.Group{Stage: k.stage, Namespace: a.namespace, Name: group}
		if err := g.Delete(ctx); err != nil {
			return err
		}
	}
	began := metav1.Now()
	g, err := k.stage.NewGroup(ctx, arms[1].namespace, group, arms[1].spec())
	if err != nil {
		return err
	}
	seen := newTimeline(began.Time)
	seconds, err := seen.follow(ctx, g, bringUp, allSealed)
	if err != nil {
		g.Diagnose(context.WithoutCancel(ctx), "bench-keyring")
		return err
	}
	k.figures.BringUp = &bringUpFigures{
		origin: k.origin(), AppliedToSealedSeconds: seconds, Sites: seen.sites(),
		Target: limited("appliedToSealedSeconds", sealedLimit, seconds),
	}
	k.stage.Say("every site was sealed %.1f s after the group was applied", seconds)
	if err := k.write(); err != nil {
		return err
	}
	return k.rotation(ctx, g)
}

// rotation has the keyring of a replica rotated.
func (k *keyringBench) rotation(ctx context.Context, g *stage.Group) error {
	now, err := g.AwaitReady(ctx, bringUp)
	if err != nil {
		return err
	}
	site, err := otherCandidate(now, now.Status.ActiveSite)
	if err != nil {
		return err
	}
	k.stage.Say("rotating the keyring of %s", site)
	seen := newTimeline(time.Now())
	if err := annotate(ctx, g, v1alpha1.AnnotationRotateKeyring, site); err != nil {
		return err
	}
	seconds, err := seen.follow(ctx, g, rotationLimit, func(group *v1alpha1.MysqlFailoverGroup) error {
		if group.Annotations[v1alpha1.AnnotationRotateKeyring] != "" {
			return errors.New("the order is not answered: " + phases(group))
		}
		return allSealed(group)
	})
	if err != nil {
		g.Diagnose(context.WithoutCancel(ctx), "bench-keyring")
		return err
	}
	after, err := g.Get(ctx)
	if err != nil {
		return err
	}
	if last := after.Status.LastRequest(v1alpha1.RequestRotateKeyring); last == nil || last.Target != site || last.Outcome != v1alpha1.RequestDone {
		return fmt.Errorf("the rotation was answered: %+v", last)
	}
	for _, s := range seen.sites() {
		if s.Site == site {
			k.figures.Rotation = &rotationFigures{origin: k.origin(), OrderedToAnsweredSeconds: seconds, siteSteps: s}
		}
	}
	k.stage.Say("%s was sealed again %.1f s after the order", site, seconds)
	return nil
}
