// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"context"
	"fmt"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/mysql-mfg/mfg/api/v1alpha1"
	"github.com/mysql-mfg/mfg/operator/render"
	"github.com/mysql-mfg/mfg/operator/report/events"
	"github.com/mysql-mfg/mfg/operator/restoring"
	"github.com/mysql-mfg/mfg/operator/scope"
)

var eventImageNotAllowed = events.Warning(v1alpha1.ReasonImageNotAllowed, "Refuse")

// wanted returns the sites' Deployments as they should be. If the installation does not allow the image, an existing site keeps
// its present one, whatever else changes about it, so that it can always be updated, sealed and promoted; a site that does not
// exist is not made.
func (r *Reconciler) wanted(ctx context.Context, s *scope.Scope) (map[string]*appsv1.Deployment, error) {
	want := map[string]*appsv1.Deployment{}
	if r.Limits.AllowsImage(s.Group.Spec.Image) {
		r.base.Say(s, "", eventImageNotAllowed, "")
		for _, site := range s.Group.Spec.Sites {
			want[site.Name] = restoring.Deployment(s, s.In, site)
		}
		return want, nil
	}
	for _, site := range s.Group.Spec.Sites {
		image, err := r.imageInPlace(ctx, s, site)
		if err != nil {
			return nil, err
		}
		if image == "" {
			continue
		}
		in := s.In
		in.Group = s.Group.DeepCopy()
		in.Group.Spec.Image = image
		want[site.Name] = restoring.Deployment(s, in, site)
	}
	text := fmt.Sprintf("spec.image %s is not among the images that the operator may run (tenants.allowedImages of its chart: %s): sites keep the image that they "+
		"have, and new ones are not made; set an image that is allowed", s.Group.Spec.Image, strings.Join(r.Limits.Images, ", "))
	s.Refuse(v1alpha1.ReasonImageNotAllowed, text)
	r.base.Say(s, "", eventImageNotAllowed, text)
	return want, nil
}

// imageInPlace is the MySQL image of a site's Deployment, read live because the cache keeps no templates. Without a
// Deployment it is the last image of the site's pod; empty if there never was one.
func (r *Reconciler) imageInPlace(ctx context.Context, s *scope.Scope, site v1alpha1.Site) (string, error) {
	if s.Deployments[site.Name] != nil {
		d := &appsv1.Deployment{}
		err := r.Live.Get(ctx, client.ObjectKeyFromObject(s.Deployments[site.Name]), d)
		if client.IgnoreNotFound(err) != nil {
			return "", fmt.Errorf("read the image of %s: %w", site.Name, err)
		}
		for _, c := range d.Spec.Template.Spec.Containers {
			if c.Name == render.ContainerMySQL {
				return c.Image, nil
			}
		}
	}
	for _, status := range s.Group.Status.Sites {
		if status.Name == site.Name {
			return status.Image, nil
		}
	}
	return "", nil
}
