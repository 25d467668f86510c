// SPDX-License-Identifier: Apache-2.0

package monitor

import (
	"context"
	"net"
	"slices"
	"strconv"
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

// siteLink holds what is kept open to one site between polls.
type siteLink struct {
	podUID, podIP string
	db            *mysql.DB
}

func (k *siteLink) close() {
	if k.db != nil {
		_ = k.db.Close()
		k.db = nil
	}
}

// gather asks every site at once and returns what was seen. It takes no longer than askTimeout and a little.
func (l *loop) gather(ctx context.Context, group *v1alpha1.MysqlFailoverGroup) failover.Snapshot {
	pods := l.pods(ctx, group)
	s := failover.Snapshot{Policy: policy(group), Status: l.durable, Sites: make([]failover.Site, len(group.Spec.Sites))}
	var asked sync.WaitGroup
	for i, spec := range group.Spec.Sites {
		link := l.sites[spec.Name]
		if link == nil {
			link = &siteLink{}
			l.sites[spec.Name] = link
		}
		s.Sites[i] = failover.Site{Name: spec.Name, Role: spec.Role, Priority: spec.Priority}
		s.Sites[i].Busy, _ = l.m.LongWork.Busy(group.Namespace, group.Name, spec.Name)
		asked.Go(func() { l.ask(ctx, group, link, pods[spec.Name], &s.Sites[i]) })
	}
	asked.Wait()
	l.fromStatus(group, s.Sites)
	l.nameSources(group, s.Sites)
	slices.SortFunc(s.Sites, func(a, b failover.Site) int {
		if a.Name < b.Name {
			return -1
		}
		return 1
	})
	names := make([]string, 0, len(s.Sites))
	for _, site := range s.Sites {
		names = append(names, site.Name)
	}
	l.authority.setSites(names)
	s.Answered, s.Permitted = l.authority.answered(names)
	s.LeaderSince = l.m.leaderSince()
	s.Now = time.Now()
	return s
}

func (m *Monitor) leaderSince() time.Time {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.since
}

// fromStatus adds what is durable about the sites.
func (l *loop) fromStatus(group *v1alpha1.MysqlFailoverGroup, sites []failover.Site) {
	for i := range sites {
		for _, known := range group.Status.Sites {
			if known.Name == sites[i].Name {
				sites[i].Provisioned = known.Provisioned
				if sites[i].Pod.Node == "" {
					sites[i].Pod.Node = known.Node
				}
			}
		}
	}
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
func (l *loop) ask(ctx context.Context, group *v1alpha1.MysqlFailoverGroup, link *siteLink, pod *corev1.Pod, site *failover.Site) {
	site.Pod = l.evidence(ctx, group, site.Name, pod)
	if pod == nil || pod.Status.PodIP == "" {
		link.close()
		return
	}
	if link.podUID != string(pod.UID) || link.podIP != pod.Status.PodIP {
		link.close()
		link.podUID, link.podIP = string(pod.UID), pod.Status.PodIP
	}
	ctx, cancel := context.WithTimeout(ctx, askTimeout)
	defer cancel()
	var both sync.WaitGroup
	both.Go(func() { site.Sidecar = l.push(ctx, pod) })
	var seen *mysql.Status
	both.Go(func() { seen = l.query(ctx, group, link, site.Name) })
	both.Wait()
	site.MySQL = merge(seen, site.Sidecar)
}

// push sends the statement that stands and returns the report. Before the first epoch there is no statement, and the
// sidecar is asked for its report only.
func (l *loop) push(ctx context.Context, pod *corev1.Pod) failover.Sidecar {
	signed, err := l.authority.sign(time.Now())
	if err != nil {
		signed = ""
	}
	r, err := l.m.Push.PushActiveSite(ctx, sidecarAddr(pod), signed)
	if err != nil {
		return failover.Sidecar{}
	}
	return failover.Sidecar{Answered: true, Report: r, At: time.Now()}
}

func sidecarAddr(pod *corev1.Pod) string {
	return net.JoinHostPort(pod.Status.PodIP, strconv.Itoa(wire.PortSidecar))
}

func (l *loop) query(ctx context.Context, group *v1alpha1.MysqlFailoverGroup, link *siteLink, site string) *mysql.Status {
	if link.db == nil {
		target, err := l.m.Access.Site(ctx, group, site, link.podIP)
		if err != nil {
			l.log.Debug("read access of site", "site", site, "error", err)
			return nil
		}
		if link.db, err = mysql.Open(target); err != nil {
			l.log.Error("open connection", "site", site, "error", err)
			return nil
		}
	}
	status, err := link.db.Status(ctx)
	if err != nil {
		return nil
	}
	return &status
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

// pods returns the newest pod of each site; one that is not going away before one that is.
func (l *loop) pods(ctx context.Context, group *v1alpha1.MysqlFailoverGroup) map[string]*corev1.Pod {
	var list corev1.PodList
	err := l.m.Client.List(ctx, &list, client.InNamespace(group.Namespace),
		client.MatchingLabels{v1alpha1.LabelGroup: group.Name, v1alpha1.LabelName: v1alpha1.NameMySQL})
	if err != nil {
		l.log.Error("list pods", "error", err)
	}
	newest := map[string]*corev1.Pod{}
	for i := range list.Items {
		pod := &list.Items[i]
		site := pod.Labels[v1alpha1.LabelSite]
		if old := newest[site]; old == nil || newer(pod, old) {
			newest[site] = pod
		}
	}
	return newest
}

func newer(a, b *corev1.Pod) bool {
	if (a.DeletionTimestamp == nil) != (b.DeletionTimestamp == nil) {
		return a.DeletionTimestamp == nil
	}
	return b.CreationTimestamp.Before(&a.CreationTimestamp)
}

// evidence is what Kubernetes proves about a site. A NotReady node, a vanished pod object or an old status prove nothing.
func (l *loop) evidence(ctx context.Context, group *v1alpha1.MysqlFailoverGroup, site string, pod *corev1.Pod) failover.Pod {
	out := failover.Pod{Exists: pod != nil}
	for _, known := range group.Status.Sites {
		if known.Name == site {
			out.Node = known.Node
		}
	}
	if pod != nil {
		out.Name, out.UID, out.Lease = pod.Name, string(pod.UID), leaseOf(pod)
		if pod.Spec.NodeName != "" {
			out.Node = pod.Spec.NodeName
		}
	}
	if out.Node == "" {
		return out
	}
	node := &corev1.Node{}
	if err := l.m.Client.Get(ctx, client.ObjectKey{Name: out.Node}, node); err != nil {
		return out // without the node nothing is proven
	}
	ended := pod != nil && (pod.Status.Phase == corev1.PodFailed || pod.Status.Phase == corev1.PodSucceeded)
	out.Ended = ended && nodeReady(node)
	out.OutOfService = outOfService(node)
	return out
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
