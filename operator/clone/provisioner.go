// SPDX-License-Identifier: Apache-2.0

package clone

import (
	"context"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/mysql-mfg/mfg/api/v1alpha1"
	"github.com/mysql-mfg/mfg/internal/mysql"
	"github.com/mysql-mfg/mfg/operator/report/events"
	"github.com/mysql-mfg/mfg/operator/scope"
	"github.com/mysql-mfg/mfg/operator/work"
)

const (
	// returnPoll and returnTimeout bound the wait for a site to come back after a clone: mysqld restarts and recovers.
	returnPoll    = time.Second
	returnTimeout = 20 * time.Minute
)

// provisioner brings the group's data to sites that lack it: one goroutine for each site, outside all loops. It keeps
// no state: a job that was cut off is derived again from what the servers say.
type provisioner struct {
	reach    work.Reach
	work     *work.Register
	runner   *work.Runner
	recorder *events.Recorder
	// endPod deletes a pod if it still has that UID.
	endPod func(ctx context.Context, namespace, name string, uid types.UID) error
	// done is called when a job of a group has ended, news when status must show new progress.
	done, news func(types.NamespacedName)

	slots  slots
	mu     sync.Mutex
	donors map[types.NamespacedName]chan struct{}

	withdrawn withdrawals
}

// task is one job, which finds out what to do when it runs.
type task struct {
	group *v1alpha1.MysqlFailoverGroup
	key   scope.SiteKey
	// order says whether the site's data may be replaced although it is whole, or thrown away.
	order order
	// job is this task's own in the register.
	job *work.Job
}

func newProvisioner(base *scope.Base, o Options) *provisioner {
	return &provisioner{
		reach: o.Reach, work: o.Work, runner: o.Runner, recorder: base.Recorder, endPod: EndPod(base.Client), done: o.Wake, news: o.Wake,
		donors: map[types.NamespacedName]chan struct{}{},
	}
}

// begin starts the job on a site unless one runs. An order is durable before a job begins under it.
func (p *provisioner) begin(group *v1alpha1.MysqlFailoverGroup, site string, o order) {
	t := task{group: group.DeepCopy(), key: scope.SiteKey{Group: scope.KeyOf(group), Site: site}, order: o}
	admit := func(cancel context.CancelFunc) bool {
		t.job = p.work.Begin(t.key, cancel)
		return t.job != nil
	}
	p.runner.Begin(admit, func(ctx context.Context) {
		o := p.run(ctx, t)
		o.Order = t.order.value
		t.job.Finish(o)
		p.done(t.key.Group)
	})
}

// run looks at the site and acts on the verdict. A clone first waits for its turn and looks again, because the wait may
// have been long.
func (p *provisioner) run(ctx context.Context, t task) work.Outcome {
	first, err := p.look(ctx, t)
	if err != nil {
		return work.Outcome{Verdict: work.VerdictWait, Message: err.Error()}
	}
	first.close()
	if underWay(first.last) {
		return p.resume(ctx, t, first)
	}
	if first.verdict != work.VerdictClone && first.verdict != work.VerdictReclone {
		return work.Outcome{Verdict: first.verdict, Message: first.message, Volume: first.volume, Copy: first.waits}
	}
	if why := p.losesRows(t, first.source); why != "" {
		return work.Outcome{Verdict: work.VerdictRefuse, Message: why}
	}
	if why := p.donorWaits(t, first.source); why != "" {
		return work.Outcome{Verdict: work.VerdictWait, Message: why, Donor: true}
	}
	if why := p.sealedStill(t); why != "" {
		return work.Outcome{Verdict: work.VerdictWait, Message: why, Unseal: true}
	}
	leave, err := p.turn(ctx, t.key.Group)
	if err != nil {
		return work.Outcome{Verdict: work.VerdictWait, Message: err.Error()}
	}
	defer leave()
	again, err := p.look(ctx, t)
	if err != nil {
		return work.Outcome{Verdict: work.VerdictWait, Message: err.Error()}
	}
	defer again.close()
	if again.verdict != first.verdict || again.volume != first.volume || again.epoch != first.epoch {
		return work.Outcome{Verdict: work.VerdictWait, Message: "the site has changed meanwhile"}
	}
	return p.clone(ctx, t, again)
}

// turn waits until the group's donor is free, since it serves one clone at a time, and then for a slot.
func (p *provisioner) turn(ctx context.Context, group types.NamespacedName) (func(), error) {
	p.mu.Lock()
	donor := p.donors[group]
	if donor == nil {
		donor = make(chan struct{}, 1)
		p.donors[group] = donor
	}
	p.mu.Unlock()
	select {
	case donor <- struct{}{}:
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	giveBack, err := p.slots.take(ctx, group.Namespace)
	if err != nil {
		<-donor
		return nil, err
	}
	return func() { giveBack(); <-donor }, nil
}

// sight holds what a look at a site and at the active site showed.
type sight struct {
	recipient work.Recipient
	pod       *corev1.Pod
	source    string
	// epoch is the epoch during the look: in a later one the site may have been the active site in between.
	epoch int64
	// donor is the address at which the source was read.
	donor        string
	volume       string
	site, active mysql.Status
	last         mysql.CloneStatus
	verdict      work.Verdict
	message      string
	// following is true if the site replicated at that look, waits if its clone waits for another copy.
	following, waits bool
}

func (s sight) close() {
	// The error of closing adds nothing to what the look showed.
	_ = s.recipient.Close()
}

// look reads the site, then the active site, and examines them.
func (p *provisioner) look(ctx context.Context, t task) (sight, error) {
	ctx, cancel := context.WithTimeout(ctx, work.LookTimeout)
	defer cancel()
	g, ok := p.reach.In(t.key.Group)
	if !ok || !provisionable(t.key.Site, g, t.order) {
		return sight{}, work.ErrNotNow
	}
	f := g.Sites[t.key.Site]
	s := sight{source: g.ActiveSite, epoch: g.Epoch, pod: podReference(t.group, f), volume: f.VolumeID, following: f.Following}
	recipient, err := p.reach.Open(ctx, t.group, t.key.Site, f.AdminAddr)
	if err != nil {
		return sight{}, err
	}
	s.recipient = recipient
	if err := p.read(ctx, t, &s); err != nil {
		s.close()
		return sight{}, err
	}
	s.verdict, s.message = examine(s.site, s.active, s.last, t.order)
	if s.verdict == work.VerdictClone || s.verdict == work.VerdictReclone {
		if why := p.lapsed(t, g, s.last); why != "" {
			s.verdict, s.message = work.VerdictLapse, why
		} else if why := p.waitsForCopy(t, g, s.last); why != "" {
			s.verdict, s.message, s.waits = work.VerdictWait, why, true
		} else if f.VolumeGoes {
			// What the clone brought would be gone with the pod. A site that has the data already is adopted: until then it may be needed. An
			// order is over, or it would keep such a site from that for as long as its pod lives.
			s.verdict, s.message = work.VerdictWait, volumeGoes(t.group, t.key.Site)
			if notBegun(t.order, s.last) {
				s.verdict = work.VerdictLapse
			}
		}
	}
	return s, nil
}

func (p *provisioner) read(ctx context.Context, t task, s *sight) error {
	var err error
	if s.site, err = s.recipient.Status(ctx); err != nil {
		return err
	}
	if s.last, err = s.recipient.CloneStatus(ctx); err != nil {
		return err
	}
	g, ok := p.reach.In(t.key.Group)
	if !ok || g.ActiveSite != s.source || g.Epoch != s.epoch || !g.Open {
		return work.ErrNotNow
	}
	s.donor = g.Sites[s.source].AdminAddr
	active, err := p.reach.Open(ctx, t.group, s.source, s.donor)
	if err != nil {
		return err
	}
	defer func() { _ = active.Close() }()
	s.active, err = active.Status(ctx)
	return err
}

// podReference returns as much of the site's pod as an event needs.
func podReference(group *v1alpha1.MysqlFailoverGroup, f scope.SiteFacts) *corev1.Pod {
	return &corev1.Pod{
		TypeMeta:   metav1.TypeMeta{APIVersion: "v1", Kind: "Pod"},
		ObjectMeta: metav1.ObjectMeta{Namespace: group.Namespace, Name: f.PodName, UID: types.UID(f.PodUID)},
	}
}
