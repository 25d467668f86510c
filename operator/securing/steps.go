// SPDX-License-Identifier: Apache-2.0

// Package securing carries out the steps by which a group gets TLS: it gathers the input of operator/secure, proves that the
// operator can verify every site before any site must be verified, and says how far it is.
package securing

import (
	"context"
	"fmt"
	"net"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/mysql-mfg/mfg/api/v1alpha1"
	applyv1alpha1 "github.com/mysql-mfg/mfg/api/v1alpha1/applyconfiguration/api/v1alpha1"
	"github.com/mysql-mfg/mfg/internal/mysql"
	"github.com/mysql-mfg/mfg/operator/report/conditions"
	"github.com/mysql-mfg/mfg/operator/report/events"
	"github.com/mysql-mfg/mfg/operator/scope"
	"github.com/mysql-mfg/mfg/operator/secure"
	"github.com/mysql-mfg/mfg/operator/work"
)

var eventTLSStep = events.Normal(v1alpha1.ReasonTLSStep, "Secure")

const (
	// proofTimeout bounds the look at one server, before others have to verify it.
	proofTimeout = 2 * time.Second
	// countInterval is how often figures that only rise and fall are written.
	countInterval = time.Minute
)

// Steps takes the steps of all groups.
type Steps struct {
	Base   *scope.Base
	Access work.Access
	Dial   func(mysql.Target) (work.Recipient, error)
}

// Step decides how far the group is on its way to TLS. It only records the decision: all that follows from it rests on what was read,
// so it is durable first.
func (r *Steps) Step(ctx context.Context, s *scope.Scope) error {
	g := secureGroup(s)
	d := secure.Decide(g)
	if g.Status.Phase == v1alpha1.TLSCertificates && d.Phase == v1alpha1.TLSChannels {
		if site, err := r.unproven(ctx, s); err != nil {
			d = secure.Decision{Phase: g.Status.Phase, Later: g.Status.Later, Reason: v1alpha1.ReasonTLSUpdatingSites, Site: site,
				Message: fmt.Sprintf("every site has the certificate; it waits until the operator can verify %s with it: %v", site, err)}
		}
	}
	s.TLS = tlsStatus(s, g, d)
	if !g.Asked {
		return nil
	}
	stepped := g.Status.Phase != "" && d.Phase != g.Status.Phase
	if stepped && r.Base.Changed(s.Key, string(eventTLSStep.Reason)+"/", string(d.Phase)) {
		r.Base.Recorder.Emit(s.Group, nil, eventTLSStep, "TLS of the group: from %s to %s: %s", g.Status.Phase, d.Phase, d.Message)
	}
	switch {
	case d.Phase != v1alpha1.TLSRequired:
		s.Condition(conditions.False(v1alpha1.ConditionTLSRequired, d.Reason, string(d.Phase)+": "+d.Message))
	case d.Refused && d.Later:
		s.Condition(conditions.True(v1alpha1.ConditionTLSRequired, d.Reason, d.Message))
	case d.Later || meta.FindStatusCondition(s.Group.Status.Conditions, v1alpha1.ConditionTLSRequired) != nil:
		// A group that had TLS from its beginning has the condition only once it has let clients connect without TLS.
		if !d.Refused {
			s.Condition(conditions.False(v1alpha1.ConditionTLSRequired, d.Reason, string(d.Phase)+": "+d.Message))
		}
	}
	switch {
	case stepped:
		s.Again = min(s.Again, scope.WhenMoving)
	case d.Phase != v1alpha1.TLSRequired || !d.Refused && d.Later:
		s.Again = min(s.Again, scope.WhenWaiting)
	}
	return nil
}

// secureGroup collects the input of the decision.
func secureGroup(s *scope.Scope) secure.Group {
	g := secure.Group{
		Asked: s.Group.Spec.TLS != nil, Usable: s.TLSUsable, Active: s.ActiveSite(),
		Settled: s.Known && s.Facts.Open && s.Group.Status.Transition == nil && s.ActiveSite() != "" && s.Facts.ActiveSite == s.ActiveSite(),
	}
	if s.Group.Status.TLS != nil {
		g.Status = *s.Group.Status.TLS
	}
	g.Refused = meta.IsStatusConditionTrue(s.Group.Status.Conditions, v1alpha1.ConditionTLSRequired)
	if g.Asked {
		g.PlainConnections = s.Group.Spec.TLS.PlainConnections
	}
	for _, site := range s.Group.Spec.Sites {
		g.Sites = append(g.Sites, secureSite(s, site.Name))
	}
	return g
}

// secureSite returns what is known of a site. What another pod than the present one said does not count.
func secureSite(s *scope.Scope, name string) secure.Site {
	pod, f := s.Pods[name], s.Facts.Sites[name]
	out := secure.Site{Name: name, Accepts: pod != nil && !v1alpha1.RequiresTLS(pod)}
	if pod == nil || pod.DeletionTimestamp != nil || f.PodUID != string(pod.UID) {
		return out
	}
	out.Verified, out.Refuses = f.ReceiverVerifies, f.MysqlUp && !out.Accepts && isCurrent(s.Deployments[name], pod)
	if c := f.Certificate; c != nil { // its sidecar found one in the pod
		out.Loaded = c.Problem == "" && c.NotAfter != nil
		if c.Plain != nil {
			out.Plain = &secure.Plain{Connections: c.Plain.Count(), QuietFor: c.Plain.Quiet()}
		}
	}
	return out
}

// isCurrent is true if a site's next pod would be like this one.
func isCurrent(deployment *appsv1.Deployment, pod *corev1.Pod) bool {
	return deployment != nil && scope.SpecHash(deployment) == pod.Annotations[v1alpha1.AnnotationSpecHash]
}

// unproven returns a site whose server the operator cannot verify with the certificate, and why; after the next step it could not ask it.
func (r *Steps) unproven(ctx context.Context, s *scope.Scope) (string, error) {
	verified := s.Group.DeepCopy()
	verified.Status.TLS.Phase = v1alpha1.TLSChannels
	for _, site := range s.Group.Spec.Sites {
		if err := r.prove(ctx, verified, site.Name, s.Facts.Sites[site.Name].AdminAddr); err != nil {
			return site.Name, err
		}
	}
	return "", nil
}

func (r *Steps) prove(ctx context.Context, group *v1alpha1.MysqlFailoverGroup, site, addr string) error {
	ctx, cancel := context.WithTimeout(ctx, proofTimeout)
	defer cancel()
	host, _, err := net.SplitHostPort(addr)
	if err != nil {
		return fmt.Errorf("%s has no pod that runs", site)
	}
	target, err := r.Access.Site(ctx, group, site, host)
	if err != nil {
		return err
	}
	if target.TLS == nil {
		return fmt.Errorf("nothing tells how to verify %s", site)
	}
	db, err := r.Dial(target)
	if err != nil {
		return err
	}
	defer func() { _ = db.Close() }()
	_, err = db.Status(ctx)
	return err
}

// tlsStatus returns the new status.
func tlsStatus(s *scope.Scope, g secure.Group, d secure.Decision) *v1alpha1.TLSStatus {
	out := &v1alpha1.TLSStatus{Phase: d.Phase, Later: d.Later, Since: g.Status.Since, Certificate: s.Certificate}
	now := metav1.NewTime(s.Now.Truncate(time.Second))
	if d.Phase != g.Status.Phase {
		out.Since = &now
	}
	if d.Phase == v1alpha1.TLSPlain || d.Phase == v1alpha1.TLSRequired {
		return out
	}
	for _, site := range g.Sites {
		if site.Plain != nil {
			out.Sites = append(out.Sites, v1alpha1.SiteTLSStatus{Name: site.Name, PlainConnections: int32(site.Plain.Connections)})
		}
	}
	if at := g.Status.CountedAt; at != nil && s.Now.Sub(at.Time) < countInterval && alike(g.Status.Sites, out.Sites) {
		out.Sites, out.CountedAt = g.Status.Sites, at
	} else if len(out.Sites) > 0 {
		out.CountedAt = &now
	}
	return out
}

// alike is true if both count clients at the same sites, in any number.
func alike(a, b []v1alpha1.SiteTLSStatus) bool {
	if len(a) != len(b) {
		return false
	}
	for i := range a {
		if a[i].Name != b[i].Name || (a[i].PlainConnections > 0) != (b[i].PlainConnections > 0) {
			return false
		}
	}
	return true
}

// Apply returns it as the controller applies it.
func Apply(t *v1alpha1.TLSStatus) *applyv1alpha1.TLSStatusApplyConfiguration {
	out := applyv1alpha1.TLSStatus().WithPhase(t.Phase)
	if t.Later {
		out.WithLater(true)
	}
	if t.Since != nil {
		out.WithSince(*t.Since)
	}
	if t.CountedAt != nil {
		out.WithCountedAt(*t.CountedAt)
	}
	if c := t.Certificate; c != nil {
		out.WithCertificate(certificate(c))
	}
	for _, site := range t.Sites {
		out.WithSites(applyv1alpha1.SiteTLSStatus().WithName(site.Name).WithPlainConnections(site.PlainConnections))
	}
	return out
}

func certificate(c *v1alpha1.CertificateStatus) *applyv1alpha1.CertificateStatusApplyConfiguration {
	out := applyv1alpha1.CertificateStatus()
	out.NotAfter, out.Renewal, out.AuthorityNotAfter, out.AuthorityRenewal = c.NotAfter, c.Renewal, c.AuthorityNotAfter, c.AuthorityRenewal
	return out
}
