// SPDX-License-Identifier: Apache-2.0

package certs

import (
	"bytes"
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"maps"
	"math/big"
	"slices"
	"strings"
	"testing"
	"testing/iotest"
	"time"
)

// fresh is a world that knows nothing of those before it in the same test.
func fresh(t *testing.T) *world {
	t.Helper()
	delete(loaded, t.Name())
	return newWorld(t)
}

// lost is a group whose authority was lost and replaced, and whose sites do not answer: what they show is by the former one.
func lost(t *testing.T) *world {
	t.Helper()
	w := fresh(t)
	w.load()
	w.s.Authority = nil
	w.settle()
	w.steps = nil
	return w
}

// TestTheNewAuthorityWaitsForSites that would not trust what it signs, but not until nobody could connect.
func TestTheNewAuthorityWaitsForSites(t *testing.T) {
	for days, want := range map[int]string{1: "", 65: "", 74: "", 76: "by the new authority, because the former certificate ends soon"} {
		w := lost(t)
		w.s.Now = begin.Add(time.Duration(days) * day)
		d := Decide(w.s)
		if (d.Step == IssueServer) != (want != "") || d.Why != want || (d.Wait == "") != (want != "") {
			t.Errorf("after %d days: %+v", days, d)
		}
	}
	w := lost(t)
	w.load()
	if d := Decide(w.s); d.Step != Nothing || !strings.Contains(d.Wait, "signs from 2") {
		t.Errorf("once all sites trust it, before clients have had their time: %+v", d)
	}
	w.s.Order = &Order{ID: "leaked"}
	if d := Decide(w.s); d.Step != IssueServer || d.Why != "by order" {
		t.Errorf("an order does not wait for clients: %+v", d)
	}
	w.s.Order = nil
	w.s.Now = w.s.Now.Add(Grace)
	if d := Decide(w.s); d.Step != IssueServer || d.Why != "by the new authority" {
		t.Errorf("once all trust it: %+v", d)
	}
}

// TestWhyACertificateIsMade is told in an event.
func TestWhyACertificateIsMade(t *testing.T) {
	other := fresh(t)
	for name, tc := range map[string]struct {
		change func(w *world)
		why    string
	}{
		"a name":      {func(w *world) { w.s.Names = append(w.s.Names, "c") }, "it lacks the name c"},
		"time":        {func(w *world) { w.s.Now = begin.Add(61 * day) }, "two thirds of its time are over"},
		"before that": {func(w *world) { w.s.Now = begin.Add(59 * day) }, ""},
		"its end":     {func(w *world) { w.s.Now = begin.Add(91 * day) }, "its time is over"},
		"nothing":     {func(w *world) { w.s.Server = nil }, "there is none"},
		"order":       {func(w *world) { w.s.Order = &Order{ID: "7"} }, "by order"},
		"foreign":     {func(w *world) { w.s.Server = maps.Clone(other.s.Server) }, "no authority of the group has signed it"},
		"another use": {func(w *world) { w.s.Server = forClients(t, w) }, "no authority of the group has signed it"},
	} {
		w := fresh(t)
		tc.change(w)
		if d := Decide(w.s); d.Why != tc.why || (d.Step == IssueServer) != (tc.why != "") {
			t.Errorf("%s: %+v", name, d)
		}
	}
}

// certify signs a template, by itself if by is nil.
func certify(t *testing.T, template, by *x509.Certificate, key, signs crypto.Signer) (crt, keyed []byte) {
	t.Helper()
	template.SerialNumber, template.NotBefore, template.NotAfter = big.NewInt(5), begin.Add(-Skew), begin.Add(ServerLife)
	template.BasicConstraintsValid = true
	if by == nil {
		by, signs = template, key
	}
	der, err := x509.CreateCertificate(rand.Reader, template, by, key.Public(), signs)
	if err != nil {
		t.Fatal(err)
	}
	raw, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	return pem.EncodeToMemory(&pem.Block{Type: blockCertificate, Bytes: der}), pem.EncodeToMemory(&pem.Block{Type: blockKey, Bytes: raw})
}

func ecdsaKey(t *testing.T) *ecdsa.PrivateKey {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	return key
}

// forClients is a certificate by the group's authority that no server may show.
func forClients(t *testing.T, w *world) map[string][]byte {
	t.Helper()
	a, err := readAuthority(w.s.Authority)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{DNSNames: w.s.Names, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth}}
	crt, key := certify(t, template, a.now.cert, ecdsaKey(t), a.now.key)
	return map[string][]byte{KeyServer: crt, KeyServerKey: key, KeyBundle: w.s.Server[KeyBundle]}
}

// TestWhatIsNoAuthority: what signs must be one, with a key that this package can sign with.
func TestWhatIsNoAuthority(t *testing.T) {
	rsaKey, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		t.Fatal(err)
	}
	ca := func() *x509.Certificate { return &x509.Certificate{IsCA: true, Subject: pkix.Name{CommonName: "x"}} }
	w := fresh(t)
	above, err := readAuthority(w.s.Authority)
	if err != nil {
		t.Fatal(err)
	}
	for name, tc := range map[string]struct {
		make func() (crt, key []byte)
		says string
	}{
		"an authority":            {func() ([]byte, []byte) { return certify(t, ca(), nil, ecdsaKey(t), nil) }, ""},
		"its key is RSA":          {func() ([]byte, []byte) { return certify(t, ca(), nil, rsaKey, nil) }, "is no authority"},
		"it signs only itself":    {func() ([]byte, []byte) { return certify(t, &x509.Certificate{}, nil, ecdsaKey(t), nil) }, "is no authority"},
		"another one is above it": {func() ([]byte, []byte) { return certify(t, ca(), above.now.cert, ecdsaKey(t), above.now.key) }, "is no authority"},
		"it is of another key": {func() ([]byte, []byte) {
			c, _ := certify(t, ca(), nil, ecdsaKey(t), nil)
			return c, w.s.Authority[KeyPrivate]
		}, "no pair"},
		"there is nothing of that": {func() ([]byte, []byte) { return nil, nil }, "no pair"},
	} {
		crt, key := tc.make()
		data := map[string][]byte{KeyAuthority: crt, KeyPrivate: key}
		d := Decide(State{Now: begin, Authority: data})
		if !strings.Contains(d.Broken, tc.says) || (d.Broken == "") != (tc.says == "") {
			t.Errorf("%s: %q", name, d.Broken)
		}
		if _, err := Bundle(data, begin); (err == nil) != (tc.says == "") {
			t.Errorf("%s: bundle: %v", name, err)
		}
		for _, step := range []Step{PrepareAuthority, TrustAuthorities, SwitchAuthority, IssueServer} {
			if _, err := (State{Now: begin, Authority: data, Server: map[string][]byte{}}).Carry(Decision{Step: step}, rand.Reader); tc.says != "" && err == nil {
				t.Errorf("%s: %s is carried out", name, step)
			}
		}
	}
	for _, step := range []Step{Nothing, "Another"} {
		if data, err := w.s.Carry(Decision{Step: step}, rand.Reader); err == nil {
			t.Errorf("%q: %v", step, data)
		}
	}
}

// TestWithoutRandomnessNothingIsMade.
func TestWithoutRandomnessNothingIsMade(t *testing.T) {
	w := fresh(t)
	none := iotest.ErrReader(errors.New("none"))
	for _, step := range []Step{MakeAuthority, PrepareAuthority, IssueServer} {
		if data, err := w.s.Carry(Decision{Step: step}, none); err == nil {
			t.Errorf("%s: %v", step, slices.Collect(maps.Keys(data)))
		}
	}
	for _, of := range []byte{0, 0xff} {
		serial, err := newSerial(bytes.NewReader(bytes.Repeat([]byte{of}, serialBytes)))
		if err != nil || serial.Sign() <= 0 || serial.BitLen() != 8*serialBytes-1 {
			t.Errorf("a serial number of %x: %v, %v", of, serial, err)
		}
	}
}

// TestWhenBothAreRenewed is what people and alerts are told.
func TestWhenBothAreRenewed(t *testing.T) {
	d := Decide(fresh(t).s)
	if want := begin.Add(-Skew).Add((ServerLife + Skew) * 2 / 3); !d.ServerRenews.Equal(want) || !d.AuthorityRenews.Equal(begin.Add(AuthorityLife-AuthorityRest)) {
		t.Errorf("%+v", d)
	}
}

// prepared is a group with an authority that signs next, by time.
func prepared(t *testing.T) *world {
	t.Helper()
	w := fresh(t)
	w.s.Now = begin.Add(AuthorityLife - AuthorityRest + time.Minute)
	w.settle()
	w.steps = nil
	return w
}

// TestAnAuthorityThatEndsIsReplacedWithoutAsking: a month before, whatever sites and clients have.
func TestAnAuthorityThatEndsIsReplacedWithoutAsking(t *testing.T) {
	for left, want := range map[time.Duration]Step{AuthorityLate - time.Hour: SwitchAuthority, AuthorityLate + time.Hour: Nothing} {
		w := prepared(t)
		w.s.Now = begin.Add(AuthorityLife - left)
		w.settleBut(SwitchAuthority)
		if d := Decide(w.s); d.Step != want {
			t.Errorf("%s before its end: %+v", left, d)
		}
	}
	// One that was switched and whose former is still there, because a site is away, gets the next one all the same.
	for left, want := range map[time.Duration]Step{AuthorityLate - time.Hour: PrepareAuthority, AuthorityLate + time.Hour: Nothing} {
		w := lost(t)
		w.load()
		w.settle()
		w.s.Now = begin.Add(AuthorityLife - left)
		w.settleBut(PrepareAuthority)
		if d := Decide(w.s); d.Step != want {
			t.Errorf("%s before its end, with a former one: %+v", left, d)
		}
	}
}

// settleBut takes steps until there is none, or the next is one that the test looks at.
func (w *world) settleBut(last Step) {
	w.t.Helper()
	for range 10 {
		d := Decide(w.s)
		if d.Step == Nothing || d.Step == last {
			return
		}
		w.step(d)
	}
	w.t.Fatalf("it never ends: %v", w.steps)
}

// TestAnOrderIsDoneOnceItIs, and is noted on what is under way already.
func TestAnOrderIsDoneOnceItIs(t *testing.T) {
	w := fresh(t)
	for _, authority := range []bool{true, false} {
		w.s.Order = &Order{ID: "9", Authority: authority, Grace: LeastGrace}
		if d := Decide(w.s); d.Done || d.Step == Nothing {
			t.Errorf("authority %t: %+v", authority, d)
		}
	}
	w = prepared(t)
	next := w.s.Authority[KeyNext]
	w.s.Order = &Order{ID: "9", Authority: true, Grace: LeastGrace}
	w.settle()
	if !slices.Equal(w.steps, []Step{PrepareAuthority}) || !bytes.Equal(w.s.Authority[KeyNext], next) || string(w.s.Authority[KeyOrder]) != "9" {
		t.Errorf("%v: order %q", w.steps, w.s.Authority[KeyOrder])
	}
	if got := graceOf(w.s.Authority); got != LeastGrace {
		t.Errorf("clients have %s", got)
	}
	// One after the other: what is ordered while a former one is still trusted waits.
	w = lost(t)
	w.s.Order = &Order{ID: "9", Authority: true, Grace: LeastGrace}
	if w.settle(); len(w.steps) > 0 {
		t.Errorf("with a former authority: %v", w.steps)
	}
}

// TestNothingIsNotedThatWasNotOrdered: neither an order of the one kind on the Secret of the other, nor the time of an earlier order.
func TestNothingIsNotedThatWasNotOrdered(t *testing.T) {
	w := fresh(t)
	for key, data := range map[string]map[string][]byte{KeyFormer: w.s.Authority, KeyOrder: w.s.Server, KeyOrderGrace: w.s.Authority} {
		if value, is := data[key]; is {
			t.Errorf("a new group has %s: %q", key, value)
		}
	}
	w.s.Authority[KeyOrderGrace] = []byte("2m")
	w.s.Order = &Order{ID: "s"} // for the server
	w.s.Now = begin.Add(AuthorityLife - AuthorityRest + time.Minute)
	w.settle()
	if string(w.s.Authority[KeyOrder]) == "s" || graceOf(w.s.Authority) != Grace || w.s.Authority[KeyNext] == nil {
		t.Errorf("order %q, grace %s", w.s.Authority[KeyOrder], graceOf(w.s.Authority))
	}
	if string(w.s.Server[KeyOrder]) != "s" {
		t.Errorf("order of the server %q", w.s.Server[KeyOrder])
	}
	w.s.Order = &Order{ID: "a", Authority: true, Grace: Grace}
	w.s.Names = append(w.s.Names, "c")
	if w.settle(); string(w.s.Server[KeyOrder]) != "s" {
		t.Errorf("what another order was noted as on a certificate that is made again: %q", w.s.Server[KeyOrder])
	}
	for text, want := range map[string]time.Duration{"": Grace, "x": Grace, "119s": Grace, "2m": LeastGrace, "720h": MostGrace, "721h": Grace} {
		if got := graceOf(map[string][]byte{KeyOrderGrace: []byte(text)}); got != want {
			t.Errorf("%q: %s, want %s", text, got, want)
		}
	}
}

// TestNoCertificateOutlivesItsAuthority.
func TestNoCertificateOutlivesItsAuthority(t *testing.T) {
	w := fresh(t)
	w.s.Now = begin.Add(AuthorityLife - 60*day)
	if w.settleBut(PrepareAuthority); !w.leaf().NotAfter.Equal(begin.Add(AuthorityLife)) {
		t.Errorf("it ends at %s, its authority at %s", w.leaf().NotAfter, begin.Add(AuthorityLife))
	}
}

// TestTheFormerLeavesOnceAllTrustTheNew: a site that shows a new certificate, but has not loaded the authorities as they are, is waited for.
func TestTheFormerLeavesOnceAllTrustTheNew(t *testing.T) {
	w := lost(t)
	w.load()
	w.s.Now = w.s.Now.Add(Grace)
	w.settle()
	w.load()
	w.s.Now = w.s.Now.Add(Parting + Skew)
	w.s.Sites[1].Bundle = "other"
	if d := Decide(w.s); d.Step != Nothing || !strings.Contains(d.Wait, "MySQL of b shows") {
		t.Errorf("%+v", d)
	}
}

// TestWhatIsTrusted is every authority once, the oldest first, without those that ended; the one that signs always.
func TestWhatIsTrusted(t *testing.T) {
	w := fresh(t)
	var former []*x509.Certificate
	for range 6 {
		w.s.Now = w.s.Now.Add(day)
		data, err := w.s.makeAuthority(rand.Reader)
		if err != nil {
			t.Fatal(err)
		}
		former = append(former, certificates(data[KeyAuthority])...)
	}
	slices.Reverse(former)
	short, _ := certify(t, &x509.Certificate{IsCA: true, Subject: pkix.Name{CommonName: "short"}}, nil, ecdsaKey(t), nil)
	file := slices.Concat(encode(former), w.s.Authority[KeyAuthority], short)
	w.s.Authority[KeyFormer] = file
	for at, want := range map[time.Duration]int{ServerLife - day: 8, ServerLife + day: 7, AuthorityLife + 30*day: 1} {
		bundle, err := Bundle(w.s.Authority, begin.Add(at))
		got := certificates(bundle)
		if err != nil || len(got) != want || !slices.IsSortedFunc(got, func(a, b *x509.Certificate) int { return a.NotBefore.Compare(b.NotBefore) }) {
			t.Errorf("%s later: %d certificates, want %d: %v", at, len(got), want, err)
		}
	}
	raw := certificates(w.s.Authority[KeyAuthority])[0].Raw
	odd := slices.Concat(pem.EncodeToMemory(&pem.Block{Type: blockKey, Bytes: raw}), pem.EncodeToMemory(&pem.Block{Type: blockCertificate, Bytes: []byte("x")}))
	if got := certificates(odd); len(got) > 0 {
		t.Errorf("what is no certificate is read: %v", got)
	}
}
