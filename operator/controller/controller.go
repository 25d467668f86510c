// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/mysql-mfg/mfg/api/v1alpha1"
	"github.com/mysql-mfg/mfg/internal/mysql"
	"github.com/mysql-mfg/mfg/operator/accounts"
	"github.com/mysql-mfg/mfg/operator/apply"
	"github.com/mysql-mfg/mfg/operator/cacheobjects"
	"github.com/mysql-mfg/mfg/operator/certificates"
	"github.com/mysql-mfg/mfg/operator/clone"
	"github.com/mysql-mfg/mfg/operator/encryption"
	"github.com/mysql-mfg/mfg/operator/follow"
	"github.com/mysql-mfg/mfg/operator/keyring"
	"github.com/mysql-mfg/mfg/operator/limits"
	"github.com/mysql-mfg/mfg/operator/render"
	"github.com/mysql-mfg/mfg/operator/report/events"
	"github.com/mysql-mfg/mfg/operator/report/metrics"
	"github.com/mysql-mfg/mfg/operator/restoring"
	"github.com/mysql-mfg/mfg/operator/scope"
	"github.com/mysql-mfg/mfg/operator/securing"
	"github.com/mysql-mfg/mfg/operator/signing"
	"github.com/mysql-mfg/mfg/operator/work"
)

// looksPerSecond bounds how many idle groups are looked at in a second: each look reads several Secrets live.
const looksPerSecond = 5

// whenNothing is after how long a group is looked at again if it needs nothing, given the number of groups. It spreads very
// many groups, which are all looked at at once after a start.
func whenNothing(groups int) time.Duration {
	turn := time.Duration(groups) * time.Second / looksPerSecond
	if turn <= scope.WhenSettled {
		return scope.WhenSettled
	}
	return wait.Jitter(turn, 0.25)
}

// Options holds what a Reconciler is made of.
type Options struct {
	// Client reads from the cache and writes; Live reads from the API server.
	Client client.Client
	Live   client.Reader

	Facts    scope.Facts
	Loops    Loops
	Access   work.Access
	Work     *work.Register
	Recorder *events.Recorder
	// Keys keeps the keys that sign statements.
	Keys    *signing.Keys
	Install render.Install
	// Proven are the features that this version supports.
	Proven v1alpha1.Proven
	// Limits bound what groups may ask for.
	Limits limits.Limits
	// Escrow keeps the keyrings of encrypted groups; nil if the installation has no escrow listener.
	Escrow encryption.Escrow
	// ReachEscrow checks that a client which trusts these authorities alone can reach the escrow endpoint; nil skips the check.
	ReachEscrow func(ctx context.Context, authorities []byte) error

	// OwnAuthorities and KeepTrust are set if the operator makes the certificate of that endpoint: see encryption.Options.
	OwnAuthorities func() []byte
	KeepTrust      func(ctx context.Context, group *v1alpha1.MysqlFailoverGroup, site string) error

	// CacheTroubles collects what keeps cache stores from working; New makes it if nil.
	CacheTroubles *cacheobjects.Troubles

	// Lease is the Lease by which this process leads, as namespace/name; empty without leader election. Holder is its own name.
	Lease, Holder string

	// Turns says when it is a group's turn to get the pods of another operator version; if nil, it is always every group's turn.
	// Revision names this version, with the settings of the installation.
	Turns    Turns
	Revision string

	// PasswordServer changes and tries passwords of MySQL; nil means the servers themselves.
	PasswordServer accounts.Server
	// ApplicationServer is what the operator logs in to as the application of a group; nil means the servers themselves.
	ApplicationServer accounts.ApplicationServer

	// Dial opens a connection to a MySQL; nil means work.Dial.
	Dial func(mysql.Target) (work.Recipient, error)
}

// Reconciler converges the objects of groups.
type Reconciler struct {
	Options
	base  *scope.Base
	apply *apply.Applier
	// runner runs the long work of all parts.
	runner     *work.Runner
	follow     *follow.Follow
	encryption *encryption.Encryption
	clones     *clone.Clones
	passwords  *accounts.Passwords
	apps       *accounts.Application
	made       *certificates.Groups
	restores   *restoring.Restores
	securing   *securing.Steps
	leases     leaseLooks
	wakes      chan event.TypedGenericEvent[types.NamespacedName]

	mu sync.Mutex
	// unsettled holds the sites that are not settled, and since when.
	unsettled map[scope.SiteKey]unsettled
}

// New makes a Reconciler. SetupWithManager gives it to a manager.
func New(o Options) *Reconciler {
	if o.Dial == nil {
		o.Dial = work.Dial
	}
	if o.CacheTroubles == nil {
		o.CacheTroubles = &cacheobjects.Troubles{}
	}
	r := &Reconciler{
		Options: o, base: &scope.Base{Client: o.Client, Live: o.Live, Recorder: o.Recorder}, apply: apply.NewApplier(o.Client, o.Live), runner: &work.Runner{},
		wakes: make(chan event.TypedGenericEvent[types.NamespacedName], 1024), unsettled: map[scope.SiteKey]unsettled{},
	}
	r.apply.Restored = r.tellRestored
	reach := work.Reach{Facts: o.Facts, Access: o.Access, Dial: o.Dial}
	r.follow = follow.New(r.base, r.apply, o.Limits)
	r.clones = clone.New(r.base, clone.Options{Work: o.Work, Runner: r.runner, Reach: reach, Wake: r.Wake, Paused: r.pausedUntil})
	r.encryption = encryption.New(r.base, encryption.Options{
		Port: port{r}, Work: o.Work, Runner: r.runner, Reach: reach, Wake: r.Wake,
		Escrow: o.Escrow, EscrowURL: o.Install.EscrowURL, ReachEscrow: o.ReachEscrow, GroupOf: groupOf,
		OwnAuthorities: o.OwnAuthorities, KeepTrust: o.KeepTrust,
	})
	r.passwords = accounts.New(r.base, accounts.Options{Access: o.Access, Server: o.PasswordServer, Runner: r.runner, Wake: r.Wake, Pauses: accounts.UsualPauses})
	r.apps = accounts.NewApplication(r.base, accounts.ApplicationOptions{Access: o.Access, Server: o.ApplicationServer, Runner: r.runner, Wake: r.Wake, Pauses: accounts.UsualPauses, Secret: r.once})
	r.made = &certificates.Groups{Base: r.base, Adopt: func(ctx context.Context, s *scope.Scope, secret *corev1.Secret) error {
		return r.adopt(ctx, s, render.RootSecret(s.In, ""), secret) // labels and owner, not its content
	}}
	r.securing = &securing.Steps{Base: r.base, Access: o.Access, Dial: o.Dial}
	r.restores = restoring.New(r.base, restoring.Options{
		Image: func() bool { return r.Install.BackupImage != "" }, Proven: func() v1alpha1.Proven { return r.Proven }, Versions: r.encryption.Versions, Trouble: scope.PodTrouble, Paused: r.pausedUntil, EndPod: clone.EndPod(o.Client),
	})
	return r
}

// port is what encryption needs from the Reconciler.
type port struct{ r *Reconciler }

// NewScope implements Port.
func (p port) NewScope(group *v1alpha1.MysqlFailoverGroup) *scope.Scope { return p.r.newScope(group) }

// Observe implements Port.
func (p port) Observe(ctx context.Context, s *scope.Scope) error { return p.r.observe(ctx, s) }

// Ensure implements Port.
func (p port) Ensure(key types.NamespacedName) { p.r.Loops.Ensure(key) }

// TellIgnoredKeys implements Port.
func (p port) TellIgnoredKeys(s *scope.Scope) { p.r.ignoredKeys(s) }

// CloneWish implements Port.
func (p port) CloneWish(s *scope.Scope, site string) keyring.Clone {
	return p.r.clones.CloneWish(s, site)
}

// Wake queues a group soon. It never blocks: if no controller takes wakes, the next reconcile comes anyway.
func (r *Reconciler) Wake(key types.NamespacedName) {
	select {
	case r.wakes <- event.TypedGenericEvent[types.NamespacedName]{Object: key}:
	default:
	}
}

// newScope begins with what status says.
func (r *Reconciler) newScope(group *v1alpha1.MysqlFailoverGroup) *scope.Scope {
	s := &scope.Scope{
		Group: group, Key: scope.KeyOf(group), Now: time.Now(), TLSReady: true, Again: whenNothing(r.apply.Groups()),
		In:          render.Input{Group: group, Install: r.Install},
		Provisioned: map[string]bool{}, Volumes: map[string]string{}, Refused: map[string]bool{}, Terminating: map[string]bool{},
		Clones: map[string]*v1alpha1.CloneProgress{}, Busy: map[string]string{}, Passwords: group.Status.Passwords.DeepCopy(), Application: group.Status.Application.DeepCopy(),
		Restore: group.Status.Restore.DeepCopy(), TLS: group.Status.TLS.DeepCopy(), Upgrade: upgradeOf(r, group),
	}
	for _, site := range group.Status.Sites {
		if site.Clone != nil {
			s.Clones[site.Name] = site.Clone.DeepCopy()
		}
		s.Provisioned[site.Name], s.Volumes[site.Name] = site.Provisioned, site.VolumeID
	}
	return s
}

// Reconcile runs the phases over one scope, stops at the first error and writes status once.
func (r *Reconciler) Reconcile(ctx context.Context, req reconcile.Request) (result reconcile.Result, err error) {
	key := req.NamespacedName
	group := &v1alpha1.MysqlFailoverGroup{}
	// Live, because status says which sites are provisioned, and an older answer would undo that.
	if err := r.Live.Get(ctx, key, group); err != nil {
		if apierrors.IsNotFound(err) {
			r.forget(key)
			return reconcile.Result{}, nil
		}
		return reconcile.Result{}, fmt.Errorf("read group: %w", err)
	}
	mine, again, err := r.claimed(ctx, group)
	if err != nil || !mine {
		return reconcile.Result{RequeueAfter: again, Priority: ptr.To(afterAll)}, err
	}
	if group.DeletionTimestamp != nil {
		again, err := r.finalize(ctx, group)
		return reconcile.Result{RequeueAfter: again, Priority: ptr.To(afterAll)}, err
	}
	s := r.newScope(group)
	s.Again = cmp.Or(again, s.Again)
	defer func() {
		statusErr := r.writeStatus(ctx, s, err)
		if apierrors.IsConflict(statusErr) && err == nil {
			result = reconcile.Result{RequeueAfter: scope.WhenOvertaken} // the group was written meanwhile: begin again with its present state
			return
		}
		if statusErr != nil {
			err = errors.Join(err, statusErr)
			return
		}
		for _, site := range s.Persisted {
			r.Work.Release(site)
		}
	}()
	for _, phase := range r.phases() {
		if err := phase.run(ctx, s); err != nil {
			if errors.Is(err, scope.ErrStop) {
				s.Stopped = true
				break
			}
			return reconcile.Result{}, fmt.Errorf("%s: %w", phase.name, err)
		}
	}
	// In turn with the new groups: events raise the priority, but looks by the clock must not keep new groups waiting for ever.
	return reconcile.Result{RequeueAfter: s.Again, Priority: ptr.To(afterAll)}, nil
}

type phase struct {
	name string
	run  func(context.Context, *scope.Scope) error
}

func (r *Reconciler) phases() []phase {
	return []phase{
		{"add finalizer", r.addFinalizer},
		{"observe", r.observe},
		// No trouble with an object may keep the existing sites from being watched, least of all after a restart.
		{"go on", r.startLoop},
		// Early, so that no trouble with the group's own objects keeps it from following the active site.
		{"steer", r.follow.Steer},
		{"check features", r.features},
		{"restore", r.restores.Begin},
		{"make secrets", r.secrets},
		{"give backups their password", backupPassword(r.Client)},
		{"make the Secret of the application", r.apps.KeepSecret},
		{"check TLS", r.tls},
		{"step to TLS", r.securing.Step},
		{"apply objects", r.objects},
		{"remove sites", r.removeSites},
		{"take up requests", r.takeUpRequests},
		{"keep keyrings", r.encryption.Keep},
		{"roll out", r.rollOut},
		{"start loop", r.startLoop},
		{"provision", r.clones.Provision},
		{"replace passwords", r.passwords.RotatePasswords},
		{"make the database of the application", r.apps.MakeDatabase},
		{"tell about volumes", r.tellVolumes},
		// Last, because MySQL needs none of it.
		{"run cache", r.cache},
	}
}

// observe reads what later phases base decisions on: Deployments, pods and the facts of the poll loop.
func (r *Reconciler) observe(ctx context.Context, s *scope.Scope) error {
	mine := []client.ListOption{client.InNamespace(s.Key.Namespace), client.MatchingFields{v1alpha1.IndexGroup: s.Key.Name},
		client.MatchingLabels(render.GroupLabels(s.Key.Name))}
	var deployments appsv1.DeploymentList
	if err := r.Client.List(ctx, &deployments, mine...); err != nil {
		return fmt.Errorf("list deployments: %w", err)
	}
	s.Deployments = map[string]*appsv1.Deployment{}
	for i := range deployments.Items {
		d := &deployments.Items[i]
		if d.DeletionTimestamp == nil {
			s.Deployments[d.Labels[v1alpha1.LabelSite]] = d
		}
	}
	var pods corev1.PodList
	if err := r.Client.List(ctx, &pods, mine...); err != nil {
		return fmt.Errorf("list pods: %w", err)
	}
	s.Pods = map[string]*corev1.Pod{}
	for i := range pods.Items {
		p := &pods.Items[i]
		site := p.Labels[v1alpha1.LabelSite]
		if s.Pods[site] == nil || newer(p, s.Pods[site]) {
			s.Pods[site] = p
		}
	}
	scope.LookAtNodes(ctx, s, r.Client)
	s.In.Unlisted, s.In.Restarted = unlisted(s.Group, pods.Items), restarts(s)
	s.Facts, s.Known = r.Facts.Sites(s.Key.Namespace, s.Key.Name)
	s.SilentFor = r.base.Silences.Look(s)
	return nil
}

// restarts returns the restart annotations that the pods of existing sites should have.
func restarts(s *scope.Scope) map[string]string {
	out := map[string]string{}
	for site, d := range s.Deployments {
		out[site] = v1alpha1.RestartOf(s.Group, site, d.Annotations[v1alpha1.AnnotationRestartedAt], s.Now)
	}
	return out
}

// newer prefers the pod that is not being deleted, then the younger one.
func newer(a, b *corev1.Pod) bool {
	if (a.DeletionTimestamp == nil) != (b.DeletionTimestamp == nil) {
		return a.DeletionTimestamp == nil
	}
	return b.CreationTimestamp.Before(&a.CreationTimestamp)
}

// startLoop starts the poll loop once there is something to poll. It runs early for the sites that exist, and again once the
// first ones are made.
func (r *Reconciler) startLoop(_ context.Context, s *scope.Scope) error {
	if len(s.Deployments) > 0 {
		r.Loops.Ensure(s.Key)
	}
	return nil
}

// forget drops what is remembered of a group that is gone.
func (r *Reconciler) forget(key types.NamespacedName) {
	r.Loops.Forget(key)
	r.Work.Forget(key)
	r.base.Forget(key)
	r.apply.Forget(key)
	r.follow.Forget(key)
	r.passwords.Forget(key)
	r.apps.Forget(key)
	r.Work.AskToLeave(key, "", "")
	r.forgetUnsettled(key)
	r.encryption.Forget(key)
	r.CacheTroubles.Forget(key)
	metrics.ForgetGroup(key.Namespace, key.Name)
}
