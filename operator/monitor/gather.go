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

	"github.com/mysql-mfg/mfg/api/v1alpha1"
	"github.com/mysql-mfg/mfg/api/wire"
	"github.com/mysql-mfg/mfg/internal/gtid"
	"github.com/mysql-mfg/mfg/internal/mysql"
	"github.com/mysql-mfg/mfg/operator/failover"
)

// askTimeout bounds what is asked of one site in one poll.
const askTimeout = failover.AskTimeout

// bystanderTimeout bounds what is asked of a site that has no part in a planned failover while that keeps writes out.
const bystanderTimeout = 100 * time.Millisecond

// patience is how long a site may take to answer in this poll. A move that drags on needs everybody: a site that always takes
// longer than a bystander may would never be seen.
func (l *loop) patience(site string, p failover.Policy) time.Duration {
	t := l.durable.Transition
	if t.Urgent(time.Now(), p) && site != t.From && site != t.To {
		return bystanderTimeout
	}
	return askTimeout
}

// siteLink holds what is kept open to one site between polls. It locks itself: a fence may still be under way when the
// next poll begins.
type siteLink struct {
	mu            sync.Mutex
	podUID, podIP string
	db            *mysql.DB
	// fencing is true while the operator fences this site by SQL.
	fencing bool
	// given is the password that the site's receiver has, tried how often one was to be given. The loop alone touches them.
	given given
	tried int
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
	s := failover.Snapshot{Group: failover.Group{Namespace: l.key.Namespace, Name: l.key.Name}, Policy: policy(group), Status: l.durable, Sites: sitesOf(group, l.durable, pods)}
	// Before the first epoch there is no statement, and the sidecars are asked for their reports only.
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
		l.m.crew.join(&asked, func() { seen[i] = l.ask(ctx, group, question{link, pods[site.Name], signed}, site) })
	}
	asked.Wait()
	for name, link := range l.sites {
		if !slices.ContainsFunc(s.Sites, func(site failover.Site) bool { return site.Name == name }) {
			link.close()
			delete(l.sites, name)
		}
	}
	l.nodes(ctx, &s)
	l.nameSources(group, s.Sites)
	evenClocks(s.Sites, seen)
	names := make([]string, 0, len(s.Sites))
	for _, site := range s.Sites {
		names = append(names, site.Name)
	}
	l.authority.SetSites(names)
	l.takeFences()
	s.Answered, s.Permitted = l.authority.Answered(names)
	s.Renewed = l.authority.Renewed(names)
	// What an earlier loop answered is not known to this one.
	s.LeaderSince = l.started
	if thawed := l.m.pulse.ThawedAt(time.Now()); thawed.After(s.LeaderSince) {
		s.LeaderSince = thawed // another may have led while this process stood still
	}
	s.Now = time.Now()
	return s
}

// podUIDs are the pods that were asked: what is decided rests on them, and on no others. One that is not in status yet is left out: were
// it let open, and gone when the next operator begins, that would not know of it (I1, I9).
func podUIDs(sites []failover.Site, noted failover.Durable) map[string]string {
	uids := map[string]string{}
	for _, site := range sites {
		if noted.Noted(site.Name, site.Pod.UID) {
			uids[site.Name] = site.Pod.UID
		}
	}
	return uids
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
				sites[i].Provisioned, sites[i].Unlisted = known.Provisioned, known.Unlisted
			}
		}
		if sites[i].Removed || !sites[i].Provisioned {
			sites[i].Listed = listed(group, sites[i].Name, pods)
		}
		sites[i].EscrowMissing = escrowMissing(group, sites[i].Name)
	}
	slices.SortFunc(sites, func(a, b failover.Site) int { return strings.Compare(a.Name, b.Name) })
	return sites
}

// listed is true if the pod of another site has this one among the peers that its sidecar was started with.
func listed(group *v1alpha1.MysqlFailoverGroup, site string, pods map[string][]*corev1.Pod) bool {
	peer := net.JoinHostPort(siteHost(group, site), strconv.Itoa(wire.PortSidecar))
	for other, of := range pods {
		if len(of) > 0 && holdsVolume(of[0]) {
			// It has the lock of the volume, so those before it on its node have ended, whatever their objects say.
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

// escrowMissing is true if the escrow Secret that a sealed site is sealed with is gone, or is not what was stored: only that brings a
// site that cannot write its keyring into the phase Failed. Of a keyring that can be written the site's own report tells.
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

// question is how one site is asked, and what its sidecar is told.
type question struct {
	link   *siteLink
	pods   []*corev1.Pod
	signed wire.Signed
}

// ask asks one site: a push to its sidecar and one query to its MySQL, side by side. It returns what MySQL answered, if it did.
func (l *loop) ask(ctx context.Context, group *v1alpha1.MysqlFailoverGroup, q question, site *failover.Site) *mysql.Status {
	link, pods := q.link, q.pods
	site.Pod = l.evidence(ctx, group, site.Name, pods)
	site.Leaving = l.leaving(ctx, group, site.Name, pods)
	if len(pods) == 0 || pods[0].Status.PodIP == "" {
		link.close()
		return nil
	}
	pod := pods[0]
	link.become(pod)
	ctx, cancel := context.WithTimeout(ctx, l.patience(site.Name, policy(group)))
	defer cancel()
	var both sync.WaitGroup
	l.m.crew.join(&both, func() { site.Sidecar = l.push(ctx, group, asking{pod, site.Name, q.signed}) })
	seen := l.query(ctx, group, link, site.Name)
	both.Wait()
	site.MySQL = merge(seen, site.Sidecar)
	compareVolumes(group, site)
	return seen
}

// compareVolumes compares the volume of a site with the one that status names for it.
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

// push sends a statement and returns the report. What is no report of the site counts as silence, and is told.
func (l *loop) push(ctx context.Context, group *v1alpha1.MysqlFailoverGroup, q asking) failover.Sidecar {
	r, err := l.askReport(ctx, group, q)
	bad := badAnswerOf(err, r)
	l.badAnswer(q.site, bad)
	if bad.reason == answerBadStatement {
		return l.askDeaf(ctx, group, q)
	}
	if err != nil || bad.reason != "" {
		return failover.Sidecar{}
	}
	return failover.Sidecar{Answered: true, Report: trimmed(r), At: time.Now()}
}

// askDeaf asks a sidecar that takes no statement for its report without one. Nothing of it counts but which key it trusts, and for how
// long its lease stands, which its peers may keep alive: without that it would seem to outlive its lease, and no time that passes
// would let another site take over.
func (l *loop) askDeaf(ctx context.Context, group *v1alpha1.MysqlFailoverGroup, q asking) failover.Sidecar {
	q.signed = ""
	r, err := l.askReport(ctx, group, q)
	if err != nil || overlong(r) {
		return failover.Sidecar{}
	}
	return failover.Sidecar{Deaf: true, Report: wire.Report{LeaseMillis: r.LeaseMillis, Anchor: r.Anchor}, At: time.Now()}
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
	l.refused(fromMySQL, site, refusalOfMySQL(err))
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
		Retrieved: seen.Retrieved, Cloning: seen.Cloning, HalfCloned: seen.HalfCloned, NoClone: seen.NoClone, UserDatabases: seen.UserDatabases,
	}
	if r := seen.Replica; r != nil {
		out.ReplicaHost, out.IORunning, out.SQLRunning = r.SourceHost, r.IORunning, r.SQLRunning
		out.ReceiverStopped = !r.IORunning && !r.IOConnecting
		out.IOError, out.SQLError, out.IOErrno, out.LagSeconds = r.IOError, r.SQLError, r.IOErrno, r.LagSeconds
	}
	return out
}

func policy(group *v1alpha1.MysqlFailoverGroup) failover.Policy {
	f, c := group.Spec.Failover, group.Spec.Sidecar
	return failover.Policy{
		Mode: f.Mode, PollInterval: orElse(f.PollInterval.Duration, 2*time.Second), Threshold: max(int(f.Threshold), 1),
		CrashGrace: f.CrashGrace.Duration, Cooldown: f.Cooldown.Duration, DrainTimeout: f.DrainTimeout.Duration,
		LeaseTimeout: orElse(c.LeaseTimeout.Duration, 20*time.Second), FenceTimeout: orElse(c.FenceTimeout.Duration, 2*time.Second),
		MaxLost: f.MaxLostTransactions, ForceTo: group.Annotations[v1alpha1.AnnotationForceFailover],
		PlannedTo: group.Annotations[v1alpha1.AnnotationPlannedFailover], AbortPlanned: isSet(group, v1alpha1.AnnotationAbortFailover),
		PlannedLagTimeout: orElse(f.PlannedLagTimeout.Duration, time.Minute), PlannedPauseTimeout: orElse(f.PlannedPauseTimeout.Duration, 5*time.Second),
		PausedUntil: pausedUntil(group), MaxReadLag: maxReadLag(group), StallTimeout: stallTimeout(group),
	}
}

// isSet is true for an annotation that needs no value.
func isSet(group *v1alpha1.MysqlFailoverGroup, key string) bool {
	_, set := group.Annotations[key]
	return set
}

// pausedUntil is until when a person keeps the operator from acting by itself. A value that is no time pauses nothing;
// the condition Paused says so.
func pausedUntil(group *v1alpha1.MysqlFailoverGroup) time.Time {
	until, _ := time.Parse(time.RFC3339, group.Annotations[v1alpha1.AnnotationPauseUntil])
	return until
}

func maxReadLag(group *v1alpha1.MysqlFailoverGroup) time.Duration {
	if group.Spec.MaxReadLag == nil {
		return 0
	}
	return group.Spec.MaxReadLag.Duration
}

// stallTimeout is zero if no failover follows from a volume that takes no writes.
func stallTimeout(group *v1alpha1.MysqlFailoverGroup) time.Duration {
	if group.Spec.Failover.StallTimeout == nil {
		return time.Minute
	}
	return group.Spec.Failover.StallTimeout.Duration
}

func orElse(d, fallback time.Duration) time.Duration {
	if d <= 0 {
		return fallback
	}
	return d
}
