// SPDX-License-Identifier: Apache-2.0

package loop

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"net"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/mysql-mfg/mfg/api/v1alpha1"
	"github.com/mysql-mfg/mfg/operator/cache"
	"github.com/mysql-mfg/mfg/operator/cache/engine"
)

// indexCache is the index by which the cache pods of a group are found.
const indexCache = "mfg.cache"

// Index makes the index by which the cache pods of a group are found. It is made once, before the manager starts.
func Index(ctx context.Context, indexer client.FieldIndexer) error {
	return indexer.IndexField(ctx, &corev1.Pod{}, indexCache, indexed)
}

func indexed(obj client.Object) []string {
	if obj.GetLabels()[v1alpha1.LabelName] != v1alpha1.NameCache {
		return nil
	}
	return []string{obj.GetLabels()[v1alpha1.LabelGroup]}
}

// link is what is kept of one site's cache between looks.
type link struct {
	uid    string
	target engine.Target
	engine Engine
	info   engine.Info
	// run is the name of the process that answered last, at infoAt, and beganAgain since when another one has answered under that name.
	run                string
	infoAt, beganAgain time.Time
	// written are labels that this loop wrote, and the version of the pod that has them.
	written            map[string]string
	version            string
	writtenAt          time.Time
	cutAt, offAt, onAt time.Time
	// stale is what of it is not as it should be, and for how long.
	stale stale
}

func (k *link) close() {
	if k.engine != nil {
		k.engine.Close()
		k.engine = nil
	}
}

// become points the link at a pod, and connects it again if anything about that has changed.
func (k *link) become(uid string, t engine.Target, dial func(engine.Target) Engine) {
	same := k.uid == uid && k.engine != nil && t.Addr == k.target.Addr && t.Engine == k.target.Engine &&
		slices.Equal(t.Passwords, k.target.Passwords) && sameTLS(k.target, t) && bytes.Equal(t.Certificate, k.target.Certificate)
	if same {
		return
	}
	k.close()
	if k.uid != uid {
		*k = link{uid: uid, stale: stale{asked: k.stale.asked, hungAt: k.stale.hungAt}}
	}
	k.target, k.engine = t, dial(t)
}

// sameTLS compares what certificates are verified against.
func sameTLS(a, b engine.Target) bool {
	if a.TLS == nil || b.TLS == nil {
		return a.TLS == b.TLS
	}
	return a.TLS.ServerName == b.TLS.ServerName && a.TLS.RootCAs.Equal(b.TLS.RootCAs)
}

// gather asks all caches at the same time. It takes little longer than askTimeout.
func (l *loop) gather(ctx context.Context, group *v1alpha1.MysqlFailoverGroup) (cache.Snapshot, map[string]*corev1.Pod) {
	pods := l.podsOf(ctx, group)
	s := cache.Snapshot{Policy: policy(group), MySQL: l.mysql(group), Status: l.durable, Request: request(group)}
	s.Pods, s.Route = sitesOf(group, pods), l.routed(ctx, group)
	for _, p := range s.Pods {
		if l.links[p.Site] == nil {
			l.links[p.Site] = &link{}
		}
	}
	var all sync.WaitGroup
	for i := range s.Pods {
		p := &s.Pods[i]
		all.Go(func() { l.ask(ctx, group, pods[p.Site], p) })
	}
	all.Wait()
	for site, k := range l.links {
		if !slices.ContainsFunc(s.Pods, func(p cache.Pod) bool { return p.Site == site }) {
			k.close()
			delete(l.links, site)
			forgetSite(l.key, site)
		}
	}
	l.nameMasters(group, s.Pods)
	s.Now = time.Now()
	return s, pods
}

// podsOf returns the cache pods of the group by site; of several, the one that is not going.
func (l *loop) podsOf(ctx context.Context, group *v1alpha1.MysqlFailoverGroup) map[string]*corev1.Pod {
	var list corev1.PodList
	if err := l.m.Client.List(ctx, &list, client.InNamespace(group.Namespace), client.MatchingFields{indexCache: group.Name}, client.UnsafeDisableDeepCopy); err != nil {
		l.log.Error("list pods", "error", err)
	}
	out := map[string]*corev1.Pod{}
	for i := range list.Items {
		pod := &list.Items[i]
		site := pod.Labels[v1alpha1.LabelSite]
		if before := out[site]; site != "" && (before == nil || before.DeletionTimestamp != nil && pod.DeletionTimestamp == nil) {
			out[site] = pod
		}
	}
	return out
}

// sitesOf lists the sites of the specification, and those that left it and still have a pod.
func sitesOf(group *v1alpha1.MysqlFailoverGroup, pods map[string]*corev1.Pod) []cache.Pod {
	var out []cache.Pod
	known := map[string]bool{}
	for _, site := range group.Spec.Sites {
		known[site.Name] = true
		out = append(out, cache.Pod{Site: site.Name})
	}
	for site := range pods {
		if !known[site] {
			out = append(out, cache.Pod{Site: site, Removed: true})
		}
	}
	slices.SortFunc(out, func(a, b cache.Pod) int { return strings.Compare(a.Site, b.Site) })
	return out
}

// ask looks at one site's cache.
func (l *loop) ask(ctx context.Context, group *v1alpha1.MysqlFailoverGroup, pod *corev1.Pod, p *cache.Pod) {
	k := l.links[p.Site]
	ctx, cancel := context.WithTimeout(ctx, askTimeout)
	defer cancel()
	if pod == nil || pod.Status.Phase == corev1.PodFailed || pod.Status.Phase == corev1.PodSucceeded {
		k.close()
		return
	}
	p.Exists, p.Leaving, p.Began = true, l.leaving(ctx, pod), beganAt(pod)
	target, err := l.targetOf(ctx, group, p.Site, pod)
	if err != nil {
		p.Trouble = err.Error()
		if errors.Is(err, context.DeadlineExceeded) {
			p.Trouble = "its password or certificate could not be read in time"
		}
		return
	}
	k.become(string(pod.UID), target, l.m.Dial)
	p.RoleLabel, p.Traffic = k.labels(pod)
	p.CutAt, p.TrafficOffAt, p.TrafficOnAt = k.cutAt, k.offAt, k.onAt
	if pod.Status.PodIP == "" {
		p.Trouble = "its pod has no address yet"
		return
	}
	info, err := k.engine.Info(ctx)
	k.answered(err, time.Now())
	if err != nil {
		p.Trouble, p.Full = err.Error(), isFull(err, pod)
		return
	}
	run := cmp.Or(info.Run, string(pod.UID)+"/"+strconv.Itoa(restarts(pod)))
	if k.isAnother(run, info, time.Now()) {
		p.Trouble = "its process began again, and the status of its pod does not show that yet"
		return // what held the keys is gone: as good as silent, until the new one has a name of its own
	}
	k.run, k.info, k.infoAt, k.beganAgain = run, info, time.Now(), time.Time{}
	if old, is := k.engine.(interface{ Outdated() bool }); is && old.Outdated() {
		p.Trouble = "it takes an older password than that in the Secret, and does not take the new one"
	}
	if k.renew(ctx, time.Now()) > stalePatience {
		p.Trouble = "it shows an old certificate, and does not read the new one; its pod is replaced in its turn"
	}
	p.Reachable, p.Role, p.Linked, p.Syncing = true, info.Role, info.LinkUp, info.Syncing
	p.Full, p.FailingOver, p.Loading, p.Offset, p.Keys = info.Full, info.FailingOver, info.Loading, info.Offset, info.Keys
	p.Run = run
}

// nameless is how long a process that began again may have the name of the one before it: the kubelet counts restarts within seconds. Without
// a count, as where something in the container starts the process, it is taken for the same.
const nameless = 30 * time.Second

// isAnother is true if a process that has no name of its own began after the last look, and the status of its pod does not count that yet.
// Dragonfly has no such name. A clock that is set back takes off some of its uptime, but not all.
func (k *link) isAnother(run string, info engine.Info, now time.Time) bool {
	since := int64(now.Sub(k.infoAt)/time.Second) + 2
	if info.Run != "" || k.run != run || info.Uptime >= k.info.Uptime || info.Uptime > since {
		return false
	}
	if k.beganAgain.IsZero() {
		k.beganAgain = now
	}
	return now.Sub(k.beganAgain) < nameless
}

// isFull is true for an engine that refused the operator because it is full. One that only ends connections is believed while its pod is ready:
// a proxy in between may do that in its place, and knows nothing of the engine.
func isFull(err error, pod *corev1.Pod) bool {
	return errors.Is(err, engine.ErrFull) || errors.Is(err, engine.ErrDropped) && podReady(pod)
}

// beganAt is when the newest container of a pod began; zero if none runs, or that is not known.
func beganAt(pod *corev1.Pod) (at time.Time) {
	for _, c := range pod.Status.ContainerStatuses {
		if r := c.State.Running; r != nil && r.StartedAt.After(at) {
			at = r.StartedAt.Time
		}
	}
	return at
}

func restarts(pod *corev1.Pod) int {
	n := 0
	for _, c := range pod.Status.ContainerStatuses {
		n += int(c.RestartCount)
	}
	return n
}

// labels are those of the pod, or those that this loop wrote while the manager's cache does not show them yet.
func (k *link) labels(pod *corev1.Pod) (v1alpha1.CacheRole, bool) {
	have := pod.Labels
	if k.written != nil && pod.ResourceVersion != k.version && time.Since(k.writtenAt) < apiTimeout {
		have = k.written
	}
	return v1alpha1.CacheRole(have[v1alpha1.LabelCacheRole]), have[v1alpha1.LabelCacheTraffic] == v1alpha1.CacheTrafficOn
}

// isCordoned ends what leaving says of a pod that a drain evicts.
const isCordoned = " is cordoned"

// leaving says why a pod is about to go, or "".
func (l *loop) leaving(ctx context.Context, pod *corev1.Pod) string {
	if pod.DeletionTimestamp != nil {
		return "pod " + pod.Name + " is being deleted"
	}
	if why := pod.Annotations[v1alpha1.AnnotationCacheLeaving]; why != "" {
		return why
	}
	node := &corev1.Node{}
	if l.m.Client.Get(ctx, client.ObjectKey{Name: pod.Spec.NodeName}, node, client.UnsafeDisableDeepCopy) == nil && node.Spec.Unschedulable {
		return "node " + node.Name + isCordoned
	}
	return ""
}

func (l *loop) targetOf(ctx context.Context, group *v1alpha1.MysqlFailoverGroup, site string, pod *corev1.Pod) (engine.Target, error) {
	passwords, config, err := l.m.Access.Cache(ctx, group, site)
	if err != nil {
		return engine.Target{}, err
	}
	certificate, err := l.m.Access.CacheCertificate(ctx, group)
	if err != nil {
		return engine.Target{}, err
	}
	t := engine.Target{Engine: group.Spec.Cache.Engine, Passwords: passwords, TLS: config, Certificate: certificate,
		Addr: net.JoinHostPort(pod.Status.PodIP, strconv.Itoa(v1alpha1.CachePort)), Hosts: hostsOf(group, site, pod)}
	if k := l.links[site]; k != nil && k.uid == string(pod.UID) {
		for _, p := range k.target.Passwords { // what it took until now, if the Secret has changed since
			if !slices.Contains(t.Passwords, p) && len(t.Passwords) < mostPasswords {
				t.Passwords = append(slices.Clone(t.Passwords), p)
			}
		}
	}
	return t, nil
}

// mostPasswords bounds how many passwords are tried at one engine.
const mostPasswords = 4

// hostOf is the name under which the others reach a site's cache.
func hostOf(group *v1alpha1.MysqlFailoverGroup, site string) string {
	return v1alpha1.CacheSiteName(group.Name, site) + "." + group.Namespace + ".svc"
}

func hostsOf(group *v1alpha1.MysqlFailoverGroup, site string, pod *corev1.Pod) []string {
	short := v1alpha1.CacheSiteName(group.Name, site)
	hosts := []string{hostOf(group, site), short, short + "." + group.Namespace, hostOf(group, site) + ".cluster.local"}
	if pod != nil && pod.Status.PodIP != "" {
		hosts = append(hosts, pod.Status.PodIP)
	}
	return hosts
}

// nameMasters turns the host that a replica follows into the name of its site.
func (l *loop) nameMasters(group *v1alpha1.MysqlFailoverGroup, pods []cache.Pod) {
	for i := range pods {
		k := l.links[pods[i].Site]
		if !pods[i].Reachable || pods[i].Role != v1alpha1.CacheReplica || k == nil {
			continue
		}
		for _, other := range pods {
			hosts := hostsOf(group, other.Site, nil)
			o := l.links[other.Site]
			if o != nil {
				hosts = append(hosts, o.target.Hosts...)
			}
			if slices.ContainsFunc(hosts, func(h string) bool { return engine.SameHost(h, k.info.MasterHost) }) {
				pods[i] = followed(pods[i], k, other, o)
			}
		}
	}
}

// followed is a replica that names a master, with what that says of it. A master that is silent says nothing.
func followed(p cache.Pod, k *link, master cache.Pod, m *link) cache.Pod {
	p.Following = master.Site
	if !master.Reachable || m == nil {
		return p
	}
	p.Lag = m.info.LagOf(k.target.Hosts)
	if p.Follows(master.Site) {
		p.Unlisted = unlisted(m.info, k.target)
	}
	return p
}

// unlisted says why a master cannot hand over to a replica by its address. A Dragonfly needs none: there the target asks. Nor is anything
// held against a master that lists no replica at all.
func unlisted(master engine.Info, replica engine.Target) string {
	if replica.Engine != v1alpha1.CacheValkey || len(master.Replicas) == 0 {
		return ""
	}
	switch r, known := master.ReplicaOf(replica.Hosts); {
	case !known:
		return "its master knows it by an address that is not its pod's; something between them rewrites addresses, such as a service mesh or masquerading"
	case !r.Online:
		return "its master does not have it online yet"
	}
	return ""
}

// mysql is what MySQL's failover has decided: what it left in the mailbox, unless status knows more. Status may know that a move is over:
// the mailbox does not, if the write that ended it got through and its answer did not.
func (l *loop) mysql(group *v1alpha1.MysqlFailoverGroup) cache.MySQL {
	s := group.Status
	out := cache.MySQL{Active: s.ActiveSite, Epoch: s.Epoch}
	if s.Transition != nil {
		out.Moving, out.Kind, out.From = true, s.Transition.Kind, s.Transition.From
	}
	if told := l.told.Load(); told != nil && (told.Epoch > out.Epoch || told.Epoch == out.Epoch && (out.Moving || !told.Moving)) {
		out = *told
	}
	if last := s.Failovers; out.Kind == "" && len(last) > 0 && last[0].Epoch == out.Epoch {
		out.Kind = last[0].Kind
	}
	return out
}

func policy(group *v1alpha1.MysqlFailoverGroup) cache.Policy {
	p := cache.Policy{EmergencyBudget: group.Spec.Cache.EmergencyBudget.Duration}
	if p.EmergencyBudget <= 0 {
		p.EmergencyBudget = 3 * time.Second
	}
	until, _ := time.Parse(time.RFC3339, group.Annotations[v1alpha1.AnnotationPauseUntil])
	switch {
	case time.Now().Before(until):
		p.Held = "the group is paused until " + until.UTC().Format(time.RFC3339)
	case group.Spec.Failover.Mode == v1alpha1.FailoverObserve:
		p.Held = "spec.failover.mode is Observe"
	}
	return p
}
