// SPDX-License-Identifier: Apache-2.0

package controller

import (
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

// tls asks for the group's certificate and says whether the pods can run with it. They wait while they cannot: mysqld
// would not start, or no replica could verify its source.
func (r *Reconciler) tls(ctx context.Context, s *scope.Scope) error {
	spec := s.Group.Spec.TLS
	if spec == nil {
		return nil
	}
	if asked, err := r.askForCertificate(ctx, s); err != nil || !asked {
		return err
	}
	secret := &corev1.Secret{}
	err := r.Live.Get(ctx, types.NamespacedName{Namespace: s.Key.Namespace, Name: spec.SecretName}, secret)
	switch {
	case apierrors.IsNotFound(err):
		r.tlsFails(s, eventTLSSecretMissing, v1alpha1.ReasonSecretMissing, missingSecret(spec))
		return nil
	case err != nil:
		return fmt.Errorf("read TLS secret: %w", err)
	}
	var names []string
	for _, site := range s.Group.Spec.Sites {
		names = append(names, render.Host(s.Key.Namespace, s.Key.Name, site.Name))
	}
	if err := access.CheckTLS(secret, names, s.Now); err != nil {
		reason := v1alpha1.ReasonSecretUnusable
		if errors.Is(err, access.ErrTLSNames) {
			reason = v1alpha1.ReasonWrongNames
		}
		r.tlsFails(s, eventTLSSecretMissing, reason, fmt.Sprintf("Secret %s: %v", spec.SecretName, err))
		return nil
	}
	r.base.Changed(s.Key, string(eventTLSSecretMissing.Reason)+"/", "")
	notMeant := whyNotMeant(secret, s.Group)
	if notMeant != "" {
		notMeant = fmt.Sprintf("Secret %s: %s", spec.SecretName, notMeant)
		if s.Group.Status.Epoch == 0 || !s.Group.TLSMounted() {
			r.tlsFails(s, eventTLSSecretNotMeant, v1alpha1.ReasonSecretNotMeant, notMeant)
			return nil
		}
	}
	s.TLSUsable = true
	r.base.Say(s, "", eventTLSSecretNotMeant, notMeant)
	trouble := shownTrouble(s)
	r.base.Say(s, "", eventCertificateNotRenewed, trouble)
	if trouble != "" {
		// Pods need not wait: a new one starts with what is in the Secret.
		s.Condition(conditions.False(v1alpha1.ConditionTLSReady, v1alpha1.ReasonCertificateNotRenewed, trouble))
		return nil
	}
	if notMeant != "" {
		// A group that has run keeps its Secret for good: it goes on with it, and people are told.
		s.Condition(conditions.True(v1alpha1.ConditionTLSReady, v1alpha1.ReasonSecretNotMeant, notMeant))
		return nil
	}
	s.Condition(conditions.True(v1alpha1.ConditionTLSReady, v1alpha1.ReasonAsExpected, "the certificate names every site"))
	return nil
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

// longestNotice is how long before its end a certificate counts as not renewed, at most. Shorter-lived ones have a sixth of
// their time: cert-manager renews when a third is left.
const longestNotice = 14 * 24 * time.Hour

// shownTrouble is what is wrong with the certificates that the sites show, which is not what is in the Secret until the
// kubelet and the sidecar have seen to it; empty if all is well.
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
		if s.Now.Add(min(longestNotice, shown.NotAfter.Sub(*shown.NotBefore)/6)).After(*shown.NotAfter) {
			wrong = append(wrong, fmt.Sprintf("%s shows a certificate that ends at %s, and nobody can connect to it after that", site.Name,
				shown.NotAfter.UTC().Format(time.RFC3339)))
		}
	}
	if len(wrong) == 0 {
		return ""
	}
	return fmt.Sprintf("%s; Secret %s has to be renewed, which the sites take within minutes, without a restart",
		strings.Join(wrong, "; "), s.Group.Spec.TLS.SecretName)
}

func missingSecret(spec *v1alpha1.TLSSpec) string {
	if spec.IssuerRef != nil {
		return fmt.Sprintf("Secret %s does not exist yet: cert-manager has to issue it; see the Certificate of the group", spec.SecretName)
	}
	return fmt.Sprintf("Secret %s does not exist: create it with tls.crt, tls.key and ca.crt, for the Service of every site", spec.SecretName)
}

func (r *Reconciler) tlsFails(s *scope.Scope, e events.Event, reason v1alpha1.Reason, message string) {
	s.TLSReady = !s.Group.TLSMounted() // the sites of a group that has no TLS yet need none
	s.Condition(conditions.False(v1alpha1.ConditionTLSReady, reason, message))
	r.base.Say(s, "", e, message)
}
