// SPDX-License-Identifier: Apache-2.0

package stage

import (
	"context"
	"crypto/ecdsa"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// The lab's authority signs the certificate of every group and that of the operator's escrow endpoint, as one issuer of
// cert-manager would: a group whose ca.crt does not trust the endpoint cannot escrow a keyring.
const (
	authoritySecret = "mfg-lab-authority"
	// EscrowSecret holds the certificate of the operator's escrow endpoint.
	EscrowSecret = "mfg-escrow-tls"
	// AuxiliaryService is under whose names sidecars reach the operator.
	AuxiliaryService = "mfg-auxiliary"
)

// authority is a certificate authority with its key.
type authority struct {
	pem  []byte
	cert *x509.Certificate
	key  *ecdsa.PrivateKey
}

// labAuthority reads the authority, or makes it. It lives in the operator's namespace and thus as long as the lab.
func (s *Stage) labAuthority(ctx context.Context) (authority, error) {
	if err := s.Namespace(ctx, OperatorNamespace); err != nil {
		return authority{}, err
	}
	secret, err := s.ensureSecretIn(ctx, OperatorNamespace, authoritySecret, makeAuthority)
	if err != nil {
		return authority{}, err
	}
	return readAuthority(secret)
}

func makeAuthority() (map[string][]byte, error) {
	key, der, err := sign(authorityTemplate(), nil, nil)
	if err != nil {
		return nil, err
	}
	raw, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		return nil, fmt.Errorf("encode key: %w", err)
	}
	return map[string][]byte{
		"ca.crt": pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}),
		"ca.key": pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: raw}),
	}, nil
}

func readAuthority(secret *corev1.Secret) (authority, error) {
	a := authority{pem: secret.Data["ca.crt"]}
	cert, _ := pem.Decode(a.pem)
	key, _ := pem.Decode(secret.Data["ca.key"])
	if cert == nil || key == nil {
		return a, fmt.Errorf("read authority %s: no certificate or no key in it", secret.Name)
	}
	var err error
	if a.cert, err = x509.ParseCertificate(cert.Bytes); err != nil {
		return a, fmt.Errorf("read certificate of authority: %w", err)
	}
	private, err := x509.ParsePKCS8PrivateKey(key.Bytes)
	if err != nil {
		return a, fmt.Errorf("read key of authority: %w", err)
	}
	var ok bool
	if a.key, ok = private.(*ecdsa.PrivateKey); !ok {
		return a, errors.New("read key of authority: it is of another kind")
	}
	return a, nil
}

// issue makes what a Secret of type kubernetes.io/tls holds, for these names.
func (a authority) issue(names []string) (map[string][]byte, error) {
	c, err := makeCertificate(a.cert, a.key, names)
	if err != nil {
		return nil, err
	}
	return map[string][]byte{"tls.crt": c.Cert, "tls.key": c.Key, "ca.crt": a.pem}, nil
}

// ensureEscrowTLS makes the certificate of the operator's escrow endpoint unless there is one.
func (s *Stage) ensureEscrowTLS(ctx context.Context) error {
	ca, err := s.labAuthority(ctx)
	if err != nil {
		return err
	}
	_, err = s.ensureSecretIn(ctx, OperatorNamespace, EscrowSecret, func() (map[string][]byte, error) {
		return ca.issue(ServiceNames(OperatorNamespace, AuxiliaryService))
	})
	return err
}

// ServiceNames are all names under which a Service can be reached.
func ServiceNames(namespace, service string) []string {
	in := service + "." + namespace
	return []string{service, in, in + ".svc", in + ".svc.cluster.local"}
}

// CA is the certificate that the group's ca.crt holds, PEM.
func (g *Group) CA() []byte { return g.ca }

func (s *Stage) ensureSecretIn(
	ctx context.Context, namespace, name string, make func() (map[string][]byte, error),
) (*corev1.Secret, error) {
	secret := &corev1.Secret{}
	err := s.Kube.Get(ctx, client.ObjectKey{Namespace: namespace, Name: name}, secret)
	if err == nil || !apierrors.IsNotFound(err) {
		return secret, err
	}
	secret.Namespace, secret.Name = namespace, name
	if secret.Data, err = make(); err != nil {
		return nil, err
	}
	if err := s.Kube.Create(ctx, secret); err != nil {
		return nil, fmt.Errorf("create secret %s: %w", name, err)
	}
	return secret, nil
}
