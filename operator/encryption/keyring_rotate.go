// SPDX-License-Identifier: Apache-2.0

package encryption

import (
	"context"
	"errors"
	"fmt"

	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/mysql-mfg/mfg/api/v1alpha1"
	"github.com/mysql-mfg/mfg/internal/mysql"
	"github.com/mysql-mfg/mfg/operator/report/events"
	"github.com/mysql-mfg/mfg/operator/scope"
	"github.com/mysql-mfg/mfg/operator/work"
)

var eventKeyringRotationFailed = events.Warning(v1alpha1.ReasonKeyringRotationFailed, "Retry")

// errNoRotation means that the operator cannot rotate the keys of a server.
var errNoRotation = errors.New("this server has no keyring")

// rotator rotates master keys outside the loops.
type rotator struct {
	reach    work.Reach
	work     *work.Register
	runner   *work.Runner
	recorder *events.Recorder
	// done is called when the rotation of a site has ended.
	done func(types.NamespacedName)
}

// rotationTask is the rotation of one site.
type rotationTask struct {
	group *v1alpha1.MysqlFailoverGroup
	key   scope.SiteKey
	// turn is this task's own in the register.
	turn *work.Turn
}

// begin starts the rotation on a site unless one runs. By then status says durably that it may have begun.
func (p rotator) begin(group *v1alpha1.MysqlFailoverGroup, site string) {
	t := rotationTask{group: group.DeepCopy(), key: scope.SiteKey{Group: scope.KeyOf(group), Site: site}}
	admit := func(cancel context.CancelFunc) bool {
		t.turn = p.work.BeginRotation(t.key, cancel)
		return t.turn != nil
	}
	p.runner.Begin(admit, func(ctx context.Context) {
		err := p.rotate(ctx, t)
		p.tellRotation(ctx, t, err)
		t.turn.Finish(err)
		p.done(t.key.Group)
	})
}

func (p rotator) tellRotation(ctx context.Context, t rotationTask, err error) {
	if err == nil {
		countRotation(t.key.Group, RotationCompleted)
		return
	}
	if errors.Is(err, mysql.ErrLocked) {
		return // not now: nothing failed, and status says what it waits for
	}
	countRotation(t.key.Group, RotationFailed)
	log.FromContext(ctx).Error(err, "rotate master keys", "namespace", t.group.Namespace, "group", t.group.Name, "site", t.key.Site)
	p.recorder.Emit(t.group, nil, eventKeyringRotationFailed, "Rotation of the master keys of site %s did not succeed and is tried again: %v", t.key.Site, err)
}

// rotate opens a window, rotates both keys in it, and closes it again.
func (p rotator) rotate(ctx context.Context, t rotationTask) error {
	before, err := p.mayRotate(t, "")
	if err != nil {
		return err
	}
	t.turn.Open(before.PodUID)
	spec := t.group.Spec
	// The sidecar fences a window that it does not know of.
	if err := work.Pause(ctx, spec.Failover.PollInterval.Duration+spec.Sidecar.PeerCheckInterval.Duration+work.WindowMargin); err != nil {
		return err
	}
	// I20: checked again right before, since the role may have moved while the window was announced.
	f, err := p.mayRotate(t, before.PodUID)
	if err != nil {
		return err
	}
	server, err := p.reach.Open(ctx, t.group, t.key.Site, f.AdminAddr)
	if err != nil {
		return err
	}
	defer func() { _ = server.Close() }()
	keys, ok := server.(work.Rotator)
	if !ok {
		return errNoRotation
	}
	if err := keys.BeginWindow(ctx); err != nil {
		return err
	}
	if t.turn.HalfDone() {
		err = keys.RotateBinaryLogKey(ctx)
	} else {
		err = keys.RotateMasterKeys(ctx)
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), work.LookTimeout)
	defer cancel()
	// The sidecar fences a window that stays open beyond its deadline.
	return errors.Join(err, keys.EndWindow(ctx))
}

// mayRotate checks that the facts allow a rotation on a site, and that its pod is still the one checked first.
func (p rotator) mayRotate(t rotationTask, pod string) (scope.SiteFacts, error) {
	g, known := p.reach.In(t.key.Group)
	f := g.Sites[t.key.Site]
	switch {
	case !known || !g.Open:
		return f, work.ErrNotNow
	case g.ActiveSite == t.key.Site || f.Writable:
		return f, fmt.Errorf("%w: %s is the active site", work.ErrNotNow, t.key.Site)
	case !f.MysqlUp || !f.Following || f.Diverged || f.Cloning || f.AdminAddr == "":
		return f, work.ErrNotNow
	case pod != "" && f.PodUID != pod:
		return f, fmt.Errorf("%w: it has another pod", work.ErrNotNow)
	case f.Keyring == nil || f.Keyring.Sealed:
		return f, fmt.Errorf("%w: its keyring is sealed", work.ErrNotNow)
	}
	return f, nil
}
