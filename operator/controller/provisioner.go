// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"context"
	"errors"
	"fmt"
	"net"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/mysql-mfg/mfg/api/v1alpha1"
	"github.com/mysql-mfg/mfg/internal/mysql"
	"github.com/mysql-mfg/mfg/operator/report"
)

const (
	// maxClones bounds the clones of all groups together: each loads two sites and the network between them.
	maxClones = 8
	// lookTimeout bounds what is asked of a site while it is looked at.
	lookTimeout = 10 * time.Second
	// returnPoll and returnTimeout bound the wait for a site to come back after a clone: mysqld restarts and recovers.
	returnPoll    = time.Second
	returnTimeout = 20 * time.Minute
	// windowMargin is added to the time in which a sidecar hears of a window.
	windowMargin = 2 * time.Second
)

// errNotNow means that the facts do not allow to go on; the next reconcile looks again.
var errNotNow = errors.New("the facts do not allow it now")

// provisioner brings the group's data to sites that do not have it: one goroutine for each site, beside all loops. It
// keeps nothing: a job that is cut off is derived again from what the servers say.
type provisioner struct {
	work     *Work
	facts    Facts
	access   Access
	dial     func(mysql.Target) (Recipient, error)
	recorder *report.Recorder
	// done tells that a job of a group has ended.
	done func(types.NamespacedName)

	mu      sync.Mutex
	base    context.Context
	running sync.WaitGroup
	all     chan struct{}
	donors  map[types.NamespacedName]chan struct{}
}

// task is one job: what to do is found out when it runs.
type task struct {
	group *v1alpha1.MysqlFailoverGroup
	key   siteKey
}

func newProvisioner(o Options) *provisioner {
	return &provisioner{
		work: o.Work, facts: o.Facts, access: o.Access, recorder: o.Recorder, dial: o.Dial,
		all: make(chan struct{}, maxClones), donors: map[types.NamespacedName]chan struct{}{},
	}
}

// NeedLeaderElection says that no two operators may provision at once.
func (p *provisioner) NeedLeaderElection() bool { return true }

// Start lets jobs run until ctx ends, and waits for them.
func (p *provisioner) Start(ctx context.Context) error {
	p.mu.Lock()
	p.base = ctx
	p.mu.Unlock()
	<-ctx.Done()
	p.running.Wait()
	return nil
}

// begin starts the job on a site unless there is one.
func (p *provisioner) begin(group *v1alpha1.MysqlFailoverGroup, site string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.base == nil || p.base.Err() != nil {
		return
	}
	t := task{group: group.DeepCopy(), key: siteKey{keyOf(group), site}}
	ctx, cancel := context.WithCancel(p.base)
	if !p.work.begin(t.key, cancel) {
		cancel()
		return
	}
	p.running.Go(func() {
		defer cancel()
		o := p.run(ctx, t)
		p.work.finish(t.key, o)
		p.done(t.key.group)
	})
}

// run looks at the site and does what the look says. A clone first gets its turn and looks again, because the wait may
// have been long.
func (p *provisioner) run(ctx context.Context, t task) outcome {
	first, err := p.look(ctx, t)
	if err != nil {
		return outcome{verdict: verdictWait, message: err.Error()}
	}
	first.close()
	if first.verdict != verdictClone && first.verdict != verdictReclone {
		return outcome{verdict: first.verdict, message: first.message, volume: first.volume}
	}
	leave, err := p.turn(ctx, t.key.group)
	if err != nil {
		return outcome{verdict: verdictWait, message: err.Error()}
	}
	defer leave()
	again, err := p.look(ctx, t)
	if err != nil {
		return outcome{verdict: verdictWait, message: err.Error()}
	}
	defer again.close()
	if again.verdict != first.verdict || again.volume != first.volume {
		return outcome{verdict: verdictWait, message: "the site has changed meanwhile"}
	}
	return p.clone(ctx, t, again)
}

// turn waits until the group's donor is free, which serves one clone at a time, and not too many clones run.
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
	select {
	case p.all <- struct{}{}:
	case <-ctx.Done():
		<-donor
		return nil, ctx.Err()
	}
	return func() { <-p.all; <-donor }, nil
}

// sight is what a look at a site and at the active site showed.
type sight struct {
	recipient    Recipient
	pod          *corev1.Pod
	source       string
	volume       string
	site, active mysql.Status
	last         mysql.CloneStatus
	verdict      verdict
	message      string
}

func (s sight) close() {
	// The error of closing says nothing that the look has not said.
	_ = s.recipient.Close()
}

// look reads the site, then the active site, and examines them.
func (p *provisioner) look(ctx context.Context, t task) (sight, error) {
	ctx, cancel := context.WithTimeout(ctx, lookTimeout)
	defer cancel()
	g, ok := p.facts.Sites(t.key.group.Namespace, t.key.group.Name)
	if !ok || !provisionable(t.key.site, g) {
		return sight{}, errNotNow
	}
	f := g.Sites[t.key.site]
	s := sight{source: g.ActiveSite, pod: podReference(t.group, f), volume: f.VolumeID}
	recipient, err := p.open(ctx, t, f.AdminAddr, t.key.site)
	if err != nil {
		return sight{}, err
	}
	s.recipient = recipient
	if err := p.read(ctx, t, &s); err != nil {
		s.close()
		return sight{}, err
	}
	s.verdict, s.message = examine(s.site, s.active, s.last)
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
	g, ok := p.facts.Sites(t.key.group.Namespace, t.key.group.Name)
	if !ok || g.ActiveSite != s.source || !g.Open {
		return errNotNow
	}
	active, err := p.open(ctx, t, g.Sites[s.source].AdminAddr, s.source)
	if err != nil {
		return err
	}
	defer func() { _ = active.Close() }()
	s.active, err = active.Status(ctx)
	return err
}

func (p *provisioner) open(ctx context.Context, t task, addr, site string) (Recipient, error) {
	ip, _, err := net.SplitHostPort(addr)
	if err != nil {
		return nil, errNotNow
	}
	target, err := p.access.Site(ctx, t.group, site, ip)
	if err != nil {
		return nil, fmt.Errorf("reach %s: %w", site, err)
	}
	// Never more patient than the loop: here nobody waits.
	target.DialTimeout, target.QueryTimeout = 3*time.Second, 5*time.Second
	return p.dial(target)
}

// clone replaces the site's data by the active site's. The site is held from before the first change until the
// outcome is persisted.
func (p *provisioner) clone(ctx context.Context, t task, s sight) outcome {
	logger := log.FromContext(ctx).WithValues("namespace", t.group.Namespace, "group", t.group.Name, "site", t.key.site)
	donor, err := p.access.Donor(ctx, t.group, s.source)
	if err != nil {
		return outcome{verdict: verdictWait, message: err.Error(), failed: true}
	}
	p.work.hold(t.key, PurposeClone)
	p.recorder.Emit(t.group, s.pod, report.SiteCloning, "Site %s began to clone from %s: %s", t.key.site, s.source, s.message)
	logger.Info("cloning site", "source", s.source, "reason", s.message)
	err = p.perform(ctx, t, s, donor)
	if err == nil || errors.Is(err, mysql.ErrCloneOutcomeUnknown) {
		err = p.verify(ctx, t, s.active)
	}
	if err != nil {
		logger.Error(err, "clone site")
		report.Clones.WithLabelValues(t.group.Namespace, t.group.Name, t.key.site, "failed").Inc()
		p.recorder.Emit(t.group, s.pod, report.SiteCloneFailed, "Clone of site %s from %s did not succeed and is tried again: %v",
			t.key.site, s.source, err)
		return outcome{verdict: verdictWait, message: "clone: " + err.Error(), failed: true}
	}
	report.Clones.WithLabelValues(t.group.Namespace, t.group.Name, t.key.site, "completed").Inc()
	p.recorder.Emit(t.group, s.pod, report.SiteCloned, "Site %s holds the data of %s", t.key.site, s.source)
	return p.afterClone(ctx, t)
}

// perform carries the clone out, inside a window if the site has databases.
func (p *provisioner) perform(ctx context.Context, t task, s sight, donor mysql.Donor) error {
	if s.verdict != verdictReclone {
		return s.recipient.Clone(ctx, donor)
	}
	p.work.window(t.key, true)
	defer p.work.window(t.key, false)
	spec := t.group.Spec
	// The sidecar fences a window that it has not heard of.
	if err := pause(ctx, spec.Failover.PollInterval.Duration+spec.Sidecar.PeerCheckInterval.Duration+windowMargin); err != nil {
		return err
	}
	if err := s.recipient.BeginWindow(ctx); err != nil {
		return err
	}
	err := s.recipient.Clone(ctx, donor)
	if err != nil && !errors.Is(err, mysql.ErrCloneOutcomeUnknown) {
		// A clone that runs ends in a restart, which closes the window; one that was refused does not.
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), lookTimeout)
		defer cancel()
		return errors.Join(err, s.recipient.EndWindow(ctx))
	}
	return err
}

// verify waits for the site to come back and asks it how the clone went. The connection that ran the clone cannot know:
// the server restarts under it.
func (p *provisioner) verify(ctx context.Context, t task, donor mysql.Status) error {
	deadline := time.Now().Add(returnTimeout)
	for time.Now().Before(deadline) {
		if err := pause(ctx, returnPoll); err != nil {
			return err
		}
		st, last, err := p.ask(ctx, t)
		if err != nil {
			continue // the site is restarting; the deadline bounds the wait
		}
		switch {
		case last.State == cloneInProgress || last.State == cloneNotStarted:
			// A large clone takes hours; as long as the site says that it goes on, nobody is in a hurry.
			deadline = time.Now().Add(returnTimeout)
		case last.State != cloneCompleted:
			return fmt.Errorf("the clone ended as %q (error %d: %s)", last.State, last.ErrorNo, last.Message)
		case !st.Executed.Contains(donor.Executed):
			return errors.New("the site lacks transactions that the source had before the clone")
		default:
			return nil
		}
	}
	return fmt.Errorf("the site did not come back within %s", returnTimeout)
}

// ask reads the site wherever its pod is now.
func (p *provisioner) ask(ctx context.Context, t task) (mysql.Status, mysql.CloneStatus, error) {
	ctx, cancel := context.WithTimeout(ctx, lookTimeout)
	defer cancel()
	g, _ := p.facts.Sites(t.key.group.Namespace, t.key.group.Name)
	server, err := p.open(ctx, t, g.Sites[t.key.site].AdminAddr, t.key.site)
	if err != nil {
		return mysql.Status{}, mysql.CloneStatus{}, err
	}
	defer func() { _ = server.Close() }()
	last, err := server.CloneStatus(ctx)
	if err != nil {
		return mysql.Status{}, mysql.CloneStatus{}, err
	}
	st, err := server.Status(ctx)
	return st, last, err
}

// afterClone looks once more: the active site may have changed while the clone ran.
func (p *provisioner) afterClone(ctx context.Context, t task) outcome {
	for range 30 {
		s, err := p.look(ctx, t)
		if err == nil {
			s.close()
			if s.verdict != verdictWait {
				return outcome{verdict: s.verdict, message: s.message, cloned: true, volume: s.volume}
			}
		}
		if pause(ctx, returnPoll) != nil {
			break
		}
	}
	// The data is there; the next job finds it and adopts it.
	return outcome{verdict: verdictWait, message: "the active site is not open"}
}

func pause(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-timer.C:
		return nil
	}
}

// podReference is the site's pod as far as an event needs it.
func podReference(group *v1alpha1.MysqlFailoverGroup, f SiteFacts) *corev1.Pod {
	return &corev1.Pod{
		TypeMeta:   metav1.TypeMeta{APIVersion: "v1", Kind: "Pod"},
		ObjectMeta: metav1.ObjectMeta{Namespace: group.Namespace, Name: f.PodName, UID: types.UID(f.PodUID)},
	}
}
