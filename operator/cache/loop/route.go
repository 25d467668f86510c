// SPDX-License-Identifier: Apache-2.0

package loop

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/mysql-mfg/mfg/api/v1alpha1"
	"github.com/mysql-mfg/mfg/operator/cache"
)

// route is what this loop wrote to the Service for applications, while the manager's cache does not show it yet.
type route struct {
	site, version string
	at            time.Time
}

// selector is that of the Service for applications: by the labels that this loop gives, or, around a move, of one site.
func selector(group, site string) map[string]string {
	if site == cache.ByLabels {
		return v1alpha1.CacheSelector(group)
	}
	return map[string]string{v1alpha1.LabelName: v1alpha1.NameCache, v1alpha1.LabelGroup: group, v1alpha1.LabelSite: site}
}

// routed is where the Service for applications leads.
func (l *loop) routed(ctx context.Context, group *v1alpha1.MysqlFailoverGroup) string {
	s := &corev1.Service{}
	if err := l.m.Client.Get(ctx, client.ObjectKey{Namespace: group.Namespace, Name: v1alpha1.CacheService(group.Name)}, s, client.UnsafeDisableDeepCopy); err != nil {
		return cache.ByLabels // there is none that could lead anywhere, or it is looked at again
	}
	if w := l.wrote; w.version != "" && s.ResourceVersion != w.version && time.Since(w.at) < apiTimeout {
		return w.site
	}
	for _, site := range []string{cache.ByLabels, s.Spec.Selector[v1alpha1.LabelSite]} {
		if maps.Equal(s.Spec.Selector, selector(group.Name, site)) {
			return site
		}
	}
	return cache.NoRoute
}

// route points the Service for applications at a site, or at the labels. Without the Service nobody is led anywhere, and the caches are
// looked after all the same.
func (l *loop) route(ctx context.Context, k look, site string) error {
	name := client.ObjectKey{Namespace: k.group.Namespace, Name: v1alpha1.CacheService(k.group.Name)}
	if err := l.m.Client.Get(ctx, name, &corev1.Service{}, client.UnsafeDisableDeepCopy); apierrors.IsNotFound(err) {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, apiTimeout)
	defer cancel()
	// The whole of it is replaced: a key that somebody else added would keep every pod out.
	patch, err := json.Marshal([]map[string]any{{"op": "add", "path": "/spec/selector", "value": selector(k.group.Name, site)}})
	if err != nil {
		return fmt.Errorf("encode selector: %w", err)
	}
	written := &corev1.Service{}
	written.Namespace, written.Name = name.Namespace, name.Name
	if err := l.m.Client.Patch(ctx, written, client.RawPatch(types.JSONPatchType, patch), client.FieldOwner(v1alpha1.ManagerCache)); err != nil {
		return err
	}
	l.wrote = route{site, written.ResourceVersion, time.Now()}
	for other, link := range l.links {
		if site != cache.ByLabels && other != site {
			link.offAt = l.wrote.at
		}
	}
	return nil
}
