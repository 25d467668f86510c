// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/types"

	"github.com/mysql-mfg/mfg/api/v1alpha1"
	"github.com/mysql-mfg/mfg/operator/access"
	"github.com/mysql-mfg/mfg/operator/apply"
	"github.com/mysql-mfg/mfg/operator/certificates"
	"github.com/mysql-mfg/mfg/operator/render"
	"github.com/mysql-mfg/mfg/operator/report/conditions"
	"github.com/mysql-mfg/mfg/operator/report/events"
	"github.com/mysql-mfg/mfg/operator/scope"
)

var (
	eventTLSSecretMissing      = events.Warning(v1alpha1.ReasonTLSSecretMissing, "Wait")
	eventTLSSecretNotMeant     = events.Warning(v1alpha1.ReasonTLSSecretNotMeant, "Refuse")
	eventCertificateNotRenewed = events.Warning(v1alpha1.ReasonCertificateNotRenewed, "Wait")
	eventCertManagerMissing    = events.Warning(v1alpha1.ReasonCertManagerMissing, "Wait")
)

// tls asks for the group's certificate and says whether the pods can run with it. Until then they wait: mysqld would
// not start, or no replica could verify its source.
func (r *Reconciler) tls(ctx context.Context, s *scope.Scope) error {
	spec, name := s.Group.Spec.TLS, s.Group.Spec.TLS.Secret(s.Key.Name)
	if !spec.Made() {
		if err := r.made.Refuse(ctx, s); err != nil || spec == nil {
			return err
		}
	}
	if asked, err := r.askForCertificate(ctx, s); err != nil || !asked {
		return err
	}
	kept, wait, err := makeCertificate(ctx, r.made, s)
	if err != nil || wait {
		return err
	}
	secret := &corev1.Secret{}
	err = r.Live.Get(ctx, types.NamespacedName{Namespace: s.Key.Namespace, Name: name}, secret)
	switch {
	case apierrors.IsNotFound(err):
		r.tlsFails(s, eventTLSSecretMissing, cmp.Or(kept.Reason, v1alpha1.ReasonSecretMissing), cmp.Or(kept.Trouble, missingSecret(spec)))
		return nil
	case err != nil:
		return fmt.Errorf("read TLS secret: %w", err)
	}
	dates := certificates.DatesOf(secret, kept.Decision)
	certificates.Show(s.Key, dates)
	s.Certificate = dates.Status()
	var names []string
	for _, site := range s.Group.Spec.Sites {
		names = append(names, render.Host(s.Key.Namespace, s.Key.Name, site.Name))
	}
	if err := access.CheckTLS(secret, names, s.Now); err != nil {
		reason := v1alpha1.ReasonSecretUnusable
		if errors.Is(err, access.ErrTLSNames) {
			reason = v1alpha1.ReasonWrongNames
		}
		r.tlsFails(s, eventTLSSecretMissing, cmp.Or(kept.Reason, reason), cmp.Or(kept.Trouble, fmt.Sprintf("Secret %s: %v", name, err)))
		return nil
	}
	r.base.Changed(s.Key, string(eventTLSSecretMissing.Reason)+"/", "")
	notMeant := whyNotMeant(secret, s.Group)
	if notMeant != "" {
		notMeant = fmt.Sprintf("Secret %s: %s", name, notMeant)
		if s.Group.Status.Epoch == 0 || !s.Group.TLSMounted() {
			r.tlsFails(s, eventTLSSecretNotMeant, v1alpha1.ReasonSecretNotMeant, notMeant)
			return nil
		}
	}
	s.TLSUsable = true
	r.base.Say(s, "", eventTLSSecretNotMeant, notMeant)
	trouble := shownTrouble(s)
	certificates.ShowLate(s.Key, trouble != "")
	if trouble == "" {
		trouble = endsSoon(s.Group.Spec.TLS, name, dates.Soon(s.Now))
	}
	r.base.Say(s, "", eventCertificateNotRenewed, trouble)
	s.Condition(tlsCondition(kept, trouble, notMeant))
	return nil
}

// tlsCondition is the condition for a certificate with which pods can run. They need not wait for a repair: a new pod starts with
// what is in the Secret.
func tlsCondition(kept certificates.Kept, trouble, notMeant string) conditions.Condition {
	const usual = "the certificate names every site"
	switch {
	case kept.Trouble != "":
		return conditions.False(v1alpha1.ConditionTLSReady, kept.Reason, kept.Trouble)
	case trouble != "":
		return conditions.False(v1alpha1.ConditionTLSReady, v1alpha1.ReasonCertificateNotRenewed, trouble)
	case notMeant != "":
		// A group that has run keeps its Secret for good: it continues with it, and the condition tells people.
		return conditions.True(v1alpha1.ConditionTLSReady, v1alpha1.ReasonSecretNotMeant, notMeant)
	case kept.Wait != "":
		return conditions.True(v1alpha1.ConditionTLSReady, v1alpha1.ReasonCertificateAuthorityChanging, usual+"; "+kept.Wait)
	}
	return conditions.True(v1alpha1.ConditionTLSReady, v1alpha1.ReasonAsExpected, usual)
}

// makeCertificate makes, renews and replaces the certificate of a group with tls: {}. It returns true if the group must wait for it: the
// pods of a new group, or the steps of one without TLS. A group that has TLS continues with what it has, whatever is wrong.
func makeCertificate(ctx context.Context, made *certificates.Groups, s *scope.Scope) (certificates.Kept, bool, error) {
	if !s.Group.Spec.TLS.Made() {
		return certificates.Kept{}, false, nil
	}
	kept, err := made.Keep(ctx, s)
	wait := err == nil && kept.Trouble != "" && (s.Group.Status.Epoch == 0 || !s.Group.TLSMounted())
	if wait {
		s.TLSReady = !s.Group.TLSMounted()
		s.Condition(conditions.False(v1alpha1.ConditionTLSReady, kept.Reason, kept.Trouble))
	}
	return kept, wait, err
}

// askForCertificate asks cert-manager, if the group names an issuer; false if it must not or cannot be asked.
func (r *Reconciler) askForCertificate(ctx context.Context, s *scope.Scope) (bool, error) {
	certificate := render.Certificate(s.In)
	if certificate == nil {
		return true, nil
	}
	why, err := r.whyNotWritten(ctx, s)
	if err == nil && why != "" {
		r.tlsFails(s, eventTLSSecretNotMeant, v1alpha1.ReasonSecretNotMeant, why)
		return false, nil
	}
	if err == nil {
		err = r.apply.Apply(ctx, s.Group, certificate)
	}
	switch {
	case meta.IsNoMatchError(err):
		r.tlsFails(s, eventCertManagerMissing, v1alpha1.ReasonCertManagerMissing,
			"spec.tls.issuerRef is set, but cert-manager is not installed: install it, or remove issuerRef and create Secret "+s.Group.Spec.TLS.SecretName)
		return false, nil
	case errors.Is(err, apply.ErrForeign):
		r.tlsFails(s, eventForeignObjectInPlay, v1alpha1.ReasonForeignObject, err.Error())
		return false, nil
	}
	return err == nil, err
}

// endsSoon says who must renew what soon ends in a Secret; empty if nothing does.
func endsSoon(spec *v1alpha1.TLSSpec, name, soon string) string {
	switch {
	case soon == "":
		return ""
	case spec.IssuerRef != nil:
		return fmt.Sprintf("Secret %s: %s: cert-manager has to; see the Certificate of the group", name, soon)
	}
	return fmt.Sprintf("Secret %s: %s: renew it, and the sites take it within minutes, without a restart", name, soon)
}

// shownTrouble says what is wrong with the certificates that the sites serve; empty if all is well. They differ from
// the Secret until the kubelet and the sidecar have passed it on.
func shownTrouble(s *scope.Scope) string {
	var wrong []string
	for _, site := range s.Group.Spec.Sites {
		shown := s.Facts.Sites[site.Name].Certificate
		if shown == nil {
			continue
		}
		if shown.Problem != "" {
			wrong = append(wrong, fmt.Sprintf("MySQL of %s does not take the certificate: %s", site.Name, shown.Problem))
		}
		if shown.NotBefore == nil || shown.NotAfter == nil {
			continue
		}
		if s.Now.Add(min(certificates.Notice, shown.NotAfter.Sub(*shown.NotBefore)/6)).After(*shown.NotAfter) {
			wrong = append(wrong, fmt.Sprintf("%s shows a certificate that expires at %s, and no client can connect to it after that", site.Name,
				shown.NotAfter.UTC().Format(time.RFC3339)))
		}
	}
	if len(wrong) == 0 {
		return ""
	}
	return fmt.Sprintf("%s; Secret %s has to be renewed, which the sites take within minutes, without a restart",
		strings.Join(wrong, "; "), s.Group.Spec.TLS.Secret(s.Group.Name))
}

func missingSecret(spec *v1alpha1.TLSSpec) string {
	if spec.IssuerRef != nil {
		return fmt.Sprintf("Secret %s does not exist yet: cert-manager has to issue it; see the Certificate of the group", spec.SecretName)
	}
	return fmt.Sprintf("Secret %s does not exist: create it with tls.crt, tls.key and ca.crt, for the Service of every site", spec.SecretName)
}

func (r *Reconciler) tlsFails(s *scope.Scope, e events.Event, reason v1alpha1.Reason, message string) {
	s.TLSReady = !s.Group.TLSMounted() // a group that has no TLS yet can run without
	s.Condition(conditions.False(v1alpha1.ConditionTLSReady, reason, message))
	r.base.Say(s, "", e, message)
}
