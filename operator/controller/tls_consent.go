// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"context"
	"fmt"
	"net"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/mysql-mfg/mfg/api/v1alpha1"
	"github.com/mysql-mfg/mfg/internal/chain"
	"github.com/mysql-mfg/mfg/operator/apply"
	"github.com/mysql-mfg/mfg/operator/render"
	"github.com/mysql-mfg/mfg/operator/scope"
)

// A person who may edit groups may not be allowed to use every Secret of the namespace. The operator lends them its own rights
// only if a Secret says, by its content or by an annotation, that it is for the group.

// certificateAnnotation is where cert-manager notes, on a Secret that it writes, for which Certificate it is.
const certificateAnnotation = "cert-manager.io/certificate-name"

// allows is true if a person who may edit the Secret has given it to the group.
func allows(secret *corev1.Secret, group string) bool {
	list := strings.Split(secret.Annotations[v1alpha1.AnnotationAllowGroups], ",")
	return slices.ContainsFunc(list, func(name string) bool {
		name = strings.TrimSpace(name)
		return name == group || name == "*"
	})
}

// whyNotMeant says why a usable certificate may not be mounted for a group; empty if it may. A certificate that names only the
// group's own Services was made for it, and proves nothing to anyone else.
func whyNotMeant(secret *corev1.Secret, group *v1alpha1.MysqlFailoverGroup) string {
	if allows(secret, group.Name) || secret.Annotations[certificateAnnotation] == render.CertificateName(group.Name) {
		return ""
	}
	foreign := foreignName(secret, group)
	if foreign == "" {
		return ""
	}
	return fmt.Sprintf("its certificate is good for %s too, which is no Service of the group: someone who may edit the Secret must allow its use first: "+
		"kubectl -n %s annotate secret %s %s=%s", foreign, group.Namespace, secret.Name, v1alpha1.AnnotationAllowGroups, group.Name)
}

// foreignName is a name in the certificate that does not belong to the group; empty if there is none.
func foreignName(secret *corev1.Secret, group *v1alpha1.MysqlFailoverGroup) string {
	pair, err := chain.Pair(secret.Data[corev1.TLSCertKey], secret.Data[corev1.TLSPrivateKeyKey])
	if err != nil {
		return "what cannot be read"
	}
	leaf := pair.Leaf
	for _, name := range leaf.DNSNames {
		if !ownName(name, group) {
			return name
		}
	}
	for _, ip := range leaf.IPAddresses {
		if !ip.IsLoopback() {
			return ip.String()
		}
	}
	if len(leaf.EmailAddresses)+len(leaf.URIs) > 0 {
		return "a person or a workload"
	}
	return ""
}

// ownName is true for the name of a Service of the group in any of its forms, but not for a wildcard, which matches others too.
func ownName(name string, group *v1alpha1.MysqlFailoverGroup) bool {
	if name == "localhost" || net.ParseIP(name).IsLoopback() {
		return true
	}
	service, rest, _ := strings.Cut(name, ".")
	own := group.Namespace
	return (strings.HasPrefix(service, "mysql-"+group.Name+"-") || ofCache(service, group)) && !strings.Contains(name, "*") &&
		(rest == "" || rest == own || rest == own+".svc" || strings.HasPrefix(rest, own+".svc."))
}

// ofCache is true for a Service of the group's cache store, whether or not it is on: a certificate may be made before. Other names with
// the same beginning may belong to others.
func ofCache(service string, group *v1alpha1.MysqlFailoverGroup) bool {
	return service == v1alpha1.CacheService(group.Name) || slices.ContainsFunc(group.SitesThere(), func(site string) bool {
		return service == v1alpha1.CacheSiteName(group.Name, site)
	})
}

// whyNotWritten says why cert-manager must not be asked to write a Secret; empty if it may. It overwrites what is there.
func (r *Reconciler) whyNotWritten(ctx context.Context, s *scope.Scope) (string, error) {
	name := s.Group.Spec.TLS.SecretName
	asked, err := r.askedBefore(ctx, s)
	if err != nil || asked {
		return "", err // cert-manager has already overwritten what was there
	}
	if v1alpha1.IsGeneratedSecret(name) || strings.HasSuffix(name, v1alpha1.CacheAuthSecret("")) {
		return fmt.Sprintf("Secret %s has a name under which the operator keeps passwords and keys: choose another in spec.tls.secretName", name), nil
	}
	secret := &corev1.Secret{}
	err = r.Live.Get(ctx, types.NamespacedName{Namespace: s.Key.Namespace, Name: name}, secret)
	switch {
	case apierrors.IsNotFound(err):
		return "", nil
	case err != nil:
		return "", fmt.Errorf("read TLS secret: %w", err)
	case allows(secret, s.Key.Name) || secret.Annotations[certificateAnnotation] == render.CertificateName(s.Key.Name):
		return "", nil
	}
	return fmt.Sprintf("Secret %s is there already and was not made for this group, and cert-manager would write over it: choose another name in "+
		"spec.tls.secretName, or have someone who may edit the Secret give it away: kubectl -n %s annotate secret %s %s=%s",
		name, s.Key.Namespace, name, v1alpha1.AnnotationAllowGroups, s.Key.Name), nil
}

// askedBefore is true if the group's Certificate already names this very Secret.
func (r *Reconciler) askedBefore(ctx context.Context, s *scope.Scope) (bool, error) {
	certificate := render.Certificate(s.In)
	current, err := r.apply.Current(ctx, certificate, true)
	if err != nil || current == nil {
		return false, client.IgnoreNotFound(err)
	}
	have, ok := current.(*unstructured.Unstructured)
	if foreign := apply.Belongs(s.Group, certificate, current); !ok || foreign != nil {
		return false, nil //nolint:nilerr // a Certificate that belongs to another asks for nothing on behalf of this group
	}
	name, _, _ := unstructured.NestedString(have.Object, "spec", "secretName")
	return name == s.Group.Spec.TLS.SecretName, nil
}
