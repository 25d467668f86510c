// SPDX-License-Identifier: Apache-2.0

package access

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/mysql-mfg/mfg/internal/chain"
)

// Keys of a TLS Secret.
const (
	keyCA   = "ca.crt"
	keyCert = "tls.crt"
	keyKey  = "tls.key"
)

// Errors of CheckTLS.
var (
	ErrTLSUnusable = errors.New("the certificate is unusable")
	ErrTLSNames    = errors.New("the certificate does not name every site")
)

// ClientTLS returns settings that accept a server only if the Secret's authority signed its certificate and the certificate names it.
func ClientTLS(secret *corev1.Secret, serverName string) (*tls.Config, error) {
	roots, err := rootsOf(secret)
	if err != nil {
		return nil, err
	}
	return &tls.Config{RootCAs: roots, ServerName: serverName, MinVersion: tls.VersionTLS12}, nil
}

func rootsOf(secret *corev1.Secret) (*x509.CertPool, error) {
	roots, is := chain.Authorities(secret.Data[keyCA])
	if !is {
		return nil, fmt.Errorf("%w: %s has no certificate in %q", ErrSecretIncomplete, secret.Name, keyCA)
	}
	return roots, nil
}

// CheckTLS says whether the sites can run with a TLS Secret: key and certificate belong together, the authority has
// signed the certificate, and it is valid now and has every name.
func CheckTLS(secret *corev1.Secret, names []string, now time.Time) error {
	for _, key := range []string{keyCA, keyCert, keyKey} {
		if len(secret.Data[key]) == 0 {
			return fmt.Errorf("%w: %q is missing", ErrTLSUnusable, key)
		}
	}
	pair, err := chain.Pair(secret.Data[keyCert], secret.Data[keyKey])
	if err != nil {
		return fmt.Errorf("%w: %w", ErrTLSUnusable, err)
	}
	roots, err := rootsOf(secret)
	if err != nil {
		return fmt.Errorf("%w: %w", ErrTLSUnusable, err)
	}
	between := x509.NewCertPool()
	for _, c := range chain.Read(secret.Data[keyCert]) {
		between.AddCert(c) // the chain may hold more than needed; Verify finds what is missing
	}
	options := x509.VerifyOptions{
		Roots: roots, Intermediates: between, CurrentTime: now, KeyUsages: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
	}
	if _, err := pair.Leaf.Verify(options); err != nil {
		return fmt.Errorf("%w: %w", ErrTLSUnusable, timeless(err))
	}
	for _, name := range names {
		if err := pair.Leaf.VerifyHostname(name); err != nil {
			return fmt.Errorf("%w: %s is missing", ErrTLSNames, name)
		}
	}
	return nil
}

// timeless returns a verification error without the present time, which would make it a new error at every look.
func timeless(err error) error {
	invalid, is := errors.AsType[x509.CertificateInvalidError](err)
	if !is || invalid.Reason != x509.Expired || invalid.Cert == nil {
		return err
	}
	return fmt.Errorf("%s is valid from %s to %s, and not now by the operator's clock", invalid.Cert.Subject,
		invalid.Cert.NotBefore.UTC().Format(time.RFC3339), invalid.Cert.NotAfter.UTC().Format(time.RFC3339))
}
