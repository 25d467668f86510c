// SPDX-License-Identifier: Apache-2.0

package controller

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
	whenOvertaken = 100 * time.Millisecond
	whenMoving    = 2 * time.Second
	whenWaiting   = 10 * time.Second
	whenSettled   = time.Minute // at the least
)

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

// errStop ends the phases without an error: what follows has to wait for a person, and a condition says so.
var errStop = errors.New("the following phases have to wait")

// progress says what is under way or stuck. The first phase to say something is nearest to the cause.
func (s *scope) progress(c conditions.Condition, again time.Duration) {
	s.again = min(s.again, again)
	if s.progressing == nil {
		s.progressing = &c
	}
}

// moving is the condition Progressing of what is under way.
func moving(reason v1alpha1.Reason, message string) conditions.Condition {
	return conditions.True(v1alpha1.ConditionProgressing, reason, message)
}

// stuck is the condition Progressing of what waits, or is done.
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

// keyOf is the key of a group.
func keyOf(group *v1alpha1.MysqlFailoverGroup) types.NamespacedName {
	return client.ObjectKeyFromObject(group)
}

// sorted are the keys of a map in their order.
func sorted[V any](m map[string]V) []string { return slices.Sorted(maps.Keys(m)) }

// keyringScope is what a reconcile knows of keyrings.
type keyringScope struct {
	// kept says of each site why its pod must not be replaced.
	kept map[string]string
	// unreadable are the sites whose data cannot be read where it is, so that they can only be cloned anew.
	unreadable map[string]bool
	// missing are those whose escrow Secret is gone, or is not what was stored.
	missing map[string]bool
}

// volumeNote is what is to be said of a site's data volume.
type volumeNote struct {
	site    string
	reason  v1alpha1.Reason
	message string
	event   events.Event
}

// siteKey names a site of a group.
type siteKey struct {
	group types.NamespacedName
	site  string
}

// open is true once the active site of this very epoch was seen writable, and the role is not moving away again.
func (s *scope) open() bool {
	status := &s.group.Status
	return status.ActiveSite != "" && status.Transition == nil && s.known && s.facts.Open &&
		s.facts.ActiveSite == status.ActiveSite && s.facts.Epoch == status.Epoch
}

// keep says again what a condition says already.
func (s *scope) keep(c *metav1.Condition) {
	s.condition(conditions.Condition{Type: c.Type, Status: c.Status, Reason: v1alpha1.Reason(c.Reason), Message: c.Message})
}
