// SPDX-License-Identifier: Apache-2.0

package chain

import (
	"bytes"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"math/big"
	"slices"
	"testing"
	"time"
)

const day = 24 * time.Hour

var begin = time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)

func key(t *testing.T) *ecdsa.PrivateKey {
	t.Helper()
	k, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	return k
}

// party is a certificate and its key.
type party struct {
	cert *x509.Certificate
	key  *ecdsa.PrivateKey
}

// signed makes a certificate of name and key from a day to another; by nil it signs itself.
func signed(t *testing.T, by *party, name string, k *ecdsa.PrivateKey, from, to int) *party {
	t.Helper()
	template := &x509.Certificate{
		SerialNumber: big.NewInt(int64(10000*(from+100) + to)), Subject: pkix.Name{CommonName: name},
		NotBefore: begin.Add(time.Duration(from) * day), NotAfter: begin.Add(time.Duration(to) * day),
		IsCA: name != "leaf", BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign | x509.KeyUsageDigitalSignature,
	}
	if by == nil {
		by = &party{template, k}
	}
	der, err := x509.CreateCertificate(rand.Reader, template, by.cert, k.Public(), by.key)
	if err != nil {
		t.Fatal(err)
	}
	cert, err := x509.ParseCertificate(der)
	if err != nil {
		t.Fatal(err)
	}
	return &party{cert, k}
}

// TestTheBestWayToBelieveACertificate: what counts is until when one is left, and not which authority is the youngest.
func TestTheBestWayToBelieveACertificate(t *testing.T) {
	shared, middle := key(t), key(t)
	old := signed(t, nil, "authority", shared, 0, 900)
	young := signed(t, nil, "authority", shared, 50, 300) // made again with the same key, for a shorter time
	other := signed(t, nil, "other", key(t), 0, 5000)
	between := signed(t, old, "between", middle, 0, 200)
	longer := signed(t, old, "between", middle, 0, 250)
	leaf, below := signed(t, old, "leaf", key(t), 60, 100), signed(t, between, "leaf", key(t), 60, 100)
	late := signed(t, old, "leaf", key(t), -10, 100) // older than its authority, as after that was made again
	for name, tc := range map[string]struct {
		chain, authorities []*party
		want               []*party
	}{
		"the one that signed it":                {[]*party{leaf}, []*party{other, old}, []*party{old}},
		"not the youngest, but the longest":     {[]*party{leaf}, []*party{young, old}, []*party{old}},
		"in whatever order they stand":          {[]*party{leaf}, []*party{old, young}, []*party{old}},
		"the other if that is gone":             {[]*party{leaf}, []*party{young}, []*party{young}},
		"by one between":                        {[]*party{below, between}, []*party{old}, []*party{between, old}},
		"by the one between that is longer":     {[]*party{below, between, longer}, []*party{old}, []*party{longer, old}},
		"one between is missing":                {[]*party{below}, []*party{old}, nil},
		"older than its authority":              {[]*party{late}, []*party{old}, []*party{old}},
		"by nobody who is there":                {[]*party{leaf}, []*party{other}, nil},
		"no authority":                          {[]*party{leaf}, nil, nil},
		"an authority that is shown by its own": {[]*party{other}, []*party{other}, []*party{other}},
	} {
		got := Above(certs(tc.chain), certs(tc.authorities))
		if want := certs(tc.want); !slices.EqualFunc(got, want, (*x509.Certificate).Equal) {
			t.Errorf("%s: got %v", name, names(got))
		}
	}
	if first := EndsFirst(certs([]*party{old, between, other})); !first.Equal(between.cert) {
		t.Errorf("%s ends first", first.Subject)
	}
}

func certs(all []*party) (out []*x509.Certificate) {
	for _, p := range all {
		out = append(out, p.cert)
	}
	return out
}

func names(all []*x509.Certificate) (out []string) {
	for _, c := range all {
		out = append(out, c.Subject.CommonName+" until "+c.NotAfter.Format(time.DateOnly))
	}
	return out
}

// TestReadTakesWhatCanBeRead: a person may put anything into a Secret.
func TestReadTakesWhatCanBeRead(t *testing.T) {
	a := signed(t, nil, "a", key(t), 0, 1)
	one := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: a.cert.Raw})
	// rsaOf is an authority with an RSA key so long, which nobody has.
	rsaOf := func(bits uint) []byte {
		n := new(big.Int).Lsh(big.NewInt(1), bits-1)
		template := &x509.Certificate{SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "long"}, NotBefore: begin, NotAfter: begin.Add(day), IsCA: true, BasicConstraintsValid: true}
		der, err := x509.CreateCertificate(rand.Reader, template, a.cert, &rsa.PublicKey{N: n.Add(n, big.NewInt(1)), E: 65537}, a.key)
		if err != nil {
			t.Fatal(err)
		}
		return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})
	}
	for name, tc := range map[string]struct {
		file []byte
		want int
	}{
		"nothing":                  {nil, 0},
		"no PEM":                   {[]byte("x"), 0},
		"one":                      {one, 1},
		"rubbish before it":        {append([]byte("\n\n-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n"), one...), 1},
		"more than anybody reads":  {bytes.Repeat(one, MostRead+1), MostRead},
		"as much as is read of it": {bytes.Repeat(one, MostRead), MostRead},
		"the longest key":          {rsaOf(16384), 1},
		"too long a key alone":     {rsaOf(16385), 0},
		"too long a key":           {append(rsaOf(16385), one...), 1},
	} {
		if got := Read(tc.file); len(got) != tc.want {
			t.Errorf("%s: %d certificates, want %d", name, len(got), tc.want)
		}
		if _, is := Authorities(tc.file); is != (tc.want > 0) {
			t.Errorf("%s: authorities %t", name, is)
		}
	}
}

// TestAuthoritiesAreBelieved: all that can be read, however many, but those with too long a key.
func TestAuthoritiesAreBelieved(t *testing.T) {
	var file []byte
	var last *party
	for range MostRead + 1 {
		last = signed(t, nil, "a", key(t), 0, 1)
		file = append(file, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: last.cert.Raw})...)
	}
	pool, _ := Authorities(file)
	leaf := signed(t, last, "leaf", key(t), 0, 1)
	if _, err := leaf.cert.Verify(x509.VerifyOptions{Roots: pool, CurrentTime: begin.Add(time.Hour), KeyUsages: []x509.ExtKeyUsage{x509.ExtKeyUsageAny}}); err != nil {
		t.Errorf("the last one is not believed: %v", err)
	}
}

// TestNoKeyIsReadThatTakesMinutes: 128 KiB of RSA take 5 s to read, the 1 MiB of a Secret minutes, and nothing ends that early.
func TestNoKeyIsReadThatTakesMinutes(t *testing.T) {
	k := key(t)
	p := signed(t, nil, "leaf", k, 0, 1)
	raw, err := x509.MarshalPKCS8PrivateKey(k)
	if err != nil {
		t.Fatal(err)
	}
	crt := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: p.cert.Raw})
	usual := pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: raw})
	if pair, err := Pair(crt, usual); err != nil || !pair.Leaf.Equal(p.cert) {
		t.Errorf("a usual key: %v", err)
	}
	if _, err := Pair(crt, append(usual, bytes.Repeat([]byte("\n"), mostKey)...)); !errors.Is(err, ErrKeyTooLong) {
		t.Errorf("a file that is too long: %v", err)
	}
	// PKCS#8 of an RSA key has its modulus 4.5 times, and some bytes around it.
	if longest := pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: make([]byte, mostBits/8*9/2+100)}); len(longest) > mostKey {
		t.Errorf("a key of %d bits has %d bytes", mostBits, len(longest))
	}
}
