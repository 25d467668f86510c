// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"fmt"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"time"
)

// authority signs every certificate of one lab. It lives as long as `lab up`: nothing is
// signed afterwards but by the controller manager, from the files.
type authority struct {
	dir  string
	cert *x509.Certificate
	key  *ecdsa.PrivateKey
}

// subject is what a certificate says about its holder.
type subject struct {
	file, name, group string
	ips               []string
	dns               []string
}

func newAuthority(dir string) (*authority, error) {
	a := &authority{dir: dir}
	template := &x509.Certificate{
		Subject: pkix.Name{CommonName: "mfg-lab"}, IsCA: true, BasicConstraintsValid: true,
		KeyUsage: x509.KeyUsageCertSign | x509.KeyUsageDigitalSignature,
	}
	var err error
	a.cert, a.key, err = a.sign("ca", template, nil)
	return a, err
}

func (a *authority) issue(s subject) error {
	template := &x509.Certificate{
		Subject:     pkix.Name{CommonName: s.name},
		KeyUsage:    x509.KeyUsageDigitalSignature,
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth},
		DNSNames:    s.dns,
	}
	if s.group != "" {
		template.Subject.Organization = []string{s.group}
	}
	for _, ip := range s.ips {
		template.IPAddresses = append(template.IPAddresses, net.ParseIP(ip))
	}
	_, _, err := a.sign(s.file, template, a.cert)
	return err
}

// sign writes FILE.crt and FILE.key; without a parent the certificate signs itself.
func (a *authority) sign(file string, template, parent *x509.Certificate) (*x509.Certificate, *ecdsa.PrivateKey, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, nil, fmt.Errorf("make key: %w", err)
	}
	serial, err := rand.Int(rand.Reader, new(big.Int).Lsh(big.NewInt(1), 120))
	if err != nil {
		return nil, nil, fmt.Errorf("make serial number: %w", err)
	}
	template.SerialNumber = serial
	template.NotBefore, template.NotAfter = time.Now().Add(-time.Hour), time.Now().AddDate(0, 0, 90)
	signer := a.key
	if parent == nil {
		parent, signer = template, key
	}
	der, err := x509.CreateCertificate(rand.Reader, template, parent, key.Public(), signer)
	if err != nil {
		return nil, nil, fmt.Errorf("sign certificate %s: %w", file, err)
	}
	if err := writePEM(filepath.Join(a.dir, file+".crt"), "CERTIFICATE", der); err != nil {
		return nil, nil, err
	}
	if err := writeKey(filepath.Join(a.dir, file+".key"), key); err != nil {
		return nil, nil, err
	}
	cert, err := x509.ParseCertificate(der)
	return cert, key, err
}

func writeKey(path string, key crypto.Signer) error {
	der, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		return fmt.Errorf("encode key: %w", err)
	}
	return writePEM(path, "PRIVATE KEY", der)
}

func writePEM(path, kind string, der []byte) error {
	block := pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der})
	if err := os.WriteFile(path, block, 0o600); err != nil {
		return fmt.Errorf("write %s: %w", filepath.Base(path), err)
	}
	return nil
}

// makeCredentials writes the certificates and kubeconfigs of all parts of the cluster.
func (c *Cluster) makeCredentials(nodes []Endpoint) error {
	dir := filepath.Join(c.dir, "pki")
	a, err := newAuthority(dir)
	if err != nil {
		return err
	}
	parts := []subject{
		{
			file: "apiserver", name: "kube-apiserver", ips: []string{"127.0.0.1", hostIP, apiserverIP},
			dns: []string{"localhost", "kubernetes", "kubernetes.default", "kubernetes.default.svc", "kubernetes.default.svc.cluster.local"},
		},
		{file: "admin", name: "admin", group: "system:masters"},
		{file: "apiserver-kubelet", name: "apiserver-kubelet-client", group: "system:masters"},
		{file: "controller-manager", name: "system:kube-controller-manager"},
		{file: "scheduler", name: "system:kube-scheduler"},
		{file: "proxy", name: "system:kube-proxy", group: "system:node-proxier"},
	}
	for _, n := range nodes {
		parts = append(parts, subject{
			file: "node-" + n.Name, name: "system:node:" + n.Name, group: "system:nodes",
			ips: []string{n.IP}, dns: []string{n.Name},
		})
	}
	for _, p := range parts {
		if err := a.issue(p); err != nil {
			return err
		}
		if err := os.WriteFile(filepath.Join(dir, p.file+".conf"), []byte(renderKubeconfig(dir, p.file)), 0o600); err != nil {
			return fmt.Errorf("write kubeconfig: %w", err)
		}
	}
	return a.makeServiceAccountKey()
}

// makeServiceAccountKey writes the pair that signs and checks the tokens of pods.
func (a *authority) makeServiceAccountKey() error {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return fmt.Errorf("make key: %w", err)
	}
	// The controller manager reads EC keys in their own format only.
	der, err := x509.MarshalECPrivateKey(key)
	if err != nil {
		return fmt.Errorf("encode key: %w", err)
	}
	if err := writePEM(filepath.Join(a.dir, "sa.key"), "EC PRIVATE KEY", der); err != nil {
		return err
	}
	der, err = x509.MarshalPKIXPublicKey(key.Public())
	if err != nil {
		return fmt.Errorf("encode key: %w", err)
	}
	return writePEM(filepath.Join(a.dir, "sa.pub"), "PUBLIC KEY", der)
}
