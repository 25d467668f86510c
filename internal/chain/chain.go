// SPDX-License-Identifier: Apache-2.0

// Package chain says by what a certificate is believed, and until when. The operator tells it in status, the plugin judges by it.
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

// MostRead bounds how many certificates of a file are looked at: a person may put there what he likes.
const MostRead = 64

// mostBits is how long an RSA key may be that something is verified with. Nobody makes longer ones, and to verify with one takes a time that
// grows with the square of its length: a Secret has room for one that keeps a processor busy for minutes, and nothing ends that early.
const mostBits = 16384

// mostKey is how long a file with a private key may be: one of mostBits has 12,700 bytes. To read a key of RSA takes a time that grows with the
// square of its length too, and the file is a tenant's: the key that fills a Secret took minutes, at every look.
const mostKey = 16 << 10

// ErrKeyTooLong means that a private key is not looked at.
var ErrKeyTooLong = errors.New("the file of the private key is longer than that of any key in use")

// Pair is tls.X509KeyPair for files that anybody may have written.
func Pair(cert, key []byte) (tls.Certificate, error) {
	if len(key) > mostKey {
		return tls.Certificate{}, ErrKeyTooLong
	}
	return tls.X509KeyPair(cert, key)
}

// Read are the first certificates of a file, but those that cannot be read.
func Read(file []byte) []*x509.Certificate { return read(file, MostRead) }

// Authorities are all that a file says to believe; false if there is none.
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

// Above is what the first certificate of a chain is believed by, from the one that signed it to an authority. If there are several ways to
// believe it, this is the one that stays good for longest: until that is over nobody misses another one. Nil if there is none.
func Above(chain, authorities []*x509.Certificate) []*x509.Certificate {
	roots, between := x509.NewCertPool(), x509.NewCertPool()
	for _, c := range authorities {
		roots.AddCert(c)
	}
	for _, c := range chain[1:] {
		between.AddCert(c)
	}
	var best []*x509.Certificate
	// Not now: whether something has ended is another question. At both ends: an authority may be younger than what it is asked about.
	for _, at := range []time.Time{chain[0].NotBefore.Add(time.Second), chain[0].NotAfter.Add(-time.Second)} {
		found, err := chain[0].Verify(x509.VerifyOptions{Roots: roots, Intermediates: between, CurrentTime: at, KeyUsages: []x509.ExtKeyUsage{x509.ExtKeyUsageAny}})
		if err != nil {
			continue
		}
		for _, path := range found {
			above := path[min(1, len(path)-1):] // one that is an authority itself is believed by itself
			if best == nil || EndsFirst(above).NotAfter.After(EndsFirst(best).NotAfter) {
				best = above
			}
		}
	}
	return best
}

// EndsFirst is the one of a path that ends first.
func EndsFirst(path []*x509.Certificate) *x509.Certificate {
	return slices.MinFunc(path, func(a, b *x509.Certificate) int { return a.NotAfter.Compare(b.NotAfter) })
}
