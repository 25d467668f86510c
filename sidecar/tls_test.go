// SPDX-License-Identifier: Apache-2.0

package main

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
	"testing"
	"time"
)

// authorityOf makes a CA and a certificate that it signed for a Service's name.
func authorityOf(t *testing.T) (ca []byte, leaf tls.Certificate) {
	t.Helper()
	return authorityUntil(t, time.Now().Add(time.Hour))
}

// authorityUntil makes both so that they end then.
func authorityUntil(t *testing.T, ends time.Time) (ca []byte, leaf tls.Certificate) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "CA"}, NotBefore: ends.Add(-48 * time.Hour), NotAfter: ends,
		IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign,
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		t.Fatal(err)
	}
	serving := &x509.Certificate{
		SerialNumber: big.NewInt(2), NotBefore: ends.Add(-48 * time.Hour), NotAfter: ends, DNSNames: []string{"mysql-orders-a.shop.svc"},
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
	}
	leafDER, err := x509.CreateCertificate(rand.Reader, serving, template, key.Public(), key)
	if err != nil {
		t.Fatal(err)
	}
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}),
		tls.Certificate{Certificate: [][]byte{leafDER}, PrivateKey: key}
}

// handshake shows a certificate to a client with this configuration.
func handshake(t *testing.T, config *tls.Config, shown tls.Certificate) error {
	t.Helper()
	ours, theirs := net.Pipe()
	defer func() { _ = ours.Close(); _ = theirs.Close() }()
	done := make(chan struct{})
	go func() {
		defer close(done)
		_ = tls.Server(theirs, &tls.Config{Certificates: []tls.Certificate{shown}, MinVersion: tls.VersionTLS12}).HandshakeContext(t.Context())
		_ = theirs.Close()
	}()
	err := tls.Client(ours, config).HandshakeContext(t.Context())
	_ = ours.Close()
	<-done
	return err
}

func TestTheServersCertificateHasToBeOfTheCA(t *testing.T) {
	ca, leaf := authorityOf(t)
	_, otherLeaf := authorityOf(t)
	path := filepath.Join(t.TempDir(), "ca.crt")
	if tlsConfig(path) != nil {
		t.Error("TLS without a CA")
	}
	write(t, path, string(ca), 0o600)
	config := tlsConfig(path)
	if err := handshake(t, config, leaf); err != nil {
		t.Errorf("a certificate of the CA, under another name than the address: %v", err)
	}
	if handshake(t, config, otherLeaf) == nil {
		t.Error("a certificate of another CA was accepted")
	}
}

// TestAFenceDoesNotEndWithACertificate: the authority is replaced under a running mysqld, or its certificate ends. The
// sidecar still has to speak to it, to fence it other than by its end, and to give it the new certificate.
func TestAFenceDoesNotEndWithACertificate(t *testing.T) {
	ca, leaf := authorityOf(t)
	nextCA, nextLeaf := authorityOf(t)
	oldCA, oldLeaf := authorityUntil(t, time.Now().Add(-time.Minute))
	path := filepath.Join(t.TempDir(), "ca.crt")
	write(t, path, string(ca), 0o600)
	config := tlsConfig(path)
	// Before the first connection.
	write(t, path, string(nextCA), 0o600)
	for name, shown := range map[string]tls.Certificate{"former": leaf, "next": nextLeaf} {
		if err := handshake(t, config, shown); err != nil {
			t.Errorf("the certificate of the %s authority: %v", name, err)
		}
	}
	write(t, path, string(oldCA), 0o600)
	if err := handshake(t, tlsConfig(path), oldLeaf); err != nil {
		t.Errorf("a certificate that has ended: %v", err)
	}
}
