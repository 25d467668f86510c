// SPDX-License-Identifier: Apache-2.0

//go:build mysqld

package mysqltest

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"math/big"
	"net"
	"path/filepath"
	"sync"
	"testing"
	"time"
)

// CA is the path of the authority's certificate inside every server with TLS.
const CA = home + "/ca.crt"

type certificateAuthority struct {
	key  *ecdsa.PrivateKey
	cert *x509.Certificate
	pool *x509.CertPool
}

// authority is the one authority of the test process, so that all its servers trust each other. nextAuthority is another
// one, for tests that replace it.
var authority, nextAuthority = sync.OnceValue(newAuthority), sync.OnceValue(newAuthority)

func newAuthority() certificateAuthority {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		panic(err)
	}
	cert, err := sign(&x509.Certificate{
		Subject: pkix.Name{CommonName: "mysqltest"}, IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign,
	}, nil, &key.PublicKey, key)
	if err != nil {
		panic(err)
	}
	pool := x509.NewCertPool()
	pool.AddCert(cert)
	return certificateAuthority{key: key, cert: cert, pool: pool}
}

// RenewCertificate writes another certificate of the same authority over that of a running server, and returns its serial
// number.
func (s *Server) RenewCertificate(t testing.TB) string { return s.certify(t, authority()) }

// ReplaceAuthority writes a certificate of another authority, with that authority, over those of a running server.
func (s *Server) ReplaceAuthority(t testing.TB) string { return s.certify(t, nextAuthority()) }

// NextClientTLS verifies servers after ReplaceAuthority.
func NextClientTLS() *tls.Config {
	return &tls.Config{RootCAs: nextAuthority().pool, MinVersion: tls.VersionTLS12}
}

func (s *Server) certify(t testing.TB, ca certificateAuthority) string {
	t.Helper()
	serial, err := writeCertificate(s.Dir, ca)
	if err != nil {
		t.Fatalf("write certificate: %v", err)
	}
	return serial
}

// SpoilKey writes a key over the server's that does not fit its certificate.
func (s *Server) SpoilKey(t testing.TB) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	der, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	text := pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: der})
	if err := writeOwned(filepath.Join(s.Dir, "tls.key"), string(text)); err != nil {
		t.Fatal(err)
	}
}

func sign(cert, parent *x509.Certificate, public *ecdsa.PublicKey, signer *ecdsa.PrivateKey) (*x509.Certificate, error) {
	serial, err := rand.Int(rand.Reader, big.NewInt(1<<62))
	if err != nil {
		return nil, err
	}
	cert.SerialNumber, cert.NotBefore, cert.NotAfter = serial, time.Now().Add(-time.Hour), time.Now().Add(24*time.Hour)
	if parent == nil {
		parent = cert
	}
	der, err := x509.CreateCertificate(rand.Reader, cert, parent, public, signer)
	if err != nil {
		return nil, err
	}
	return x509.ParseCertificate(der)
}

// writeCertificate puts ca.crt, tls.crt and tls.key for 127.0.0.1 into dir, and returns the serial number.
func writeCertificate(dir string, ca certificateAuthority) (string, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return "", err
	}
	cert, err := sign(&x509.Certificate{
		Subject: pkix.Name{CommonName: "mysqld"}, IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}, DNSNames: []string{"localhost"},
		KeyUsage: x509.KeyUsageDigitalSignature, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth},
	}, ca.cert, &key.PublicKey, ca.key)
	if err != nil {
		return "", err
	}
	der, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		return "", err
	}
	for name, block := range map[string]*pem.Block{
		"ca.crt":  {Type: "CERTIFICATE", Bytes: ca.cert.Raw},
		"tls.crt": {Type: "CERTIFICATE", Bytes: cert.Raw},
		"tls.key": {Type: "PRIVATE KEY", Bytes: der},
	} {
		if err := writeOwned(filepath.Join(dir, name), string(pem.EncodeToMemory(block))); err != nil {
			return "", err
		}
	}
	return cert.SerialNumber.String(), nil
}
