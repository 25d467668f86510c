// SPDX-License-Identifier: Apache-2.0

package doctor

import (
	"context"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/mysql-mfg/mfg/api/v1alpha1"
	"github.com/mysql-mfg/mfg/api/wire"
	"github.com/mysql-mfg/mfg/kubectl-mfg/report"
)

// cacheStore looks at the cache store and what is around it. No finding keeps MySQL from failing over.
func cacheStore(ctx context.Context, w World) []Finding {
	c := report.CacheOf(w.Group, w.Group.Status.ActiveSite, w.Forecast)
	if c == nil {
		return nil
	}
	pods, unseen := cachePods(ctx, w)
	out := slices.Concat(cacheCondition(w, c), cacheService(ctx, w), cacheMasters(w, c, pods), unseen, cacheMemory(ctx, w, c, pods), cacheVolume(w), cacheCertificate(w))
	if unseen == nil {
		for _, s := range c.Sites {
			out = append(out, cacheOfSite(w, s, pods[s.Name])...)
		}
	}
	if len(out) == 0 {
		return one(OK, wire.Remedy{}, "the master is on %s, every other site has a copy, and Service %s leads to the master", c.MasterSite, v1alpha1.CacheService(w.Group.Name))
	}
	return out
}

// cacheCondition tells what the operator itself says, also of a Secret whose password it cannot use.
func cacheCondition(w World, c *report.Cache) []Finding {
	remedy := wire.Remedy{Command: fmt.Sprintf("kubectl mfg cache status %s -n %s", w.Group.Name, w.Group.Namespace)}
	switch {
	case c.Ready == nil:
		return one(Warn, remedy, "the operator has said nothing of the cache yet")
	case !*c.Ready:
		return one(Fail, remedy, "not ready: %s [%s]", c.Message, c.Reason)
	}
	return nil
}

// cacheService: without an address behind the Service applications have no cache, wherever the master is.
func cacheService(ctx context.Context, w World) []Finding {
	name := v1alpha1.CacheService(w.Group.Name)
	remedy := wire.Remedy{Text: "the operator labels the pod of the master; see which pods have " + v1alpha1.LabelCacheRole + "=" + string(v1alpha1.CacheMaster) + " and " + v1alpha1.LabelCacheTraffic + "=" + v1alpha1.CacheTrafficOn,
		Command: fmt.Sprintf("kubectl get pods -n %s -l %s --show-labels", w.Group.Namespace, cacheSelector(w.Group.Name, ""))}
	if _, err := w.Kube.CoreV1().Services(w.Group.Namespace).Get(ctx, name, metav1.GetOptions{}); apierrors.IsNotFound(err) {
		return one(Fail, wire.Remedy{Text: "the operator makes it", Command: "kubectl mfg events " + w.Group.Name + " -n " + w.Group.Namespace + " --warnings"}, "no Service %s: applications cannot reach the cache", name)
	} else if err != nil {
		return cannotSee(err, "get", "services", w.Group.Namespace)
	}
	slices, err := w.Kube.DiscoveryV1().EndpointSlices(w.Group.Namespace).List(ctx, metav1.ListOptions{LabelSelector: discoveryv1.LabelServiceName + "=" + name})
	if err != nil {
		return cannotSee(err, "list", "endpointslices.discovery.k8s.io", w.Group.Namespace)
	}
	ready := 0
	for _, s := range slices.Items {
		for _, e := range s.Endpoints {
			if e.Conditions.Ready == nil || *e.Conditions.Ready {
				ready += len(e.Addresses)
			}
		}
	}
	if ready == 0 {
		return one(Fail, remedy, "Service %s has no endpoint: applications cannot reach the cache", name)
	}
	return nil
}

// cacheMasters: two masters accept writes that cannot be merged.
func cacheMasters(w World, c *report.Cache, pods map[string][]corev1.Pod) []Finding {
	var labelled []string
	for site, all := range pods {
		for _, p := range all {
			if p.DeletionTimestamp == nil && p.Labels[v1alpha1.LabelCacheRole] == string(v1alpha1.CacheMaster) && p.Labels[v1alpha1.LabelCacheTraffic] == v1alpha1.CacheTrafficOn {
				labelled = append(labelled, site)
			}
		}
	}
	slices.Sort(labelled)
	remedy := wire.Remedy{Text: "the operator has all but one follow within seconds; if it stays so, see what it says", Command: fmt.Sprintf("kubectl mfg cache status %s -n %s", w.Group.Name, w.Group.Namespace)}
	switch masters := c.Masters(); {
	case len(labelled) > 1:
		return one(Fail, remedy, "two pods are labelled as the master that takes the traffic: %s", strings.Join(labelled, " and "))
	case len(masters) > 1:
		return one(Warn, remedy, "the caches of %s call themselves the master", strings.Join(masters, " and "))
	}
	return nil
}

func cacheSelector(group, site string) string {
	selector := v1alpha1.LabelGroup + "=" + group + "," + v1alpha1.LabelName + "=" + v1alpha1.NameCache
	if site != "" {
		selector += "," + v1alpha1.LabelSite + "=" + site
	}
	return selector
}

// cachePods returns the cache pods of the group by site, or why they cannot be seen.
func cachePods(ctx context.Context, w World) (map[string][]corev1.Pod, []Finding) {
	list, err := w.Kube.CoreV1().Pods(w.Group.Namespace).List(ctx, metav1.ListOptions{LabelSelector: cacheSelector(w.Group.Name, "")})
	if err != nil {
		return nil, cannotSee(err, "list", "pods", w.Group.Namespace)
	}
	found := map[string][]corev1.Pod{}
	for _, p := range list.Items {
		found[p.Labels[v1alpha1.LabelSite]] = append(found[p.Labels[v1alpha1.LabelSite]], p)
	}
	return found, nil
}

// cacheMemory: an engine that may hold more than its container or its node has is killed only once it is full.
func cacheMemory(ctx context.Context, w World, c *report.Cache, pods map[string][]corev1.Pod) []Finding {
	var out []Finding
	most := w.Group.Spec.Cache.MaxMemory
	if limit, set := w.Group.Spec.Cache.Resources.Limits[corev1.ResourceMemory]; set && limit.Cmp(most) <= 0 {
		out = append(out, one(Fail, wire.Remedy{Text: "raise spec.cache.resources.limits.memory to a quarter more than maxMemory, or leave it out"},
			"the memory limit %s leaves no room beside maxMemory %s: a cache that fills up is killed, with its sessions", limit.String(), most.String())...)
	}
	for _, s := range c.Sites {
		for _, p := range pods[s.Name] {
			if p.Spec.NodeName == "" {
				continue
			}
			node, err := w.Kube.CoreV1().Nodes().Get(ctx, p.Spec.NodeName, metav1.GetOptions{})
			if err != nil {
				return append(out, cannotSee(err, "get", "nodes", "")...)
			}
			if has, is := node.Status.Allocatable[corev1.ResourceMemory]; is && has.Cmp(most) <= 0 {
				out = append(out, one(Fail, wire.Remedy{Text: "lower spec.cache.maxMemory, or give the site a larger node"},
					"node %s of the cache of %s has %s for pods, maxMemory is %s", node.Name, s.Name, has.String(), most.String())...)
			}
		}
		if c.Full(s) {
			out = append(out, one(Warn, wire.Remedy{Text: "raise spec.cache.maxMemory, or give keys a shorter life; a full cache evicts keys or refuses writes, as its maxmemory-policy says"},
				"the cache of %s holds %s of %s", s.Name, report.Bytes(*s.UsedMemoryBytes), report.Bytes(c.MaxMemoryBytes))...)
		}
	}
	return out
}

// cacheVolume: an engine writes a snapshot beside the one before. Without room for both it keeps an old one, says nothing, and starts
// with that.
func cacheVolume(w World) []Finding {
	spec := w.Group.Spec.Cache
	if spec.Storage == nil {
		return nil
	}
	twice := spec.MaxMemory.DeepCopy()
	twice.Add(spec.MaxMemory)
	if spec.Storage.Size.Cmp(twice) >= 0 {
		return nil
	}
	return one(Warn, wire.Remedy{Text: "have spec.cache.storage.size at least " + twice.String() + ": set spec.cache.enabled to false, which removes all keys, wait until the cache pods are gone, and turn it on with the larger size"},
		"the volume of each cache has %s, less than twice maxMemory %s: a cache that fills up cannot write its snapshots, and restarts with old data", spec.Storage.Size.String(), spec.MaxMemory.String())
}
