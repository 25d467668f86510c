// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/mysql-mfg/mfg/api/v1alpha1"
	"github.com/mysql-mfg/mfg/internal/mysql"
	"github.com/mysql-mfg/mfg/operator/cacheobjects"
	"github.com/mysql-mfg/mfg/operator/render"
	"github.com/mysql-mfg/mfg/operator/report/conditions"
	"github.com/mysql-mfg/mfg/operator/report/events"
	"github.com/mysql-mfg/mfg/operator/report/metrics"
	"github.com/mysql-mfg/mfg/operator/signing"
)

// How soon a group is looked at again without an event.
const (
	whenOvertaken = 100 * time.Millisecond
	whenMoving    = 2 * time.Second
	whenWaiting   = 10 * time.Second
	whenSettled   = time.Minute // at the least
)

// looksPerSecond bounds how many groups that need nothing are looked at in a second: each look reads several Secrets live.
const looksPerSecond = 5

// whenNothing is when one of so many groups is looked at again if it needs nothing. Very many are not all looked at at once, as
// they are after a start.
func whenNothing(groups int) time.Duration {
	turn := time.Duration(groups) * time.Second / looksPerSecond
	if turn <= whenSettled {
		return whenSettled
	}
	return wait.Jitter(turn, 0.25)
}

// Options is what a Reconciler is made of.
type Options struct {
	// Client reads from the cache and writes; Live reads from the API server.
	Client client.Client
	Live   client.Reader

	Facts    Facts
	Loops    Loops
	Access   Access
	Work     *Work
	Recorder *events.Recorder
	// Keys keeps the keys that sign statements.
	Keys    *signing.Keys
	Install render.Install
	// Limits are what groups may ask for.
	Limits render.Limits
	// Escrow keeps the keyrings of encrypted groups; nil if the installation has no escrow listener.
	Escrow Escrow
	// ReachEscrow looks whether the escrow endpoint can be reached by who believes these authorities alone; nil asks nobody.
	ReachEscrow func(ctx context.Context, authorities []byte) error

	// CacheTroubles are told of what keeps cache stores from working; made by New if nil.
	CacheTroubles *cacheobjects.Troubles

	// Lease is the Lease by which this process leads, as namespace/name; empty without leader election. Holder is its own name.
	Lease, Holder string

	// PasswordServer changes and tries passwords of MySQL; nil means the servers themselves.
	PasswordServer PasswordServer

	// Dial opens a connection to a MySQL; Dial is used if nil.
	Dial func(mysql.Target) (Recipient, error)
}

// Dial is mysql.Open for Options.
func Dial(t mysql.Target) (Recipient, error) { return mysql.Open(t) }

// Reconciler converges the objects of groups.
type Reconciler struct {
	Options
	apply       *applier
	provisioner *provisioner
	rotator     rotator
	passwords   passwordWork
	escrows     escrows
	waits       waits
	leases      leaseLooks
	steering    *steering
	wakes       chan event.TypedGenericEvent[types.NamespacedName]

	mu sync.Mutex
	// said holds the last text of each event that is emitted on change only.
	said map[types.NamespacedName]map[string]string
	// unsettled holds the sites that do not do their part, and since when.
	unsettled map[siteKey]unsettled
}

// New makes a Reconciler. SetupWithManager gives it to a manager.
func New(o Options) *Reconciler {
	if o.Dial == nil {
		o.Dial = Dial
	}
	if o.PasswordServer == nil {
		o.PasswordServer = mysqlPasswords{}
	}
	if o.CacheTroubles == nil {
		o.CacheTroubles = &cacheobjects.Troubles{}
	}
	r := &Reconciler{
		Options: o, apply: newApplier(o.Client, o.Live), provisioner: newProvisioner(o), steering: newSteering(),
		wakes: make(chan event.TypedGenericEvent[types.NamespacedName], 1024),
		said:  map[types.NamespacedName]map[string]string{}, unsettled: map[siteKey]unsettled{},
	}
	r.provisioner.done, r.provisioner.news = r.Wake, r.Wake
	r.rotator = rotator{r.provisioner}
	r.apply.restored = r.tellRestored
	return r
}

// Wake has a group looked at soon. It never blocks: when nobody takes wakes, the next reconcile comes by itself.
func (r *Reconciler) Wake(key types.NamespacedName) {
	select {
	case r.wakes <- event.TypedGenericEvent[types.NamespacedName]{Object: key}:
	default:
	}
}

// scope is one reconcile of one group.
type scope struct {
	group *v1alpha1.MysqlFailoverGroup
	key   types.NamespacedName
	in    render.Input
	now   time.Time

	facts       GroupFacts
	known       bool
	deployments map[string]*appsv1.Deployment
	pods        map[string]*corev1.Pod

	// tlsReady is false while the pods have to wait for the group's certificate.
	tlsReady bool
	// accounts is the Secret with the passwords, passwords what status says of them.
	accounts  *corev1.Secret
	passwords *v1alpha1.PasswordsStatus
	// provisioned is what status will say of each site; persisted are the sites whose work ends with it.
	provisioned map[string]bool
	persisted   []siteKey
	// volumes are the data volumes on which the sites were provisioned; "" for one that is not known.
	volumes map[string]string
	// clones is what status will say of clones and of orders for them; busy is the long work that holds each site.
	clones map[string]*v1alpha1.CloneProgress
	busy   map[string]string

	// volumeNotes are what is to be said of the data volumes.
	volumeNotes []volumeNote

	keyrings keyringScope

	conditions  []conditions.Condition
	progressing *conditions.Condition
	// stopped is true if a phase had nothing to say because one before it stopped.
	stopped bool
	again   time.Duration
}

// newScope begins with what status says.
func (r *Reconciler) newScope(group *v1alpha1.MysqlFailoverGroup) *scope {
	s := &scope{
		group: group, key: keyOf(group), now: time.Now(), tlsReady: true, again: whenNothing(r.apply.groups()),
		in:          render.Input{Group: group, Install: r.Install},
		provisioned: map[string]bool{}, volumes: map[string]string{},
		clones: map[string]*v1alpha1.CloneProgress{}, busy: map[string]string{}, passwords: group.Status.Passwords.DeepCopy(),
	}
	for _, site := range group.Status.Sites {
		if site.Clone != nil {
			s.clones[site.Name] = site.Clone.DeepCopy()
		}
		s.provisioned[site.Name], s.volumes[site.Name] = site.Provisioned, site.VolumeID
	}
	return s
}

// Reconcile runs the phases over one scope, stops at the first error and writes status once.
func (r *Reconciler) Reconcile(ctx context.Context, req reconcile.Request) (result reconcile.Result, err error) {
	key := req.NamespacedName
	group := &v1alpha1.MysqlFailoverGroup{}
	// Live, because status says which sites are provisioned, and an older answer would take that away again.
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
	s.again = cmp.Or(again, s.again)
	defer func() {
		statusErr := r.writeStatus(ctx, s, err)
		if apierrors.IsConflict(statusErr) && err == nil {
			result = reconcile.Result{RequeueAfter: whenOvertaken} // somebody wrote meanwhile: begin anew with what stands
			return
		}
		if statusErr != nil {
			err = errors.Join(err, statusErr)
			return
		}
		for _, work := range s.persisted {
			r.Work.release(work)
		}
	}()
	for _, phase := range r.phases() {
		if err := phase.run(ctx, s); err != nil {
			if errors.Is(err, errStop) {
				s.stopped = true
				break
			}
			return reconcile.Result{}, fmt.Errorf("%s: %w", phase.name, err)
		}
	}
	// In turn with the new groups: what happens raises it, but looks by the clock must not keep those from ever being begun.
	return reconcile.Result{RequeueAfter: s.again, Priority: ptr.To(afterAll)}, nil
}

// errStop ends the phases without an error: what follows has to wait for a person, and a condition says so.
var errStop = errors.New("the following phases have to wait")

type phase struct {
	name string
	run  func(context.Context, *scope) error
}

func (r *Reconciler) phases() []phase {
	return []phase{
		{"add finalizer", r.addFinalizer},
		{"observe", r.observe},
		// Nothing that is wrong with an object keeps the sites that there are from being watched, least of all after a restart.
		{"go on", r.startLoop},
		// Early, so that what is wrong with the group's own objects does not keep it from following the active site.
		{"steer", r.steer},
		{"check features", r.features},
		{"make secrets", r.secrets},
		{"check TLS", r.tls},
		{"apply objects", r.objects},
		{"remove sites", r.removeSites},
		{"take up requests", r.takeUpRequests},
		{"keep keyrings", r.keyrings},
		{"roll out", r.rollOut},
		{"start loop", r.startLoop},
		{"provision", r.provision},
		{"replace passwords", r.rotatePasswords},
		{"tell about volumes", r.tellVolumes},
		// Last, because MySQL needs none of it.
		{"run cache", r.cache},
	}
}

// observe reads what later phases decide on: Deployments, pods and the facts of the poll loop.
func (r *Reconciler) observe(ctx context.Context, s *scope) error {
	mine := []client.ListOption{client.InNamespace(s.key.Namespace), client.MatchingFields{v1alpha1.IndexGroup: s.key.Name},
		client.MatchingLabels(render.GroupLabels(s.key.Name))}
	var deployments appsv1.DeploymentList
	if err := r.Client.List(ctx, &deployments, mine...); err != nil {
		return fmt.Errorf("list deployments: %w", err)
	}
	s.deployments = map[string]*appsv1.Deployment{}
	for i := range deployments.Items {
		d := &deployments.Items[i]
		if d.DeletionTimestamp == nil {
			s.deployments[d.Labels[v1alpha1.LabelSite]] = d
		}
	}
	var pods corev1.PodList
	if err := r.Client.List(ctx, &pods, mine...); err != nil {
		return fmt.Errorf("list pods: %w", err)
	}
	s.pods = map[string]*corev1.Pod{}
	for i := range pods.Items {
		p := &pods.Items[i]
		site := p.Labels[v1alpha1.LabelSite]
		if s.pods[site] == nil || newer(p, s.pods[site]) {
			s.pods[site] = p
		}
	}
	s.in.Unlisted = unlisted(s.group, pods.Items)
	s.facts, s.known = r.Facts.Sites(s.key.Namespace, s.key.Name)
	return nil
}

// newer prefers the pod that is not on its way out, then the younger one.
func newer(a, b *corev1.Pod) bool {
	if (a.DeletionTimestamp == nil) != (b.DeletionTimestamp == nil) {
		return a.DeletionTimestamp == nil
	}
	return b.CreationTimestamp.Before(&a.CreationTimestamp)
}

// startLoop has the poll loop run once there is something to poll. It runs early for the sites that exist, and again when the
// first ones have been made.
func (r *Reconciler) startLoop(_ context.Context, s *scope) error {
	if len(s.deployments) > 0 {
		r.Loops.Ensure(s.key)
	}
	return nil
}

// forget drops what is kept about a group that is gone.
func (r *Reconciler) forget(key types.NamespacedName) {
	r.Loops.Forget(key)
	r.Work.forget(key)
	r.waits.forget(key)
	r.apply.forget(key)
	r.steering.forget(key)
	r.passwords.forget(key)
	r.Work.askToLeave(key, "", "")
	r.forgetUnsettled(key)
	r.escrows.forgetGroup(key)
	r.CacheTroubles.Forget(key)
	metrics.ForgetGroup(key.Namespace, key.Name)
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.said, key)
}

// say emits an event when its text differs from the last one about the same thing.
func (r *Reconciler) say(s *scope, about string, e events.Event, text string) {
	if !r.changed(s.key, string(e.Reason)+"/"+about, text) || text == "" {
		return
	}
	r.Recorder.Emit(s.group, r.related(s, about), e, "%s", text)
}

// related is the pod of a site, for an event about it.
func (r *Reconciler) related(s *scope, site string) runtime.Object {
	if pod := s.pods[site]; pod != nil {
		return pod
	}
	return nil
}

func (r *Reconciler) changed(key types.NamespacedName, about, text string) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.said[key] == nil {
		r.said[key] = map[string]string{}
	}
	before := r.said[key][about]
	r.said[key][about] = text
	return before != text
}

// progress says what is under way or stuck. The first phase to say something is nearest to the cause.
func (s *scope) progress(c conditions.Condition, again time.Duration) {
	s.again = min(s.again, again)
	if s.progressing == nil {
		s.progressing = &c
	}
}

func moving(reason v1alpha1.Reason, message string) conditions.Condition {
	return conditions.True(v1alpha1.ConditionProgressing, reason, message)
}

func stuck(reason v1alpha1.Reason, message string) conditions.Condition {
	return conditions.False(v1alpha1.ConditionProgressing, reason, message)
}

// condition says what is so; the last phase to say something of a type knows most about it.
func (s *scope) condition(c conditions.Condition) {
	s.conditions = slices.DeleteFunc(s.conditions, func(old conditions.Condition) bool { return old.Type == c.Type })
	s.conditions = append(s.conditions, c)
}

// refuse says what the specification asks for in vain. The group runs without it: a refusal takes nothing away from a group that
// runs, and never keeps it from failing over.
func (s *scope) refuse(reason v1alpha1.Reason, message string) {
	for i, c := range s.conditions {
		if c.Type == v1alpha1.ConditionSpecRefused {
			s.conditions[i].Message += "; " + message
			return
		}
	}
	s.condition(conditions.True(v1alpha1.ConditionSpecRefused, reason, message))
}

// sites are the sites of the specification by name.
func (s *scope) sites() map[string]v1alpha1.Site {
	out := map[string]v1alpha1.Site{}
	for _, site := range s.group.Spec.Sites {
		out[site.Name] = site
	}
	return out
}

// activeSite is the site that takes writes or is about to.
func (s *scope) activeSite() string { return s.group.Status.ActiveSite }

// work is the key of the long work on a site.
func (s *scope) work(site string) siteKey { return siteKey{s.key, site} }

func keyOf(group *v1alpha1.MysqlFailoverGroup) types.NamespacedName {
	return client.ObjectKeyFromObject(group)
}

func sorted[V any](m map[string]V) []string { return slices.Sorted(maps.Keys(m)) }
