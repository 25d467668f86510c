// SPDX-License-Identifier: Apache-2.0

package clone

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/mysql-mfg/mfg/api/v1alpha1"
	"github.com/mysql-mfg/mfg/internal/mysql"
	"github.com/mysql-mfg/mfg/operator/report/events"
	"github.com/mysql-mfg/mfg/operator/report/metrics"
	"github.com/mysql-mfg/mfg/operator/scope"
	"github.com/mysql-mfg/mfg/operator/work"
)

// siteClones counts finished clones of a site, by outcome.
var siteClones = metrics.Counter(metrics.Site, "operator_site_clones_total",
	"Clones of a site from the active site, by outcome.", "outcome")

var (
	eventSiteCloning     = events.Normal(v1alpha1.ReasonSiteCloning, "Clone")
	eventSiteCloned      = events.Normal(v1alpha1.ReasonSiteCloned, "Clone")
	eventSiteCloneFailed = events.Warning(v1alpha1.ReasonSiteCloneFailed, "Clone")
)

// donorPatience is how long the active site may not be seen open before a clone from it is given up. If the donor dies,
// the clone ends anyway.
const donorPatience = 30 * time.Second

// errCopyLost means that a clone must not begin: the other copy that its order needs is gone.
var errCopyLost = errors.New("not begun: there is no other healthy copy beside the active site any more")

// errGaveUp means that the server refused a clone, or could not finish it.
var errGaveUp = errors.New("the server gave the clone up")

// clone replaces the site's data by the active site's. It holds the site from before the first change until the outcome
// is persisted.
func (p *provisioner) clone(ctx context.Context, t task, s sight) work.Outcome {
	donor, err := p.reach.Access.Donor(ctx, t.group, s.source)
	if err != nil {
		return work.Outcome{Verdict: work.VerdictWait, Message: err.Error(), Failed: true}
	}
	t.job.Hold()
	p.recorder.Emit(t.group, s.pod, eventSiteCloning, "Site %s began to clone from %s: %s", t.key.Site, s.source, s.message)
	log.FromContext(ctx).Info("cloning site", "namespace", t.group.Namespace, "group", t.group.Name, "site", t.key.Site,
		"source", s.source, "reason", s.message)
	return p.settle(ctx, t, s, p.perform(ctx, t, s, donor))
}

// resume waits for a clone that this job did not begin, for example one from before a restart of the operator.
func (p *provisioner) resume(ctx context.Context, t task, s sight) work.Outcome {
	t.job.Hold()
	if !s.site.SuperReadOnly {
		t.job.Window(true)
	}
	// What the active site has by now is later than what the clone may hold of it. The result is judged when it is over.
	s.active = mysql.Status{}
	donor := donorWatch{source: p.siteOf(ctx, t, s)}
	return p.settle(ctx, t, s, p.watch(ctx, t, s, watching{donor: donor}))
}

// siteOf is the donor of a running clone. A clone from elsewhere is a person's own and is treated as one from the active
// site: the result is judged when it is over.
func (p *provisioner) siteOf(ctx context.Context, t task, s sight) string {
	g, _ := p.reach.In(t.key.Group)
	for _, site := range t.group.Spec.Sites {
		donor, err := p.reach.Access.Donor(ctx, t.group, site.Name)
		at := sight{donor: g.Sites[site.Name].AdminAddr}.at(donor)
		if err == nil && (s.last.Source == fmt.Sprintf("%s:%d", donor.Host, donor.Port) || s.last.Source == fmt.Sprintf("%s:%d", at.Host, at.Port)) {
			return site.Name
		}
	}
	return s.source
}

// watching is what watch follows: the statement of the clone, if this job began it, and the donor.
type watching struct {
	statement <-chan error
	donor     donorWatch
}

// settle reports the outcome of a clone.
func (p *provisioner) settle(ctx context.Context, t task, s sight, err error) work.Outcome {
	if err != nil && ctx.Err() != nil {
		// The site or its group was removed, or this process stops leading, and the next one finds out how the clone goes.
		return work.Outcome{Verdict: work.VerdictWait, Message: "clone: " + err.Error(), Failed: true}
	}
	if errors.Is(err, errCopyLost) && t.order.value != orderOfPolicy {
		// The site does not follow any more, so the next try would not see that its order needs another copy (I14). It is examined without
		// the order, and attached again.
		return work.Outcome{Verdict: work.VerdictLapse, Message: err.Error() + ": order it again once another site replicates"}
	}
	if err != nil {
		log.FromContext(ctx).Error(err, "clone site", "namespace", t.group.Namespace, "group", t.group.Name, "site", t.key.Site)
		siteClones.WithLabelValues(t.group.Namespace, t.group.Name, t.key.Site, "failed").Inc()
		p.recorder.Emit(t.group, s.pod, eventSiteCloneFailed, "Clone of site %s from %s did not succeed and is tried again: %v",
			t.key.Site, s.source, err)
		return work.Outcome{Verdict: work.VerdictWait, Message: "clone: " + err.Error(), Failed: true}
	}
	siteClones.WithLabelValues(t.group.Namespace, t.group.Name, t.key.Site, "completed").Inc()
	p.recorder.Emit(t.group, s.pod, eventSiteCloned, "Site %s holds the data of %s", t.key.Site, s.source)
	return p.afterClone(ctx, t)
}

// perform runs the clone, inside a window if the site has databases.
func (p *provisioner) perform(ctx context.Context, t task, s sight, donor mysql.Donor) error {
	inWindow := s.verdict == work.VerdictReclone
	if inWindow {
		t.job.Window(true)
		defer t.job.Window(false)
		spec := t.group.Spec
		// The sidecar fences a window that it does not know of.
		if err := work.Pause(ctx, spec.Failover.PollInterval.Duration+spec.Sidecar.PeerCheckInterval.Duration+work.WindowMargin); err != nil {
			return err
		}
		if g, known := p.reach.In(t.key.Group); !known || g.ActiveSite != s.source || g.Epoch != s.epoch || !g.Open {
			return fmt.Errorf("not begun: %s is not the open active site any more", s.source)
		}
		if err := s.recipient.BeginWindow(ctx); err != nil {
			return err
		}
	}
	if err := p.unchanged(ctx, t, s); err != nil {
		return p.close(ctx, s, inWindow, err)
	}
	if inWindow || s.site.Channels > 0 {
		// An applier may take a minute to stop, and if the donor is lost in that minute the relay log may be needed.
		err := s.recipient.StopReplication(ctx)
		if err == nil {
			err = p.unchanged(ctx, t, s)
		}
		if err != nil {
			return p.close(ctx, s, inWindow, err)
		}
		// The active site has what is in the relay log too, or the person who ordered the clone gave it up (examine). This
		// comes late: a poll that began before the site was held may have attached it meanwhile.
		if err := s.recipient.DropReplication(ctx); err != nil {
			return p.close(ctx, s, inWindow, err)
		}
	}
	statement := make(chan error, 1)
	ctx, giveUp := context.WithCancel(ctx)
	defer giveUp() // a statement that nobody waits for any more holds a connection
	go func() { statement <- s.recipient.Clone(ctx, s.at(donor)) }()
	err := p.watch(ctx, t, s, watching{statement: statement, donor: donorWatch{source: s.source}})
	// A clone that ran ends in a restart, which closes the window; a refused one does not.
	return p.close(ctx, s, inWindow && errors.Is(err, errGaveUp), err)
}

// unchanged looks a last time, since a window takes seconds to open: there must be no clone from a donor that has lost its
// data meanwhile or is not open any more, nor over a site that has something new (I14; simulation, seeds 512 and 545).
func (p *provisioner) unchanged(ctx context.Context, t task, s sight) error {
	ctx, cancel := context.WithTimeout(ctx, work.LookTimeout)
	defer cancel()
	now := sight{recipient: s.recipient, source: s.source, epoch: s.epoch}
	if err := p.read(ctx, t, &now); err != nil {
		return fmt.Errorf("not begun: %w", err)
	}
	verdict, why := examine(now.site, now.active, now.last, t.order)
	switch {
	case now.donor != s.donor:
		return fmt.Errorf("not begun: %s runs elsewhere now", s.source)
	case verdict != s.verdict:
		return fmt.Errorf("not begun: %s", why)
	}
	if why := p.donorWaits(t, s.source); why != "" {
		return fmt.Errorf("not begun: %s", why)
	}
	if p.copyLost(t, s) {
		return errCopyLost
	}
	return nil
}

// at returns the donor with the address that was examined, so that no other server answers under its name. MySQL
// accepts no IPv6 address here.
func (s sight) at(donor mysql.Donor) mysql.Donor {
	host, _, err := net.SplitHostPort(s.donor)
	if ip := net.ParseIP(host); err == nil && ip.To4() != nil {
		donor.Host = ip.String()
	}
	return donor
}

// close ends a window that an error left open.
func (*provisioner) close(ctx context.Context, s sight, open bool, err error) error {
	if !open {
		return err
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), work.LookTimeout)
	defer cancel()
	if endErr := s.recipient.EndWindow(ctx); endErr != nil {
		return fmt.Errorf("%w; %w", err, endErr)
	}
	return err
}

// watch waits until a clone is over and the site is back, and asks the site how it went: the connection that ran the
// clone cannot know, since the server restarts under it. It reports how far the clone is, and cancels it when the donor
// is no longer the open active site, or when it comes no further.
func (p *provisioner) watch(ctx context.Context, t task, s sight, w watching) error {
	deadline := time.Now().Add(returnTimeout)
	statement, donor := w.statement, w.donor
	speed, grown := pace{source: donor.source, began: time.Now()}, growth{}
	for time.Now().Before(deadline) {
		over, err := waitFor(ctx, statement)
		if err != nil {
			return donor.explain(err)
		}
		if over {
			// From here on the server restarts, fenced.
			t.job.Window(false)
			statement = nil
		}
		st, last, err := p.ask(ctx, t)
		if err != nil {
			continue // the site is restarting; the deadline bounds the wait
		}
		if statement != nil || underWay(last) {
			// A large clone takes hours; as long as it comes further, there is no hurry. One that hangs must not keep other sites from being
			// cloned, whatever the server says, nor whatever it makes of the KILL.
			stalled := grown.look(last, time.Now())
			if stalled == "" {
				deadline = time.Now().Add(returnTimeout)
			}
			if underWay(last) { // otherwise it has not begun, and the server reports another clone
				p.tell(t, &speed, last)
				p.cancelWithout(ctx, t, &donor, stalled)
			}
			continue
		}
		switch {
		case last.State != cloneCompleted:
			return donor.explain(fmt.Errorf("the clone ended as %q (error %d: %s)", last.State, last.ErrorNo, last.Message))
		case !underWay(s.last) && last.Began != "" && last.Began == s.last.Began:
			return errors.New("the clone did not begin")
		case !st.Executed.Contains(s.active.Executed):
			return errors.New("the site lacks transactions that the source had before the clone")
		default:
			return nil
		}
	}
	return donor.explain(fmt.Errorf("the site did not come back within %s", returnTimeout))
}

// waitFor waits a moment, or until the statement ends. over is true if it ended in the clone, or if its outcome is unknown.
func waitFor(ctx context.Context, statement <-chan error) (over bool, err error) {
	timer := time.NewTimer(returnPoll)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return false, ctx.Err()
	case err := <-statement:
		if err != nil && !errors.Is(err, mysql.ErrCloneOutcomeUnknown) {
			return false, fmt.Errorf("%w: %w", errGaveUp, err)
		}
		return true, nil
	case <-timer.C:
		return false, nil
	}
}

// tell puts into status how far the clone is, if that is news.
func (p *provisioner) tell(t task, speed *pace, last mysql.CloneStatus) {
	now := time.Now()
	if t.job.Advance(speed.progress(last, now), now) {
		p.news(t.key.Group)
	}
}

// donorWatch notices when the source of a clone is no longer the open active site.
type donorWatch struct {
	source string
	closed time.Time
	// lost says why the clone was cancelled.
	lost error
}

// look says why a clone from the source must stop; empty if it may continue.
func (d *donorWatch) look(g scope.GroupFacts, now time.Time) string {
	switch {
	case g.ActiveSite != d.source:
		// It copies data that the group will not continue with.
		return fmt.Sprintf("the active site is %s now", g.ActiveSite)
	case g.Open:
		d.closed = time.Time{}
	case d.closed.IsZero():
		d.closed = now
	case now.Sub(d.closed) >= donorPatience:
		return fmt.Sprintf("%s has not been open for %s", d.source, donorPatience)
	}
	return ""
}

// explain prefixes the error of a cancelled clone with the reason for the cancellation.
func (d *donorWatch) explain(err error) error {
	if d.lost == nil {
		return err
	}
	return fmt.Errorf("%w: %w", d.lost, err)
}

// cancelWithout cancels a clone whose donor is lost, or that comes no further (stalled says why), at every look until the
// clone ends. If mysqld hangs over it, cancelWithout ends the site's pod, and mysqld with it: nothing else brings the site
// back, and there is nothing to lose, since the clone has thrown the site's data away and a busy site is no candidate.
func (p *provisioner) cancelWithout(ctx context.Context, t task, d *donorWatch, stalled string) {
	g, known := p.reach.In(t.key.Group)
	if !known {
		return // nothing is known of the donor; what it has sent so far is whole
	}
	why := cmp.Or(d.look(g, time.Now()), stalled)
	if why == "" {
		return
	}
	d.lost = errors.New("cancelled: " + why)
	site := g.Sites[t.key.Site]
	server, err := p.reach.Open(ctx, t.group, t.key.Site, site.AdminAddr)
	if err != nil {
		return
	}
	defer func() { _ = server.Close() }()
	err = server.CancelClone(ctx)
	if errors.Is(err, mysql.ErrCloneHangs) {
		log.FromContext(ctx).Error(err, "end the pod of a clone that cannot be cancelled", "site", t.key.Site, "pod", site.PodName)
		err = p.endPod(ctx, t.key.Group.Namespace, site.PodName, types.UID(site.PodUID))
	}
	if err != nil {
		log.FromContext(ctx).Error(err, "cancel clone", "site", t.key.Site)
	}
}

// EndPod deletes a pod if it still has that UID. A pod that is gone, or another one of the same name, counts as success.
func EndPod(c client.Writer) func(ctx context.Context, namespace, name string, uid types.UID) error {
	return func(ctx context.Context, namespace, name string, uid types.UID) error {
		pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}}
		err := c.Delete(ctx, pod, client.Preconditions{UID: &uid})
		if err == nil || apierrors.IsNotFound(err) || apierrors.IsConflict(err) {
			return nil
		}
		return fmt.Errorf("end pod %s: %w", name, err)
	}
}

// ask reads the site, wherever its pod is now.
func (p *provisioner) ask(ctx context.Context, t task) (mysql.Status, mysql.CloneStatus, error) {
	ctx, cancel := context.WithTimeout(ctx, work.LookTimeout)
	defer cancel()
	g, _ := p.reach.In(t.key.Group)
	server, err := p.reach.Open(ctx, t.group, t.key.Site, g.Sites[t.key.Site].AdminAddr)
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

// afterClone looks once more: the active site may have changed while the clone ran. The order counts as carried out:
// the site's data is now judged like any other's.
func (p *provisioner) afterClone(ctx context.Context, t task) work.Outcome {
	t.order = t.order.carriedOut()
	for range 30 {
		s, err := p.look(ctx, t)
		if err == nil {
			s.close()
			if s.verdict != work.VerdictWait {
				return work.Outcome{Verdict: s.verdict, Message: s.message, Cloned: true, Volume: s.volume}
			}
		}
		if work.Pause(ctx, returnPoll) != nil {
			break
		}
	}
	// The data is there; the next job finds it and adopts it.
	return work.Outcome{Verdict: work.VerdictWait, Message: "the active site is not open"}
}
