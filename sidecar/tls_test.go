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
	"os"
	"path/filepath"
	"testing"
	"time"
)

// authorityOf makes a CA and a certificate that it signed for a Service's name.
func authorityOf(t *testing.T) (ca []byte, leaf tls.Certificate) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "CA"}, NotAfter: time.Now().Add(time.Hour),
		IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign,
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		t.Fatal(err)
	}
	serving := &x509.Certificate{
		SerialNumber: big.NewInt(2), NotAfter: time.Now().Add(time.Hour), DNSNames: []string{"mysql-orders-a.shop.svc"},
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
	}
	leafDER, err := x509.CreateCertificate(rand.Reader, serving, template, key.Public(), key)
	if err != nil {
		t.Fatal(err)
	}
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}),
		tls.Certificate{Certificate: [][]byte{leafDER}, PrivateKey: key}
}

func TestTheServersCertificateHasToBeOfTheCA(t *testing.T) {
	ca, leaf := authorityOf(t)
	otherCA, _ := authorityOf(t)
	path := filepath.Join(t.TempDir(), "ca.crt")
	if tlsConfig(path) != nil {
		t.Error("TLS without a CA")
	}
	write(t, path, string(ca), 0o600)
	config := tlsConfig(path)
	handshake := func() error {
		ours, theirs := net.Pipe()
		defer func() { _ = ours.Close(); _ = theirs.Close() }()
		done := make(chan struct{})
		go func() {
			defer close(done)
			_ = tls.Server(theirs, &tls.Config{Certificates: []tls.Certificate{leaf}, MinVersion: tls.VersionTLS12}).HandshakeContext(t.Context())
			_ = theirs.Close()
		}()
		err := tls.Client(ours, config).HandshakeContext(t.Context())
		_ = ours.Close()
		<-done
		return err
	}
	if err := handshake(); err != nil {
		t.Errorf("a certificate of the CA, under another name than the address: %v", err)
	}
	// The file is replaced under the running program.
	write(t, path, string(otherCA), 0o600)
	if handshake() == nil {
		t.Error("a certificate of another CA was accepted")
	}
	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
	if handshake() == nil {
		t.Error("accepted without a CA")
	}
}
