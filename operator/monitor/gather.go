// SPDX-License-Identifier: Apache-2.0

package monitor

import (
	"context"
	"fmt"
	"net"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/mysql-mfg/mfg/api/v1alpha1"
	"github.com/mysql-mfg/mfg/api/wire"
	"github.com/mysql-mfg/mfg/internal/gtid"
	"github.com/mysql-mfg/mfg/internal/mysql"
	"github.com/mysql-mfg/mfg/operator/failover"
)

// askTimeout bounds what is asked of one site in one poll.
const askTimeout = time.Second

// siteLink holds what is kept open to one site between polls. It locks itself: a fence may still be under way when the
// next poll begins.
type siteLink struct {
	mu            sync.Mutex
	podUID, podIP string
	db            *mysql.DB
	// fencing is true while the operator fences this site by SQL.
	fencing bool
}

// become makes the link one to a pod; what was open to another is closed.
func (k *siteLink) become(pod *corev1.Pod) {
	k.mu.Lock()
	var old *mysql.DB
	if k.podUID != string(pod.UID) || k.podIP != pod.Status.PodIP {
		old, k.db = k.db, nil
		k.podUID, k.podIP = string(pod.UID), pod.Status.PodIP
	}
	k.mu.Unlock()
	if old != nil {
		_ = old.Close()
	}
}

func (k *siteLink) current() (*mysql.DB, string) {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.db, k.podIP
}

func (k *siteLink) pod() string {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.podUID
}

// keep stores a connection to a pod and returns the one to use. One that somebody else made meanwhile wins; if the pod
// changed, there is none.
func (k *siteLink) keep(db *mysql.DB, podIP string) *mysql.DB {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.podIP == podIP && k.db == nil {
		k.db = db
		return db
	}
	_ = db.Close()
	if k.podIP != podIP {
		return nil
	}
	return k.db
}

func (k *siteLink) close() {
	k.mu.Lock()
	db := k.db
	k.db = nil
	k.mu.Unlock()
	if db != nil {
		_ = db.Close()
	}
}

// gather asks every site at once and returns what was seen. It takes no longer than askTimeout and a little.
func (l *loop) gather(ctx context.Context, group *v1alpha1.MysqlFailoverGroup) failover.Snapshot {
	pods := l.podsOf(ctx, group)
	s := failover.Snapshot{Policy: policy(group), Status: l.durable, Sites: sitesOf(group, l.durable, pods)}
	var asked sync.WaitGroup
	for i := range s.Sites {
		site := &s.Sites[i]
		link := l.sites[site.Name]
		if link == nil {
			link = &siteLink{}
			l.sites[site.Name] = link
		}
		site.Busy, _ = l.m.LongWork.Busy(group.Namespace, group.Name, site.Name)
		asked.Go(func() { l.ask(ctx, group, link, pods[site.Name], site) })
	}
	asked.Wait()
	l.nameSources(group, s.Sites)
	names := make([]string, 0, len(s.Sites))
	for _, site := range s.Sites {
		names = append(names, site.Name)
	}
	l.authority.setSites(names)
	l.takeFences()
	s.Answered, s.Permitted = l.authority.answered(names)
	// What an earlier loop answered is not known to this one.
	s.LeaderSince = l.started
	s.Now = time.Now()
	return s
}

// sitesOf lists the sites of the spec, and those that left it and may still run: a pod of theirs could vouch for the old
// active site, or be it.
func sitesOf(group *v1alpha1.MysqlFailoverGroup, durable failover.Durable, pods map[string][]*corev1.Pod) []failover.Site {
	var sites []failover.Site
	for _, spec := range group.Spec.Sites {
		sites = append(sites, failover.Site{Name: spec.Name, Role: spec.Role, Priority: spec.Priority})
	}
	left := map[string]bool{}
	for _, known := range group.Status.Sites {
		left[known.Name] = true
	}
	for name := range pods {
		left[name] = true
	}
	if durable.Transition != nil {
		left[durable.Transition.From] = true
	}
	for _, spec := range group.Spec.Sites {
		delete(left, spec.Name)
	}
	delete(left, "")
	for name := range left {
		sites = append(sites, failover.Site{Name: name, Removed: true})
	}
	for i := range sites {
		for _, known := range group.Status.Sites {
			if known.Name == sites[i].Name {
				sites[i].Provisioned = known.Provisioned
			}
		}
	}
	slices.SortFunc(sites, func(a, b failover.Site) int { return strings.Compare(a.Name, b.Name) })
	return sites
}

// nameSources turns the host that a replica follows into the name of the site.
func (l *loop) nameSources(group *v1alpha1.MysqlFailoverGroup, sites []failover.Site) {
	hosts := map[string]string{}
	for _, site := range group.Spec.Sites {
		hosts[siteHost(group, site.Name)] = site.Name
	}
	for i := range sites {
		sites[i].MySQL.ReplicaOf = hosts[sites[i].MySQL.ReplicaHost]
	}
}

func siteHost(group *v1alpha1.MysqlFailoverGroup, site string) string {
	return v1alpha1.SiteName(group.Name, site) + "." + group.Namespace + ".svc"
}

// ask asks one site: a push to its sidecar and one query to its MySQL, side by side.
func (l *loop) ask(ctx context.Context, group *v1alpha1.MysqlFailoverGroup, link *siteLink, pods []*corev1.Pod, site *failover.Site) {
	site.Pod = l.evidence(ctx, group, site.Name, pods)
	if len(pods) == 0 || pods[0].Status.PodIP == "" {
		link.close()
		return
	}
	pod := pods[0]
	link.become(pod)
	ctx, cancel := context.WithTimeout(ctx, askTimeout)
	defer cancel()
	var both sync.WaitGroup
	both.Go(func() { site.Sidecar = l.push(ctx, pod, site.Name) })
	var seen *mysql.Status
	both.Go(func() { seen = l.query(ctx, group, link, site.Name) })
	both.Wait()
	site.MySQL = merge(seen, site.Sidecar)
	for _, known := range group.Status.Sites {
		if known.Name == site.Name && site.Sidecar.Answered {
			id := site.Sidecar.Report.VolumeID
			site.OtherVolume = known.VolumeID != "" && id != "" && id != known.VolumeID
		}
	}
}

// push sends the statement that stands and returns the report. Before the first epoch there is no statement, and the
// sidecar is asked for its report only. An address can be another pod's by now: only the report of the pod that was
// meant counts.
func (l *loop) push(ctx context.Context, pod *corev1.Pod, site string) failover.Sidecar {
	signed, err := l.authority.sign(time.Now())
	if err != nil {
		signed = ""
	}
	r, err := l.m.Push.PushActiveSite(ctx, sidecarAddr(pod), signed)
	if err != nil || r.Site != site || r.PodUID != string(pod.UID) {
		return failover.Sidecar{}
	}
	return failover.Sidecar{Answered: true, Report: r, At: time.Now()}
}

func sidecarAddr(pod *corev1.Pod) string {
	return net.JoinHostPort(pod.Status.PodIP, strconv.Itoa(wire.PortSidecar))
}

func (l *loop) query(ctx context.Context, group *v1alpha1.MysqlFailoverGroup, link *siteLink, site string) *mysql.Status {
	db, err := l.connection(ctx, group, link, site)
	if err != nil {
		l.log.Debug("reach site", "site", site, "error", err)
		return nil
	}
	status, err := db.Status(ctx)
	if err != nil {
		// A certificate or a password may have been replaced: begin anew with what stands now.
		link.close()
		return nil
	}
	return &status
}

// connection returns the connection to a site, made anew if there is none.
func (l *loop) connection(ctx context.Context, group *v1alpha1.MysqlFailoverGroup, link *siteLink, site string) (*mysql.DB, error) {
	db, podIP := link.current()
	if db != nil {
		return db, nil
	}
	if podIP == "" {
		return nil, fmt.Errorf("%s has no pod", site)
	}
	target, err := l.m.Access.Site(ctx, group, site, podIP)
	if err != nil {
		return nil, err
	}
	if db, err = mysql.Open(target); err != nil {
		return nil, err
	}
	if db = link.keep(db, podIP); db == nil {
		return nil, fmt.Errorf("the pod of %s changed", site)
	}
	return db, nil
}

// merge joins both witnesses. Sets come from the operator's own query, and from the report where that failed.
func merge(seen *mysql.Status, sidecar failover.Sidecar) failover.MySQL {
	if seen == nil {
		if !sidecar.Answered || !sidecar.Report.Answered {
			return failover.MySQL{}
		}
		executed, err := gtid.Parse(sidecar.Report.GTIDExecuted)
		if err != nil {
			return failover.MySQL{}
		}
		return failover.MySQL{SuperReadOnly: sidecar.Report.SuperReadOnly, ReadOnly: !sidecar.Report.Writable, Executed: executed,
			OfflineMode: sidecar.Report.OfflineMode, ServerUUID: sidecar.Report.ServerUUID}
	}
	out := failover.MySQL{
		Direct: true, ServerUUID: seen.ServerUUID, Version: seen.Version, ReadOnly: seen.ReadOnly,
		SuperReadOnly: seen.SuperReadOnly, OfflineMode: seen.OfflineMode, Executed: seen.Executed, Purged: seen.Purged,
		Retrieved: seen.Retrieved, Cloning: seen.Cloning, UserDatabases: seen.UserDatabases,
	}
	if r := seen.Replica; r != nil {
		out.ReplicaHost, out.IORunning, out.SQLRunning = r.SourceHost, r.IORunning, r.SQLRunning
		out.ReceiverStopped = !r.IORunning && !r.IOConnecting
		out.IOError, out.SQLError, out.IOErrno, out.LagSeconds = r.IOError, r.SQLError, r.IOErrno, r.LagSeconds
	}
	return out
}

// podsOf returns the pods of each site, the newest first; one that is not going away before one that is.
func (l *loop) podsOf(ctx context.Context, group *v1alpha1.MysqlFailoverGroup) map[string][]*corev1.Pod {
	var list corev1.PodList
	err := l.m.Client.List(ctx, &list, client.InNamespace(group.Namespace),
		client.MatchingLabels{v1alpha1.LabelGroup: group.Name, v1alpha1.LabelName: v1alpha1.NameMySQL})
	if err != nil {
		l.log.Error("list pods", "error", err)
	}
	all := map[string][]*corev1.Pod{}
	for i := range list.Items {
		site := list.Items[i].Labels[v1alpha1.LabelSite]
		all[site] = append(all[site], &list.Items[i])
	}
	for _, pods := range all {
		slices.SortFunc(pods, newestFirst)
	}
	return all
}

// pods returns the newest pod of each site.
func (l *loop) pods(ctx context.Context, group *v1alpha1.MysqlFailoverGroup) map[string]*corev1.Pod {
	newest := map[string]*corev1.Pod{}
	for site, pods := range l.podsOf(ctx, group) {
		newest[site] = pods[0]
	}
	return newest
}

func newestFirst(a, b *corev1.Pod) int {
	if (a.DeletionTimestamp == nil) != (b.DeletionTimestamp == nil) {
		if a.DeletionTimestamp == nil {
			return -1
		}
		return 1
	}
	return b.CreationTimestamp.Compare(a.CreationTimestamp.Time)
}

// evidence is what Kubernetes proves about a site. A NotReady node, a vanished pod object or an old status prove nothing,
// and neither does a pod that never came so far that it held the volume: one before it may still run.
func (l *loop) evidence(ctx context.Context, group *v1alpha1.MysqlFailoverGroup, site string, pods []*corev1.Pod) failover.Pod {
	out := failover.Pod{Exists: len(pods) > 0}
	for _, known := range group.Status.Sites {
		if known.Name == site {
			out.Node = known.Node
		}
	}
	if len(pods) > 0 {
		out.Name, out.UID, out.Lease = pods[0].Name, string(pods[0].UID), leaseOf(pods[0])
		if out.Node == "" {
			out.Node = pods[0].Spec.NodeName
		}
	}
	if len(pods) == 1 && ended(pods[0]) {
		node := l.node(ctx, pods[0].Spec.NodeName)
		out.Ended = node != nil && nodeReady(node)
	}
	if node := l.node(ctx, out.Node); node != nil {
		out.OutOfService = outOfService(node)
	}
	return out
}

// node returns a node, or nil if it cannot be had: without it nothing is proven.
func (l *loop) node(ctx context.Context, name string) *corev1.Node {
	if name == "" {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, askTimeout)
	defer cancel()
	node := &corev1.Node{}
	if err := l.m.Client.Get(ctx, client.ObjectKey{Name: name}, node); err != nil {
		return nil
	}
	return node
}

// ended is true for a pod whose containers never start again, and that had come so far that it took the volume's lock
// from every pod before it.
func ended(pod *corev1.Pod) bool {
	if pod.Status.Phase != corev1.PodFailed && pod.Status.Phase != corev1.PodSucceeded {
		return false
	}
	for _, c := range pod.Status.InitContainerStatuses {
		if c.Name == v1alpha1.ContainerBootstrap {
			return c.State.Terminated != nil && c.State.Terminated.ExitCode == 0
		}
	}
	return false
}

// leaseOf is the lease and the fence's deadline that a pod's sidecar was started with.
func leaseOf(pod *corev1.Pod) time.Duration {
	var sum time.Duration
	for _, c := range pod.Spec.InitContainers {
		for _, e := range c.Env {
			if c.RestartPolicy != nil && (e.Name == v1alpha1.EnvLeaseTimeout || e.Name == v1alpha1.EnvFenceTimeout) {
				d, err := time.ParseDuration(e.Value)
				if err == nil {
					sum += d
				}
			}
		}
	}
	return sum
}

func nodeReady(node *corev1.Node) bool {
	for _, c := range node.Status.Conditions {
		if c.Type == corev1.NodeReady {
			return c.Status == corev1.ConditionTrue
		}
	}
	return false
}

func outOfService(node *corev1.Node) bool {
	for _, taint := range node.Spec.Taints {
		if taint.Key == v1alpha1.OutOfServiceTaint && taint.Effect != corev1.TaintEffectPreferNoSchedule {
			return true
		}
	}
	return false
}

func policy(group *v1alpha1.MysqlFailoverGroup) failover.Policy {
	f, c := group.Spec.Failover, group.Spec.Sidecar
	return failover.Policy{
		Mode: f.Mode, PollInterval: orElse(f.PollInterval.Duration, 2*time.Second), Threshold: max(int(f.Threshold), 1),
		CrashGrace: f.CrashGrace.Duration, Cooldown: f.Cooldown.Duration, DrainTimeout: f.DrainTimeout.Duration,
		LeaseTimeout: orElse(c.LeaseTimeout.Duration, 20*time.Second), FenceTimeout: orElse(c.FenceTimeout.Duration, 2*time.Second),
		MaxLost: f.MaxLostTransactions, ForceTo: group.Annotations[v1alpha1.AnnotationForceFailover],
	}
}

func orElse(d, fallback time.Duration) time.Duration {
	if d <= 0 {
		return fallback
	}
	return d
}
