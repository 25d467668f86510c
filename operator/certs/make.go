// SPDX-License-Identifier: Apache-2.0

package certs

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/hex"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"maps"
	"math/big"
	"slices"
	"time"
)

// serialBytes is how long a serial number is: long enough never to repeat, and below the limit of 20 for a certificate.
const serialBytes = 16

// ErrUseless means that no certificate of this authority would be trusted, however often it is made.
var ErrUseless = errors.New("no certificate that this authority signs is good for the group")

// Carry returns what the Secret of a step holds once the step is carried out. Randomness comes from the caller.
func (s State) Carry(d Decision, random io.Reader) (map[string][]byte, error) {
	switch d.Step {
	case MakeAuthority:
		return s.makeAuthority(random)
	case PrepareAuthority:
		return s.prepare(random)
	case IssueServer:
		return s.issue(random)
	case TrustAuthorities:
		return s.trust()
	case SwitchAuthority:
		return s.promoted()
	case DropFormer:
		out := maps.Clone(s.Authority)
		delete(out, KeyFormer)
		return out, nil
	case Nothing:
	}
	return nil, fmt.Errorf("there is no step %q", d.Step)
}

// trust hands out the authorities to trust.
func (s State) trust() (map[string][]byte, error) {
	a, err := readAuthority(s.Authority)
	if err != nil {
		return nil, err
	}
	out := maps.Clone(s.Server)
	out[KeyBundle] = a.bundle(s.Now)
	return out, nil
}

// makeAuthority keeps what is trusted already: what the group's former authority signed must be trusted until all trust the new one.
func (s State) makeAuthority(random io.Reader) (map[string][]byte, error) {
	cert, key, err := s.newAuthority(random)
	if err != nil {
		return nil, err
	}
	out := map[string][]byte{KeyAuthority: cert, KeyPrivate: key}
	if former := encode(certificates(s.Server[KeyBundle])); len(former) > 0 {
		out[KeyFormer] = former
	}
	return out, nil
}

func (s State) prepare(random io.Reader) (map[string][]byte, error) {
	a, err := readAuthority(s.Authority)
	if err != nil {
		return nil, err
	}
	out := maps.Clone(s.Authority)
	if a.next == nil {
		if out[KeyNext], out[KeyNextKey], err = s.newAuthority(random); err != nil {
			return nil, err
		}
		delete(out, KeyOrderGrace)
	}
	if s.Order != nil && s.Order.Authority {
		out[KeyOrder], out[KeyOrderGrace] = []byte(s.Order.ID), []byte(s.Order.Grace.String())
	}
	return out, nil
}

// promoted puts the next authority in the place of the one that signs.
func (s State) promoted() (map[string][]byte, error) {
	a, err := readAuthority(s.Authority)
	if err != nil {
		return nil, err
	}
	out := maps.Clone(s.Authority)
	former := append(slices.Clone(a.former), a.now.cert)
	out[KeyFormer] = encode(former[max(0, len(former)-mostFormer):])
	out[KeyAuthority], out[KeyPrivate] = s.Authority[KeyNext], s.Authority[KeyNextKey]
	delete(out, KeyNext)
	delete(out, KeyNextKey)
	return out, nil
}

func (s State) newAuthority(random io.Reader) (cert, key []byte, err error) {
	serial, err := newSerial(random)
	if err != nil {
		return nil, nil, err
	}
	private, err := ecdsa.GenerateKey(elliptic.P256(), random)
	if err != nil {
		return nil, nil, fmt.Errorf("make key: %w", err)
	}
	template := &x509.Certificate{
		SerialNumber: serial,
		// Each has another name: some programs look for an authority by its name alone.
		Subject:   pkix.Name{CommonName: s.Title + " CA " + hex.EncodeToString(serial.Bytes()[:4])},
		NotBefore: s.Now.Add(-Skew), NotAfter: s.Now.Add(AuthorityLife),
		KeyUsage: x509.KeyUsageCertSign | x509.KeyUsageCRLSign, IsCA: true, BasicConstraintsValid: true, MaxPathLenZero: true,
	}
	return sign(random, template, signer{template, private}, private)
}

func (s State) issue(random io.Reader) (map[string][]byte, error) {
	a, err := readAuthority(s.Authority)
	if err != nil {
		return nil, err
	}
	serial, err := newSerial(random)
	if err != nil {
		return nil, err
	}
	private, err := ecdsa.GenerateKey(elliptic.P256(), random)
	if err != nil {
		return nil, fmt.Errorf("make key: %w", err)
	}
	ends := s.Now.Add(ServerLife)
	if a.now.cert.NotAfter.Before(ends) {
		ends = a.now.cert.NotAfter
	}
	template := &x509.Certificate{
		SerialNumber: serial, Subject: pkix.Name{CommonName: s.Title}, DNSNames: s.Names,
		NotBefore: s.Now.Add(-Skew), NotAfter: ends, KeyUsage: x509.KeyUsageDigitalSignature,
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth}, BasicConstraintsValid: true,
	}
	out := map[string][]byte{KeyBundle: a.bundle(s.Now)}
	if out[KeyServer], out[KeyServerKey], err = sign(random, template, a.now, private); err != nil {
		return nil, err
	}
	// If it were written, it would be made again at once, and without end.
	made := s
	made.Server = out
	if _, wrong := readServer(made, a); wrong != "" {
		return nil, fmt.Errorf("%w: %s", ErrUseless, wrong)
	}
	if order := s.Server[KeyOrder]; len(order) > 0 {
		out[KeyOrder] = order
	}
	if s.Order != nil && !s.Order.Authority {
		out[KeyOrder] = []byte(s.Order.ID)
	}
	return out, nil
}

func sign(random io.Reader, template *x509.Certificate, by signer, key *ecdsa.PrivateKey) (certPEM, keyPEM []byte, err error) {
	der, err := x509.CreateCertificate(random, template, by.cert, key.Public(), by.key)
	if err != nil {
		return nil, nil, fmt.Errorf("sign certificate: %w", err)
	}
	raw, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		return nil, nil, fmt.Errorf("encode key: %w", err)
	}
	return pem.EncodeToMemory(&pem.Block{Type: blockCertificate, Bytes: der}), pem.EncodeToMemory(&pem.Block{Type: blockKey, Bytes: raw}), nil
}

// newSerial returns a positive number of a fixed length.
func newSerial(random io.Reader) (*big.Int, error) {
	raw := make([]byte, serialBytes)
	if _, err := io.ReadFull(random, raw); err != nil {
		return nil, fmt.Errorf("make serial number: %w", err)
	}
	raw[0] = raw[0]&0x7f | 0x40
	return new(big.Int).SetBytes(raw), nil
}

// Bundle returns the file of the authorities to trust now, by what the authority's Secret holds.
func Bundle(data map[string][]byte, now time.Time) ([]byte, error) {
	a, err := readAuthority(data)
	if err != nil {
		return nil, err
	}
	return a.bundle(now), nil
}
