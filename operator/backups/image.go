// SPDX-License-Identifier: Apache-2.0

package backups

import (
	"context"
	"fmt"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/mysql-mfg/mfg/api/v1alpha1"
	"github.com/mysql-mfg/mfg/operator/backupjob"
	"github.com/mysql-mfg/mfg/operator/render"
)

// allowed returns the Job with an image that may run. Its pod has the credentials of the storage and a password of the group mounted, so no
// image gets there that no site may run. As with sites, a refusal takes nothing away from a running group: its backups are made with the
// image that its sites have. Without one there is no Job.
func (b *Backups) allowed(ctx context.Context, job backupjob.Job) (backupjob.Job, error) {
	if b.Limits.AllowsImage(job.Group.Spec.Image) {
		return job, nil
	}
	image, err := b.imageInPlace(ctx, job.Group, job.Site.Name)
	if err != nil {
		return job, err
	}
	if image == "" {
		return job, fmt.Errorf("spec.image %s is not among the images that the operator may run (tenants.allowedImages of its chart: %s), and no site has another: "+
			"set an image that is allowed", job.Group.Spec.Image, strings.Join(b.Limits.Images, ", "))
	}
	job.Group = job.Group.DeepCopy()
	job.Group.Spec.Image = image
	return job, nil
}

// imageInPlace is the MySQL image of a site's Deployment: of the named one, or else of the first that has one. It is read live, because the
// cache keeps no templates. Not that of a status, which more people may change.
func (b *Backups) imageInPlace(ctx context.Context, group *v1alpha1.MysqlFailoverGroup, first string) (string, error) {
	names := []string{first}
	for _, site := range group.Spec.Sites {
		names = append(names, site.Name)
	}
	for _, name := range names {
		if name == "" {
			continue
		}
		d := &appsv1.Deployment{}
		if err := b.Live.Get(ctx, types.NamespacedName{Namespace: group.Namespace, Name: v1alpha1.SiteName(group.Name, name)}, d); client.IgnoreNotFound(err) != nil {
			return "", fmt.Errorf("read the image of %s: %w", name, err)
		}
		for _, c := range d.Spec.Template.Spec.Containers {
			if c.Name == render.ContainerMySQL {
				return c.Image, nil
			}
		}
	}
	return "", nil
}
