// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"os"
	"sync"
	"time"
)

// Files of the Secret of the group's certificate.
const (
	caFile   = "ca.crt"
	certFile = "tls.crt"
	keyFile  = "tls.key"
)

// tlsConfig requires a certificate of an authority that is in the file, or has been in it since this program started; nil if
// there is no such file. It checks neither the name nor the time: the address is this pod's own, certificates name Services,
// and fences and renewed certificates reach mysqld through these connections. While mysqld still shows the former
// certificate, or one that has ended, the only other fence would be to kill it.
func tlsConfig(path string) *tls.Config {
	if _, err := os.Stat(path); err != nil {
		return nil
	}
	a := &authorities{path: path}
	a.read() // so that it also knows an authority that is replaced before the first connection
	return &tls.Config{
		MinVersion: tls.VersionTLS12,
		// VerifyConnection verifies the chain; only name and time are not checked.
		InsecureSkipVerify: true, //nolint:gosec // see above
		VerifyConnection:   func(state tls.ConnectionState) error { return a.verify(state.PeerCertificates, time.Now()) },
	}
}

// authorities are all that the file has held since this program started.
type authorities struct {
	path string

	mu   sync.Mutex
	seen [][]byte
}

// read adds what the file holds now, and returns all authorities.
func (a *authorities) read() *x509.CertPool {
	raw, err := os.ReadFile(a.path)
	a.mu.Lock()
	defer a.mu.Unlock()
	known := false
	for _, old := range a.seen {
		known = known || bytes.Equal(old, raw)
	}
	if err == nil && !known {
		a.seen = append(a.seen, raw)
	}
	roots := x509.NewCertPool()
	for _, pem := range a.seen {
		roots.AppendCertsFromPEM(pem)
	}
	return roots
}

func (a *authorities) verify(chain []*x509.Certificate, now time.Time) error {
	if len(chain) == 0 {
		return errors.New("verify server: it shows no certificate")
	}
	roots := a.read()
	err := verifyChain(chain, roots, now)
	for _, at := range []time.Time{chain[0].NotAfter, chain[0].NotBefore} {
		if err != nil && verifyChain(chain, roots, at) == nil {
			return nil
		}
	}
	return err
}

func verifyChain(chain []*x509.Certificate, roots *x509.CertPool, at time.Time) error {
	between := x509.NewCertPool()
	for _, c := range chain[1:] {
		between.AddCert(c)
	}
	_, err := chain[0].Verify(x509.VerifyOptions{Roots: roots, Intermediates: between, CurrentTime: at})
	return err
}
