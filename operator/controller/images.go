// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"context"
	"fmt"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/mysql-mfg/mfg/api/v1alpha1"
	"github.com/mysql-mfg/mfg/operator/recipients"
	"github.com/mysql-mfg/mfg/operator/render"
	"github.com/mysql-mfg/mfg/operator/report/events"
	"github.com/mysql-mfg/mfg/operator/restoring"
	"github.com/mysql-mfg/mfg/operator/scope"
)

var (
	eventImageNotAllowed    = events.Warning(v1alpha1.ReasonImageNotAllowed, "Refuse")
	eventRecipientMalformed = events.Warning(v1alpha1.ReasonRecipientMalformed, "Refuse")
)

// wanted returns the sites' Deployments as they should be. If the installation does not allow the image, an existing site keeps
// its present one, whatever else changes about it, so that it can always be updated, sealed and promoted; a site that does not
// exist is not made. If the archive cannot be encrypted for whom it should, the archiver keeps its present recipients.
func (r *Reconciler) wanted(ctx context.Context, s *scope.Scope) (map[string]*appsv1.Deployment, error) {
	want := map[string]*appsv1.Deployment{}
	malformed, allowed := recipients.Refusal(&s.Group.Spec), r.Limits.AllowsImage(s.Group.Spec.Image)
	for _, site := range s.Group.Spec.Sites {
		in := s.In
		if malformed != "" || !allowed {
			live, err := r.inPlace(ctx, s, site)
			if err != nil {
				return nil, err
			}
			in.Group = recipients.Usable(s.Group, live).DeepCopy()
			if !allowed {
				in.Group.Spec.Image = imageInPlace(s, live, site)
			}
		}
		if in.Group.Spec.Image == "" && !allowed {
			continue
		}
		want[site.Name] = restoring.Deployment(s, in, site)
	}
	text := ""
	if !allowed {
		text = fmt.Sprintf("spec.image %s is not among the images that the operator may run (tenants.allowedImages of its chart: %s): sites keep the image that they "+
			"have, and new ones are not made; set an image that is allowed", s.Group.Spec.Image, strings.Join(r.Limits.Images, ", "))
	}
	refuse(r.base, s, eventImageNotAllowed, text)
	refuse(r.base, s, eventRecipientMalformed, malformed)
	return want, nil
}

// refuse tells what the specification asks for in vain, by the condition and an event; with an empty text that it does not, any more.
func refuse(b *scope.Base, s *scope.Scope, e events.Event, text string) {
	if text != "" {
		s.Refuse(e.Reason, text)
	}
	b.Say(s, "", e, text)
}

// inPlace is a site's Deployment, read live because the cache keeps no templates; nil if there is none.
func (r *Reconciler) inPlace(ctx context.Context, s *scope.Scope, site v1alpha1.Site) (*appsv1.Deployment, error) {
	if s.Deployments[site.Name] == nil {
		return nil, nil
	}
	d := &appsv1.Deployment{}
	if err := r.Live.Get(ctx, client.ObjectKeyFromObject(s.Deployments[site.Name]), d); client.IgnoreNotFound(err) != nil {
		return nil, fmt.Errorf("read the Deployment of %s: %w", site.Name, err)
	}
	return d, nil
}

// imageInPlace is the MySQL image of a site's Deployment. Without a Deployment it is the last image of the site's pod; empty if there
// never was one.
func imageInPlace(s *scope.Scope, live *appsv1.Deployment, site v1alpha1.Site) string {
	if live != nil {
		for _, c := range live.Spec.Template.Spec.Containers {
			if c.Name == render.ContainerMySQL {
				return c.Image
			}
		}
	}
	for _, status := range s.Group.Status.Sites {
		if status.Name == site.Name {
			return status.Image
		}
	}
	return ""
}
