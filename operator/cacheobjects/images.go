// SPDX-License-Identifier: Apache-2.0

package cacheobjects

import (
	"context"
	"fmt"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/mysql-mfg/mfg/api/v1alpha1"
	"github.com/mysql-mfg/mfg/operator/render"
)

// images are what the sites' caches are to run. One that the installation does not allow comes into no StatefulSet: a site keeps the image of its
// pod or, while it has none, that of its StatefulSet. A site of which neither is known is left out, and allowed is false: there are no new ones.
func (o *Objects) images(ctx context.Context, in render.Input, have objects, out *Result) (images map[string]string, allowed bool, err error) {
	image := render.CacheImage(in.Group.Spec.Cache)
	images, allowed = map[string]string{}, o.Limits.AllowsImage(image)
	if !allowed {
		out.Refused = append(out.Refused, Refusal{v1alpha1.ReasonImageNotAllowed, fmt.Sprintf("spec.cache.image %s is not among the images that the operator may run "+
			"(tenants.allowedImages of its chart: %s): cache pods keep the image that they have, and new ones are not made; set an image that is allowed",
			image, strings.Join(o.Limits.Images, ", "))})
	}
	for _, site := range in.Group.Spec.Sites {
		if images[site.Name] = image; allowed {
			continue
		}
		if images[site.Name], err = o.kept(ctx, have, site.Name); err != nil {
			return nil, false, err
		}
	}
	return images, allowed, nil
}

// kept is the image that the cache of a site has; empty if it has none.
func (o *Objects) kept(ctx context.Context, have objects, site string) (string, error) {
	if pod := have.pods[site]; pod != nil {
		return imageOf(&pod.Spec), nil
	}
	if have.sets[site] == nil {
		return "", nil
	}
	// The operator's cache holds no templates.
	set := &appsv1.StatefulSet{}
	if err := o.Live.Get(ctx, client.ObjectKeyFromObject(have.sets[site]), set); err != nil {
		return "", client.IgnoreNotFound(err)
	}
	return imageOf(&set.Spec.Template.Spec), nil
}

func imageOf(spec *corev1.PodSpec) string {
	for _, c := range spec.Containers {
		if c.Name == render.ContainerCache {
			return c.Image
		}
	}
	return ""
}

func withImage(in render.Input, site v1alpha1.Site, image string) *appsv1.StatefulSet {
	in.Group = in.Group.DeepCopy()
	in.Group.Spec.Cache.Image = image
	return render.CacheStatefulSet(in, site)
}
