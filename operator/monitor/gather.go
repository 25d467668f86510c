// SPDX-License-Identifier: Apache-2.0

package monitor

import (
	"context"
	"net"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/mysql-mfg/mfg/api/v1alpha1"
	"github.com/mysql-mfg/mfg/api/wire"
	"github.com/mysql-mfg/mfg/internal/mysql"
	"github.com/mysql-mfg/mfg/operator/failover"
	"github.com/mysql-mfg/mfg/operator/monitor/evidence"
)

// askTimeout bounds the questions to one site in one poll.
const askTimeout = failover.AskTimeout

// patience is how long a site may take to answer in this poll.
func (l *loop) patience(site string, p failover.Policy) time.Duration {
	return l.durable.Transition.Patience(site, l.silent[site], time.Now(), p)
}

// noteSilent keeps for the next poll which sites did not answer this one.
func (l *loop) noteSilent(sites []failover.Site) {
	l.silent = map[string]bool{}
	for _, site := range sites {
		l.silent[site.Name] = !site.Reachable()
	}
}

// cluster reads what Kubernetes shows of the pods of the group.
func (l *loop) cluster() evidence.Cluster {
	return evidence.Cluster{Client: l.m.Client, Ends: &l.m.ends, LongWork: l.m.LongWork, Log: l.log}
}

// gather asks all sites in parallel and returns what it saw. It takes no longer than askTimeout and a little.
func (l *loop) gather(ctx context.Context, group *v1alpha1.MysqlFailoverGroup) failover.Snapshot {
	pods := l.cluster().Pods(ctx, group)
	s := failover.Snapshot{Group: failover.Group{Namespace: l.key.Namespace, Name: l.key.Name}, Policy: policy(group), Status: l.durable, Sites: sitesOf(group, l.durable, pods)}
	// Before the first epoch there is no statement, so the sidecars only give their reports.
	signed, _ := l.authority.Sign(time.Now())
	var asked sync.WaitGroup
	seen := make([]*mysql.Status, len(s.Sites))
	for i := range s.Sites {
		site := &s.Sites[i]
		link := l.sites[site.Name]
		if link == nil {
			link = &siteLink{}
			l.sites[site.Name] = link
		}
		site.Busy, _ = l.m.LongWork.Busy(group.Namespace, group.Name, site.Name)
		l.m.workers.Join(&asked, func() { seen[i] = l.ask(ctx, group, question{link, pods[site.Name], signed}, site) })
	}
	asked.Wait()
	l.noteSilent(s.Sites)
	for name, link := range l.sites {
		if !slices.ContainsFunc(s.Sites, func(site failover.Site) bool { return site.Name == name }) {
			link.close()
			delete(l.sites, name)
		}
	}
	l.cluster().Nodes(ctx, &s, l.memory.Runs.Of)
	l.nameSources(group, s.Sites)
	evenClocks(s.Sites, seen)
	l.noteCache(group, &s)
	names := make([]string, 0, len(s.Sites))
	for _, site := range s.Sites {
		names = append(names, site.Name)
	}
	l.authority.SetSites(names)
	l.takeFences()
	s.Answered, s.Permitted = l.authority.Answered(names)
	s.Renewed = l.authority.Renewed(names)
	// This loop does not know what an earlier one answered.
	s.LeaderSince = l.started
	if l.m.Former != nil {
		s.FormerUntil = l.m.Former(group, l.started)
	}
	if thawed := l.m.pulse.ThawedAt(time.Now()); thawed.After(s.LeaderSince) {
		s.LeaderSince, s.FormerUntil = thawed, time.Time{} // another may have led while this process stood still
	}
	s.Now = time.Now()
	return s
}

// podUIDs returns the pods that were asked: the decision rests on them alone. A pod that is not in status yet is left out: if it could
// open, and were gone when the next operator begins, that operator would not know of it (I1, I9).
func podUIDs(sites []failover.Site, noted failover.Durable) map[string]string {
	uids := map[string]string{}
	for _, site := range sites {
		if noted.Noted(site.Name, site.Pod.UID) {
			uids[site.Name] = site.Pod.UID
		}
	}
	return uids
}

// sitesOf lists the sites of the spec, and those that left it and may still run: a pod of such a site could vouch for
// the old active site, or be it.
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
				sites[i].Provisioned, sites[i].Unlisted = known.Provisioned, known.Unlisted
			}
		}
		if sites[i].Removed || !sites[i].Provisioned {
			sites[i].Listed = listed(group, sites[i].Name, pods)
		}
		sites[i].EscrowMissing = escrowMissing(group, sites[i].Name)
		sites[i].KeptFenced = v1alpha1.KeptFenced(group, sites[i].Name)
	}
	slices.SortFunc(sites, func(a, b failover.Site) int { return strings.Compare(a.Name, b.Name) })
	return sites
}

// listed is true if the sidecar of another site was started with this one among its peers.
func listed(group *v1alpha1.MysqlFailoverGroup, site string, pods map[string][]*corev1.Pod) bool {
	peer := net.JoinHostPort(siteHost(group, site), strconv.Itoa(wire.PortSidecar))
	for other, of := range pods {
		if len(of) > 0 && evidence.HoldsVolume(of[0]) {
			// It has the lock of the volume, so earlier pods on its node have ended, whatever their objects say.
			first := of[0]
			of = slices.DeleteFunc(slices.Clone(of), func(p *corev1.Pod) bool { return p != first && p.Spec.NodeName == first.Spec.NodeName })
		}
		for _, pod := range of {
			if other != site && slices.Contains(v1alpha1.Peers(pod), peer) {
				return true
			}
		}
	}
	return false
}

// escrowMissing is true if the escrow Secret of a sealed site is gone, or is not what was stored: nothing else brings a site that
// cannot write its keyring into the phase Failed. If it can, the site's own report tells the state.
func escrowMissing(group *v1alpha1.MysqlFailoverGroup, site string) bool {
	if group.Status.EncryptionAtRest == nil {
		return false
	}
	for _, st := range group.Status.EncryptionAtRest.Sites {
		if st.Name == site {
			sealed := st.Work == "" || st.Stage == v1alpha1.KeyringSealing
			return st.Phase == v1alpha1.KeyringFailed && st.KeyringSecret != "" && sealed
		}
	}
	return false
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

// question is how to ask one site, and the statement for its sidecar.
type question struct {
	link   *siteLink
	pods   []*corev1.Pod
	signed wire.Signed
}

// ask asks one site: a push to its sidecar and one query to its MySQL, side by side. It returns the answer of MySQL, if there is one.
func (l *loop) ask(ctx context.Context, group *v1alpha1.MysqlFailoverGroup, q question, site *failover.Site) *mysql.Status {
	link, pods := q.link, q.pods
	site.Pod = l.cluster().Of(ctx, group, site.Name, pods)
	site.Leaving = l.cluster().Leaving(ctx, group, site.Name, pods)
	if len(pods) == 0 || pods[0].Status.PodIP == "" {
		link.close()
		return nil
	}
	pod := pods[0]
	link.become(pod)
	link.verify(group.TLSVerified())
	ctx, cancel := context.WithTimeout(ctx, l.patience(site.Name, policy(group)))
	defer cancel()
	var both sync.WaitGroup
	l.m.workers.Join(&both, func() { site.Sidecar = l.client.push(ctx, group, asking{pod, site.Name, q.signed}) })
	seen := l.client.query(ctx, group, link, site.Name)
	both.Wait()
	site.MySQL = merge(seen, site.Sidecar)
	compareVolumes(group, site)
	return seen
}

// compareVolumes compares the volume of a site with the one in its status.
func compareVolumes(group *v1alpha1.MysqlFailoverGroup, site *failover.Site) {
	id, noted := site.Sidecar.Report.VolumeID, ""
	if !site.Sidecar.Answered || id == "" {
		return
	}
	for _, known := range group.Status.Sites {
		if known.Name == site.Name {
			noted = known.VolumeID
		}
	}
	site.OtherVolume, site.Unnoted, site.Noted = noted != "" && id != noted, noted == "", id == noted
}

// evenClocks corrects the lag of each replica by the difference between its server's clock and its source's. Otherwise a replica's
// clock that is half a second ahead means half a second of lag, and under load no planned failover to it would be possible.
func evenClocks(sites []failover.Site, seen []*mysql.Status) {
	ahead := map[string]*float64{}
	for i, site := range sites {
		if seen[i] != nil {
			ahead[site.Name] = seen[i].ClockAhead
		}
	}
	for i := range sites {
		own, source := ahead[sites[i].Name], ahead[sites[i].MySQL.ReplicaOf]
		if own != nil && source != nil && seen[i].Replica != nil {
			sites[i].MySQL.LagSeconds = seen[i].Replica.LagBeside(*own - *source)
		}
	}
}
