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
	// SilentFor is for how long this process has seen that mysqld does not start in the pod of a site.
	SilentFor map[string]time.Duration

	// TLSReady is false while the pods have to wait for the group's certificate.
	TLSReady bool
	// TLSUsable is true if the certificate of spec.tls is usable and may be used. TLS is what status will say of the steps to TLS.
	TLSUsable bool
	TLS       *v1alpha1.TLSStatus
	// Certificate is what status will say of the certificate in the Secret of spec.tls; nil if there is none.
	Certificate *v1alpha1.CertificateStatus
	// Accounts is the Secret with the passwords, Passwords what status says of them.
	Accounts  *corev1.Secret
	Passwords *v1alpha1.PasswordsStatus
	// ApplicationSecret is the Secret of the application; nil if there is none. ApplicationTrouble is why it is of no use, if a person has to
	// settle that. Application is what status says of its database, once made.
	ApplicationSecret  *corev1.Secret
	ApplicationTrouble string
	Application        *v1alpha1.ApplicationStatus
	// Provisioned is what status will say of each site; Persisted are the sites whose work ends with it.
	Provisioned map[string]bool
	Persisted   []SiteKey
	// Volumes are the data volumes on which the sites were provisioned; "" for one that is not known.
	Volumes map[string]string
	// Clones is what status will say of clones and of orders for them; Busy is the long work that holds each site.
	Clones map[string]*v1alpha1.CloneProgress
	Busy   map[string]string

	// Restore is what status will say of the restore of a new group. RestoreSite is the site that is, or was, given the backup; while
	// RestorePending it alone may have a pod, and nobody if it is empty.
	Restore        *v1alpha1.RestoreStatus
	RestoreSite    string
	RestorePending bool

	// Upgrade tells what only another version of the operator changes.
	Upgrade Upgrade

	// VolumeNotes are what is to be said of the data volumes.
	VolumeNotes []VolumeNote

	Keyrings Keyrings

	Conditions  []conditions.Condition
	Progressing *conditions.Condition
	// Stopped is true if a phase had nothing to say because one before it stopped.
	Stopped bool
	Again   time.Duration
}

// ErrStop ends the phases without an error: what follows has to wait for a person, and a condition says so.
var ErrStop = errors.New("the following phases have to wait")

// Progress says what is under way or stuck. The first phase to say something is nearest to the cause.
func (s *Scope) Progress(c conditions.Condition, again time.Duration) {
	s.Again = min(s.Again, again)
	if s.Progressing == nil {
		s.Progressing = &c
	}
}

// Moving is the condition Progressing of what is under way.
func Moving(reason v1alpha1.Reason, message string) conditions.Condition {
	return conditions.True(v1alpha1.ConditionProgressing, reason, message)
}

// Stuck is the condition Progressing of what waits, or is done.
func Stuck(reason v1alpha1.Reason, message string) conditions.Condition {
	return conditions.False(v1alpha1.ConditionProgressing, reason, message)
}

// Condition says what is so; the last phase to say something of a type knows most about it.
func (s *Scope) Condition(c conditions.Condition) {
	s.Conditions = slices.DeleteFunc(s.Conditions, func(old conditions.Condition) bool { return old.Type == c.Type })
	s.Conditions = append(s.Conditions, c)
}

// Refuse says what the specification asks for in vain. The group runs without it: a refusal takes nothing away from a group that
// runs, and never keeps it from failing over.
func (s *Scope) Refuse(reason v1alpha1.Reason, message string) {
	for i, c := range s.Conditions {
		if c.Type == v1alpha1.ConditionSpecRefused {
			s.Conditions[i].Message += "; " + message
			return
		}
	}
	s.Condition(conditions.True(v1alpha1.ConditionSpecRefused, reason, message))
}

// Sites are the sites of the specification by name.
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

// Sorted are the keys of a map in their order.
func Sorted[V any](m map[string]V) []string { return slices.Sorted(maps.Keys(m)) }

// Keyrings is what a reconcile knows of keyrings.
type Keyrings struct {
	// Kept says of each site why its pod must not be replaced.
	Kept map[string]string
	// Unreadable are the sites whose data cannot be read where it is, so that they can only be cloned anew.
	Unreadable map[string]bool
	// Missing are those whose escrow Secret is gone, or is not what was stored.
	Missing map[string]bool
}

// VolumeNote is what is to be said of a site's data volume.
type VolumeNote struct {
	Site    string
	Reason  v1alpha1.Reason
	Message string
	Event   events.Event
}

// SiteKey names a site of a group.
type SiteKey struct {
	Group types.NamespacedName
	Site  string
}

// Open is true once the active site of this very epoch was seen writable, and the role is not moving away again.
func (s *Scope) Open() bool {
	status := &s.Group.Status
	return status.ActiveSite != "" && status.Transition == nil && s.Known && s.Facts.Open &&
		s.Facts.ActiveSite == status.ActiveSite && s.Facts.Epoch == status.Epoch
}

// Keep says again what a condition says already.
func (s *Scope) Keep(c *metav1.Condition) {
	s.Condition(conditions.Condition{Type: c.Type, Status: c.Status, Reason: v1alpha1.Reason(c.Reason), Message: c.Message})
}
