// SPDX-License-Identifier: Apache-2.0

package certs

import (
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"errors"
	"slices"
	"testing"
	"time"
)

// ahead is a group that was made by an operator whose clock was that far ahead, and that nobody has taken anything of since.
func ahead(t *testing.T, by time.Duration) *world {
	t.Helper()
	w := fresh(t)
	w.s.Authority, w.s.Server, w.s.Now = nil, nil, begin.Add(by)
	w.settle()
	w.s.Now, w.steps = begin, nil
	return w
}

// TestAnAuthorityOfTomorrow is replaced: nothing that it signs is good, and certificates were made without end.
func TestAnAuthorityOfTomorrow(t *testing.T) {
	for _, by := range []time.Duration{time.Hour, 2 * day, 11 * 365 * day} {
		w := ahead(t, by)
		for range 4 { // fewer than a look takes
			if d := Decide(w.s); d.Step != Nothing {
				data, err := w.s.Carry(d, rand.Reader)
				if err != nil {
					t.Fatalf("%s: %s: %v", by, d.Step, err)
				}
				if w.steps = append(w.steps, d.Step); d.Step.OfAuthority() {
					w.s.Authority = data
				} else {
					w.s.Server = data
				}
			}
		}
		if want := []Step{PrepareAuthority, SwitchAuthority, IssueServer}; !slices.Equal(w.steps, want) {
			t.Errorf("%s: %v, want %v", by, w.steps, want)
		}
		w.trusts("the last step")
		// What was trusted stays so until every site shows the new one.
		if n := len(certificates(w.s.Server[KeyBundle])); n != 2 {
			t.Errorf("%s: %d authorities are trusted", by, n)
		}
		w.load()
		if w.s.Now = begin.Add(Parting + time.Minute); w.settle().Step != Nothing || len(certificates(w.s.Server[KeyBundle])) != 1 {
			t.Errorf("%s: the former authority stays: %v", by, w.steps)
		}
	}
}

// TestAnOperatorThatIsBehind leaves alone what the sites have taken: by their clocks it is good.
func TestAnOperatorThatIsBehind(t *testing.T) {
	w := fresh(t)
	w.load()
	w.s.Now = begin.Add(-time.Hour)
	if d := Decide(w.s); d.Step != Nothing || d.Broken != "" {
		t.Errorf("all sites show it: %+v", d)
	}
	for what, forget := range map[string]func(*Site){
		"its certificate": func(s *Site) { s.Current = "" }, "its authorities": func(s *Site) { s.Bundle = "" },
	} {
		other := *w
		other.s.Sites = slices.Clone(w.s.Sites)
		if forget(&other.s.Sites[1]); Decide(other.s).Step != PrepareAuthority {
			t.Errorf("b has not taken %s, and it is left alone", what)
		}
	}
	w.s.Sites = nil
	if d := Decide(w.s); d.Step != PrepareAuthority {
		t.Errorf("without sites nobody says that it is good: %+v", d)
	}
}

// TestACertificateOfTomorrow is made again, and told as what it is.
func TestACertificateOfTomorrow(t *testing.T) {
	w := fresh(t)
	w.s.Now = begin.Add(100 * day)
	w.settle()
	w.s.Now, w.steps = begin, nil
	if d := Decide(w.s); d.Step != IssueServer || d.Why != "its time has not come" {
		t.Errorf("%+v", d)
	}
	w.settle()
	if !slices.Equal(w.steps, []Step{IssueServer}) {
		t.Errorf("%v", w.steps)
	}
}

// TestAnAuthorityThatCannotSign for these names writes nothing: the next look would make another certificate, and so on.
func TestAnAuthorityThatCannotSign(t *testing.T) {
	w := fresh(t)
	key := ecdsaKey(t)
	template := &x509.Certificate{
		Subject: pkix.Name{CommonName: "narrow"}, IsCA: true, KeyUsage: x509.KeyUsageCertSign,
		PermittedDNSDomainsCritical: true, PermittedDNSDomains: []string{"elsewhere.example"},
	}
	crt, private := certify(t, template, nil, key, key)
	w.s.Authority = map[string][]byte{KeyAuthority: crt, KeyPrivate: private}
	d := Decide(w.s)
	if d.Step != IssueServer {
		t.Fatalf("%+v", d)
	}
	if data, err := w.s.Carry(d, rand.Reader); !errors.Is(err, ErrUseless) || data != nil {
		t.Errorf("wrote %d keys, %v", len(data), err)
	}
}
