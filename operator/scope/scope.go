// SPDX-License-Identifier: Apache-2.0

package scope

import (
	"errors"
	"maps"
	"slices"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/mysql-mfg/mfg/api/v1alpha1"
	"github.com/mysql-mfg/mfg/operator/render"
	"github.com/mysql-mfg/mfg/operator/report/conditions"
	"github.com/mysql-mfg/mfg/operator/report/events"
)

// How soon a group is looked at again without an event.
const (
	WhenOvertaken = 100 * time.Millisecond
	WhenMoving    = 2 * time.Second
	WhenWaiting   = 10 * time.Second
	WhenSettled   = time.Minute // at the least
)

// Scope is one reconcile of one group.
type Scope struct {
	Group *v1alpha1.MysqlFailoverGroup
	Key   types.NamespacedName
	In    render.Input
	Now   time.Time

	Facts       GroupFacts
	Known       bool
	Deployments map[string]*appsv1.Deployment
	Pods        map[string]*corev1.Pod
	// Nodes are the nodes, by name, of the pods that are not ready.
	Nodes map[string]*corev1.Node
	// SilentFor is how long this process has seen that mysqld does not start in the pod of a site.
	SilentFor map[string]time.Duration

	// TLSReady is false while the pods must wait for the group's certificate.
	TLSReady bool
	// TLSUsable is true if the certificate of spec.tls is usable and may be used. TLS is what status will say of the steps to TLS.
	TLSUsable bool
	TLS       *v1alpha1.TLSStatus
	// Certificate is what status will say of the certificate in the Secret of spec.tls; nil if there is none.
	Certificate *v1alpha1.CertificateStatus
	// Accounts is the Secret with the passwords, Passwords is what status will say of them.
	Accounts  *corev1.Secret
	Passwords *v1alpha1.PasswordsStatus
	// ApplicationSecret is the Secret of the application; nil if there is none. ApplicationTrouble says why it is unusable, if a person must
	// repair it. Application is what status says of its database, once made.
	ApplicationSecret  *corev1.Secret
	ApplicationTrouble string
	Application        *v1alpha1.ApplicationStatus
	// Provisioned is what status will say of each site; Persisted are the sites whose work ends with it.
	Provisioned map[string]bool
	Persisted   []SiteKey
	// Volumes are the data volumes on which the sites were provisioned; "" if not known.
	Volumes map[string]string
	// Clones is what status will say of clones and of orders for them; Busy is the long work that holds each site.
	Clones map[string]*v1alpha1.CloneProgress
	Busy   map[string]string

	// Restore is what status will say of the restore of a new group. RestoreSite is the site that gets, or got, the backup; while
	// RestorePending only that site may have a pod, or no site if RestoreSite is empty.
	Restore        *v1alpha1.RestoreStatus
	RestoreSite    string
	RestorePending bool

	// Refused are the new sites that can have no pod now, because an object of theirs cannot be made: the API server refuses it, or
	// one of its name belongs to somebody else.
	Refused map[string]bool

	// Upgrade knows what only another version of the operator changes.
	Upgrade Upgrade

	// Terminating are the sites whose volume claim is being deleted: their data is gone as soon as their pod ends.
	Terminating map[string]bool
	// Leaving is true for the sites that left the specification and have objects yet; nil until that was looked for.
	Leaving map[string]bool
	// Kept says of sites that left the specification why they stay, if no phase has the group wait for it: what else there is to say of
	// the group's progress is closer to the cause, and comes first.
	Kept []string
	// VolumeNotes are what status and events will say of the data volumes.
	VolumeNotes []VolumeNote

	Keyrings Keyrings

	Conditions  []conditions.Condition
	Progressing *conditions.Condition
	// Stopped is true if a phase had nothing to say because an earlier one stopped.
	Stopped bool
	Again   time.Duration
}

// ErrStop ends the phases without an error: the rest must wait for a person, and a condition says so.
var ErrStop = errors.New("the following phases have to wait")

// Progress says what is under way or stuck. The first phase to say something is closest to the cause.
func (s *Scope) Progress(c conditions.Condition, again time.Duration) {
	s.Again = min(s.Again, again)
	if s.Progressing == nil {
		s.Progressing = &c
	}
}

// Moving is the condition Progressing for something under way.
func Moving(reason v1alpha1.Reason, message string) conditions.Condition {
	return conditions.True(v1alpha1.ConditionProgressing, reason, message)
}

// Stuck is the condition Progressing for something that waits, or is done.
func Stuck(reason v1alpha1.Reason, message string) conditions.Condition {
	return conditions.False(v1alpha1.ConditionProgressing, reason, message)
}

// Condition sets a condition; the last phase to set one of a type knows most about it.
func (s *Scope) Condition(c conditions.Condition) {
	s.Conditions = slices.DeleteFunc(s.Conditions, func(old conditions.Condition) bool { return old.Type == c.Type })
	s.Conditions = append(s.Conditions, c)
}

// Refuse reports what the specification asks for in vain. The group runs without it: a refusal takes nothing away from a running
// group, and never keeps it from failing over.
func (s *Scope) Refuse(reason v1alpha1.Reason, message string) {
	for i, c := range s.Conditions {
		if c.Type == v1alpha1.ConditionSpecRefused {
			s.Conditions[i].Message += "; " + message
			return
		}
	}
	s.Condition(conditions.True(v1alpha1.ConditionSpecRefused, reason, message))
}

// Sites returns the sites of the specification by name.
func (s *Scope) Sites() map[string]v1alpha1.Site {
	out := map[string]v1alpha1.Site{}
	for _, site := range s.Group.Spec.Sites {
		out[site.Name] = site
	}
	return out
}

// ActiveSite is the site that takes writes or is about to.
func (s *Scope) ActiveSite() string { return s.Group.Status.ActiveSite }

// SiteKey is the key of the long work on a site.
func (s *Scope) SiteKey(site string) SiteKey { return SiteKey{Group: s.Key, Site: site} }

// KeyOf is the key of a group.
func KeyOf(group *v1alpha1.MysqlFailoverGroup) types.NamespacedName {
	return client.ObjectKeyFromObject(group)
}

// Sorted returns the keys of a map in order.
func Sorted[V any](m map[string]V) []string { return slices.Sorted(maps.Keys(m)) }

// Keyrings is what a reconcile knows of keyrings.
type Keyrings struct {
	// Kept says for each site why its pod must not be replaced.
	Kept map[string]string
	// Unreadable are the sites whose data cannot be read where it is, so that they can only be cloned again.
	Unreadable map[string]bool
	// Missing are those whose escrow Secret is gone or changed.
	Missing map[string]bool
}

// VolumeNote is what status and events will say of a site's data volume.
type VolumeNote struct {
	Site    string
	Reason  v1alpha1.Reason
	Message string
	Event   events.Event
}

// SiteKey identifies a site of a group.
type SiteKey struct {
	Group types.NamespacedName
	Site  string
}

// Open is true once the active site was seen writable under this very epoch, and while the role is not moving away again.
func (s *Scope) Open() bool {
	status := &s.Group.Status
	return status.ActiveSite != "" && status.Transition == nil && s.Known && s.Facts.Open &&
		s.Facts.ActiveSite == status.ActiveSite && s.Facts.Epoch == status.Epoch
}

// Keep repeats what a condition already says.
func (s *Scope) Keep(c *metav1.Condition) {
	s.Condition(conditions.Condition{Type: c.Type, Status: c.Status, Reason: v1alpha1.Reason(c.Reason), Message: c.Message})
}
