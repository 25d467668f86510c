// SPDX-License-Identifier: Apache-2.0

// Package chain says which authority makes a certificate trusted, and until when. The operator reports it in status; the plugin uses it too.
package chain

import (
	"crypto/rsa"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"slices"
	"time"
)

// MostRead bounds how many certificates of a file are read: a person may put any number there.
const MostRead = 64

// mostBits is the longest RSA key that we verify with. Keys in use are not longer, and the time to verify grows with the square of the
// length: a Secret has room for a key that keeps a processor busy for minutes, and nothing ends that early.
const mostBits = 16384

// mostKey is the longest file with a private key that we read: a key of mostBits has 12,700 bytes. The time to read an RSA key grows with the
// square of its length too, and the file is a tenant's: a key that fills a Secret took minutes, at every look.
const mostKey = 16 << 10

// ErrKeyTooLong means that a private key was not read, because it is too long.
var ErrKeyTooLong = errors.New("the file of the private key is longer than that of any key in use")

// Pair is tls.X509KeyPair for files that anyone may have written.
func Pair(cert, key []byte) (tls.Certificate, error) {
	if len(key) > mostKey {
		return tls.Certificate{}, ErrKeyTooLong
	}
	return tls.X509KeyPair(cert, key)
}

// Read returns the first certificates of a file, except those that cannot be read.
func Read(file []byte) []*x509.Certificate { return read(file, MostRead) }

// Authorities returns all authorities in a file; false if there is none.
func Authorities(file []byte) (*x509.CertPool, bool) {
	pool, all := x509.NewCertPool(), read(file, len(file))
	for _, c := range all {
		pool.AddCert(c)
	}
	return pool, len(all) > 0
}

func read(file []byte, most int) []*x509.Certificate {
	var all []*x509.Certificate
	for range most {
		var block *pem.Block
		if block, file = pem.Decode(file); block == nil {
			break
		}
		c, err := x509.ParseCertificate(block.Bytes)
		if err != nil || block.Type != "CERTIFICATE" {
			continue
		}
		if key, is := c.PublicKey.(*rsa.PublicKey); !is || key.N.BitLen() <= mostBits {
			all = append(all, c)
		}
	}
	return all
}

// Above is the path of certificates that makes the first one of a chain trusted, from the one that signed it to an authority. If there are
// several paths, it is the one that is valid longest: until that ends, no other one is needed. It is nil if there is none.
func Above(chain, authorities []*x509.Certificate) []*x509.Certificate {
	roots, between := x509.NewCertPool(), x509.NewCertPool()
	for _, c := range authorities {
		roots.AddCert(c)
	}
	for _, c := range chain[1:] {
		between.AddCert(c)
	}
	var best []*x509.Certificate
	// It does not verify for now, since whether something has ended is another question, but for both ends: an authority may be younger.
	for _, at := range []time.Time{chain[0].NotBefore.Add(time.Second), chain[0].NotAfter.Add(-time.Second)} {
		found, err := chain[0].Verify(x509.VerifyOptions{Roots: roots, Intermediates: between, CurrentTime: at, KeyUsages: []x509.ExtKeyUsage{x509.ExtKeyUsageAny}})
		if err != nil {
			continue
		}
		for _, path := range found {
			above := path[min(1, len(path)-1):] // an authority in the first place vouches for itself
			if best == nil || EndsFirst(above).NotAfter.After(EndsFirst(best).NotAfter) {
				best = above
			}
		}
	}
	return best
}

// EndsFirst is the certificate of a path that ends first.
func EndsFirst(path []*x509.Certificate) *x509.Certificate {
	return slices.MinFunc(path, func(a, b *x509.Certificate) int { return a.NotAfter.Compare(b.NotAfter) })
}
