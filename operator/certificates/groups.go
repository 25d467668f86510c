// SPDX-License-Identifier: Apache-2.0

package certificates

import (
	"context"
	"errors"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/mysql-mfg/mfg/api/v1alpha1"
	"github.com/mysql-mfg/mfg/operator/certs"
	"github.com/mysql-mfg/mfg/operator/render"
	"github.com/mysql-mfg/mfg/operator/report/events"
	asks "github.com/mysql-mfg/mfg/operator/request"
	"github.com/mysql-mfg/mfg/operator/scope"
)

var (
	eventAuthorityMade     = events.Normal(v1alpha1.ReasonCertificateAuthorityMade, "Make")
	eventAuthorityReplaced = events.Normal(v1alpha1.ReasonCertificateAuthorityReplaced, "Rotate")
	eventCertificateMade   = events.Normal(v1alpha1.ReasonCertificateMade, "Make")
	eventAuthorityDamaged  = events.Warning(v1alpha1.ReasonCertificateAuthorityDamaged, "Wait")
	eventForeignSecret     = events.Warning(v1alpha1.ReasonCertificateSecretForeign, "Refuse")
	eventRotationRefused   = events.Warning(v1alpha1.ReasonCertificateRotationRefused, "Refuse")
)

// Groups keeps the certificates of groups with tls: {}.
type Groups struct {
	*scope.Base
	// Adopt applies labels and owner to a Secret of the group, and leaves its content alone.
	Adopt func(ctx context.Context, s *scope.Scope, secret *corev1.Secret) error
}

// Kept is the result of one look.
type Kept struct {
	// Reason and Trouble say what keeps the operator from making the certificate; empty if nothing does. The existing one stays.
	Reason  v1alpha1.Reason
	Trouble string
	// Wait says what a replacement of the authority waits for; empty if none is under way.
	Wait string
	// Decision is the last one, with the times of renewals.
	Decision certs.Decision
}

// Keep makes, renews and replaces what is due.
func (g *Groups) Keep(ctx context.Context, s *scope.Scope) (Kept, error) {
	order, err := g.order(ctx, s)
	if err != nil {
		return Kept{}, err
	}
	p := pairOf(g.Base, s)
	d, err := p.keep(ctx, stateOf(s, order), func(d certs.Decision) { g.tell(s, d) })
	switch {
	case errors.Is(err, errForeign):
		kept := Kept{Reason: v1alpha1.ReasonForeignObject, Trouble: foreignText(s, p.foreign())}
		g.Say(s, "certificate", eventForeignSecret, kept.Trouble)
		return kept, g.refuseFor(ctx, s, order, kept)
	case overtaken(err):
		s.Again = min(s.Again, scope.WhenOvertaken)
		return Kept{}, scope.ErrStop
	case err != nil:
		return Kept{}, err
	}
	g.Say(s, "certificate", eventForeignSecret, "")
	broken := ""
	if d.Broken != "" {
		broken = fmt.Sprintf("Secret %s is damaged: %s. The sites go on with the certificate that they have, which cannot be renewed. Restore it from a backup; or delete it, "+
			"and a new authority is made and put beside the former one in ca.crt of Secret %s, which clients have to read again", p.authority, d.Broken, p.server)
	}
	g.Say(s, "", eventAuthorityDamaged, broken)
	if broken != "" {
		kept := Kept{Reason: v1alpha1.ReasonCertificateAuthorityUnusable, Trouble: broken, Decision: d}
		return kept, g.refuseFor(ctx, s, order, kept)
	}
	for _, secret := range []*corev1.Secret{p.authorityHeld, p.serverHeld} {
		if err := g.Adopt(ctx, s, secret); err != nil {
			return Kept{}, err
		}
	}
	if d.Wait != "" {
		s.Again = min(s.Again, scope.WhenWaiting)
	}
	return Kept{Wait: d.Wait, Decision: d}, g.answer(ctx, s, order, d)
}

func pairOf(base *scope.Base, s *scope.Scope) *pair {
	return &pair{
		client: base.Client, live: base.Live, namespace: s.Key.Namespace, authority: v1alpha1.AuthoritySecretOfTLS(s.Key.Name),
		server: v1alpha1.MadeTLSSecret(s.Key.Name), labels: render.GroupLabels(s.Key.Name),
	}
}

// stateOf gathers the input of the decision, except the Secrets.
func stateOf(s *scope.Scope, order *certs.Order) certs.State {
	out := certs.State{Now: s.Now, Title: "mysql-" + s.Key.Name, Names: render.CertificateNames(s.Group), Order: order}
	sites := map[string]bool{}
	for _, site := range s.Group.Spec.Sites {
		// One that was never made has no MySQL, and begins with what the Secret has by then: as long as the API server refuses it, as for
		// want of quota, it holds up nobody.
		if !scope.IsNew(s, site.Name) {
			sites[site.Name] = true
		}
	}
	for site := range s.Deployments {
		sites[site] = true // one that left the specification is trusted until it is gone
	}
	for _, name := range scope.Sorted(sites) {
		site := certs.Site{Name: name}
		if shown := s.Facts.Sites[name].Certificate; shown != nil {
			site.Bundle, site.Current = shown.Bundle, shown.Current
		}
		out.Sites = append(out.Sites, site)
	}
	return out
}

func foreignText(s *scope.Scope, name string) string {
	return fmt.Sprintf("Secret %s is there already and is not marked as made for this group, so the operator neither uses it nor writes over it: rename or delete it; "+
		"or, if it is this group's own from a backup, say so: kubectl -n %s label secret %s %s=%s %s=%s %s=%s", name, s.Key.Namespace, name,
		v1alpha1.LabelName, v1alpha1.NameMySQL, v1alpha1.LabelGroup, s.Key.Name, v1alpha1.LabelManagedBy, v1alpha1.ManagedByOperator)
}

// tell reports what was done, once it is durable.
func (g *Groups) tell(s *scope.Scope, d certs.Decision) {
	server := v1alpha1.MadeTLSSecret(s.Key.Name)
	switch d.Step {
	case certs.MakeAuthority:
		g.Recorder.Emit(s.Group, nil, eventAuthorityMade, "An authority was made for the group's certificates; clients find it as ca.crt in Secret %s", server)
	case certs.PrepareAuthority:
		g.Recorder.Emit(s.Group, nil, eventAuthorityMade, "The next authority was made; ca.crt of Secret %s has it beside the one that signs yet", server)
	case certs.SwitchAuthority:
		g.Recorder.Emit(s.Group, nil, eventAuthorityReplaced, "The next authority signs from now on; the former one is trusted until every site shows a new certificate")
	case certs.DropFormer:
		g.Recorder.Emit(s.Group, nil, eventAuthorityReplaced, "The authority was replaced; the former one leaves ca.crt of Secret %s", server)
	case certs.IssueServer:
		g.Recorder.Emit(s.Group, nil, eventCertificateMade, "A certificate was made in Secret %s: %s. The sites take it within minutes, without a restart", server, d.Why)
	case certs.Nothing, certs.TrustAuthorities:
	}
}

// order returns a person's request. It gets an ID before any work for it begins, so that it is carried out once.
func (g *Groups) order(ctx context.Context, s *scope.Scope) (*certs.Order, error) {
	q, open := asks.Open(s.Group, v1alpha1.RequestRotateCertificate)
	if !open || q.ID == "" {
		return nil, nil
	}
	order, err := certs.ParseOrder(q.ID, q.Value)
	if err != nil {
		return nil, g.refuse(ctx, s, q.Value, v1alpha1.AnswerNoSuchCertificate, "the value "+err.Error())
	}
	return order, nil
}

// Refuse answers an order for a group whose certificate the operator does not make.
func (g *Groups) Refuse(ctx context.Context, s *scope.Scope) error {
	q, open := asks.Open(s.Group, v1alpha1.RequestRotateCertificate)
	if !open || q.ID == "" {
		return nil
	}
	if s.Group.Spec.TLS == nil {
		return g.refuse(ctx, s, q.Value, v1alpha1.AnswerNoSuchCertificate, "the group has no TLS")
	}
	return g.refuse(ctx, s, q.Value, v1alpha1.AnswerNoSuchCertificate, "the operator does not make the group's certificate: renew that in Secret "+s.Group.Spec.TLS.SecretName+", and the sites take it")
}

// refuseFor answers an order that waits for a person first. It would stand until then, and nobody who follows it would learn why.
func (g *Groups) refuseFor(ctx context.Context, s *scope.Scope, order *certs.Order, kept Kept) error {
	if order == nil {
		return nil
	}
	return g.refuse(ctx, s, s.Group.Annotations[v1alpha1.AnnotationRotateCertificate], string(kept.Reason), kept.Trouble)
}

func (g *Groups) refuse(ctx context.Context, s *scope.Scope, value, reason, why string) error {
	if err := g.AnswerOrder(ctx, s, v1alpha1.RequestRotateCertificate, value, asks.Refused(reason, why)); err != nil {
		return err
	}
	g.Recorder.Emit(s.Group, nil, eventRotationRefused, "The order %q for another certificate was refused: %s", short(value), why)
	return nil
}

// short shortens what a person wrote.
func short(value string) string {
	if len(value) > 64 {
		return value[:64] + "..."
	}
	return value
}

func (g *Groups) answer(ctx context.Context, s *scope.Scope, order *certs.Order, d certs.Decision) error {
	if order == nil || !d.Done {
		return nil
	}
	text := "a new certificate was made, until " + d.ServerEnds.UTC().Format(time.RFC3339) + "; the sites take it within minutes"
	if order.Authority {
		text = "the authority was replaced, and every site shows a certificate of the new one"
	}
	return g.AnswerOrder(ctx, s, v1alpha1.RequestRotateCertificate, s.Group.Annotations[v1alpha1.AnnotationRotateCertificate], asks.Done(text))
}

// Made returns the Secrets that the operator made for a group with tls: {}, as stored: they go or stay with its data.
func (g *Groups) Made(ctx context.Context, group *v1alpha1.MysqlFailoverGroup) ([]*corev1.Secret, error) {
	if !group.Spec.TLS.Made() {
		return nil, nil
	}
	p := pairOf(g.Base, &scope.Scope{Group: group, Key: scope.KeyOf(group)})
	if err := p.read(ctx); err != nil {
		return nil, err
	}
	var out []*corev1.Secret
	for _, secret := range []*corev1.Secret{p.authorityHeld, p.serverHeld} {
		if secret != nil && isOwn(secret, p.labels) {
			out = append(out, secret)
		}
	}
	return out, nil
}
