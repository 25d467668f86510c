// SPDX-License-Identifier: Apache-2.0

package certs

import (
	"bytes"
	"crypto/ecdsa"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/mysql-mfg/mfg/internal/chain"
)

const (
	blockCertificate = "CERTIFICATE"
	blockKey         = "PRIVATE KEY"
	// mostFormer bounds how many former authorities are kept: a person may add some, and several may be lost in a row.
	mostFormer = 8
)

// signer is an authority with its key.
type signer struct {
	cert *x509.Certificate
	key  *ecdsa.PrivateKey
}

// made is when it was made.
func (s signer) made() time.Time { return s.cert.NotBefore.Add(Skew) }

// authority is what the authority's Secret holds.
type authority struct {
	now    signer
	next   *signer
	former []*x509.Certificate
}

// readAuthority reads the authority's Secret. Parts not yet in use, or no longer, may be unreadable: they count as missing.
func readAuthority(data map[string][]byte) (authority, error) {
	now, err := readSigner(data[KeyAuthority], data[KeyPrivate])
	if err != nil {
		return authority{}, err
	}
	a := authority{now: *now, former: certificates(data[KeyFormer])}
	a.next, _ = readSigner(data[KeyNext], data[KeyNextKey])
	return a, nil
}

func readSigner(cert, key []byte) (*signer, error) {
	pair, err := chain.Pair(cert, key)
	if err != nil {
		// Never with the error's own words: they might quote what a person wrote there.
		return nil, fmt.Errorf("%s and %s are no pair of a certificate and its key", KeyAuthority, KeyPrivate)
	}
	private, is := pair.PrivateKey.(*ecdsa.PrivateKey)
	if !is || pair.Leaf.CheckSignatureFrom(pair.Leaf) != nil {
		return nil, errors.New(KeyAuthority + " is no authority that signs itself with an ECDSA key")
	}
	return &signer{pair.Leaf, private}, nil
}

// certificates returns the readable certificates of a PEM file.
func certificates(file []byte) []*x509.Certificate {
	all := chain.Read(file)
	return all[:min(len(all), mostFormer)]
}

// trusted returns all valid authorities, the oldest first: that order stays the same while the role of each changes.
func (a authority) trusted(now time.Time) []*x509.Certificate {
	all := append([]*x509.Certificate{a.now.cert}, a.former...)
	if a.next != nil {
		all = append(all, a.next.cert)
	}
	all = slices.DeleteFunc(all, func(c *x509.Certificate) bool { return c != a.now.cert && now.After(c.NotAfter) })
	slices.SortFunc(all, func(x, y *x509.Certificate) int {
		if byTime := x.NotBefore.Compare(y.NotBefore); byTime != 0 {
			return byTime
		}
		return bytes.Compare(x.Raw, y.Raw)
	})
	return slices.CompactFunc(all, func(x, y *x509.Certificate) bool { return bytes.Equal(x.Raw, y.Raw) })
}

// bundle returns the file of all trusted authorities.
func (a authority) bundle(now time.Time) []byte { return encode(a.trusted(now)) }

func encode(all []*x509.Certificate) []byte {
	var out []byte
	for _, c := range all {
		out = append(out, pem.EncodeToMemory(&pem.Block{Type: blockCertificate, Bytes: c.Raw})...)
	}
	return out
}

// readServer reads the server certificate, and says why there must be another at once; empty if this one serves.
func readServer(s State, a authority) (*x509.Certificate, string) {
	if s.Server == nil {
		return nil, "there is none"
	}
	pair, err := chain.Pair(s.Server[KeyServer], s.Server[KeyServerKey])
	if err != nil {
		return nil, "what is there is no certificate with its key"
	}
	for _, name := range s.Names {
		if pair.Leaf.VerifyHostname(name) != nil {
			return pair.Leaf, "it lacks the name " + name
		}
	}
	roots := x509.NewCertPool()
	for _, c := range a.trusted(s.Now) {
		roots.AddCert(c)
	}
	if _, err := pair.Leaf.Verify(x509.VerifyOptions{Roots: roots, CurrentTime: s.Now}); err != nil {
		if s.Now.Before(pair.Leaf.NotBefore) {
			return pair.Leaf, "its time has not come"
		}
		if invalid, _ := errors.AsType[x509.CertificateInvalidError](err); invalid.Reason == x509.Expired {
			return pair.Leaf, "its time is over"
		}
		return pair.Leaf, "no authority of the group has signed it"
	}
	return pair.Leaf, ""
}
