// SPDX-License-Identifier: Apache-2.0

package certs

import (
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"
)

var begin = time.Date(2026, 11, 25, 9, 0, 0, 0, time.UTC)

const day = 24 * time.Hour

// world is two Secrets, and sites that load what they hold unless they are away.
type world struct {
	t     *testing.T
	s     State
	away  map[string]bool
	steps []Step
}

func newWorld(t *testing.T) *world {
	t.Helper()
	w := &world{t: t, away: map[string]bool{}, s: State{
		Now: begin, Title: "mysql-orders", Names: []string{"mysql-orders-a.shop.svc", "mysql-orders-b.shop.svc"}, Sites: []Site{{Name: "a"}, {Name: "b"}},
	}}
	w.settle()
	w.steps = nil
	return w
}

// settle takes steps until there is none, as a reconcile does, and returns what then is decided.
func (w *world) settle() Decision {
	w.t.Helper()
	for range 10 {
		d := Decide(w.s)
		if d.Step == Nothing {
			return d
		}
		w.step(d)
	}
	w.t.Fatalf("it never ends: %v", w.steps)
	return Decision{}
}

func (w *world) step(d Decision) {
	w.t.Helper()
	before := map[bool]map[string][]byte{true: maps.Clone(w.s.Authority), false: maps.Clone(w.s.Server)}
	data, err := w.s.Carry(d, rand.Reader)
	if err != nil {
		w.t.Fatalf("%s: %v", d.Step, err)
	}
	if maps.EqualFunc(before[d.Step.OfAuthority()], data, func(a, b []byte) bool { return string(a) == string(b) }) {
		w.t.Fatalf("%s changes nothing", d.Step)
	}
	w.steps = append(w.steps, d.Step)
	if d.Step.OfAuthority() {
		w.s.Authority = data
	} else {
		w.s.Server = data
	}
	w.trusts(d.Step)
}

// load has the sites that are there take what is in the Secret.
func (w *world) load() {
	for i, site := range w.s.Sites {
		if !w.away[site.Name] {
			w.s.Sites[i].Bundle, w.s.Sites[i].Current = Fingerprint(w.s.Server[KeyBundle]), Fingerprint(w.s.Server[KeyServer])
			w.shown(site.Name)
		}
	}
}

// loaded is what a site has taken last, certificate and authorities.
var loaded = map[string]map[string][2][]byte{}

func (w *world) shown(site string) {
	if loaded[w.t.Name()] == nil {
		loaded[w.t.Name()] = map[string][2][]byte{}
	}
	loaded[w.t.Name()][site] = [2][]byte{w.s.Server[KeyServer], w.s.Server[KeyBundle]}
}

// trusts checks that whoever has what is in the Secret trusts every site that is there, and every site the other.
func (w *world) trusts(after Step) {
	w.t.Helper()
	if w.s.Server == nil {
		return
	}
	all := maps.Clone(loaded[w.t.Name()])
	if all == nil {
		all = map[string][2][]byte{}
	}
	all["the Secret"] = [2][]byte{w.s.Server[KeyServer], w.s.Server[KeyBundle]}
	for who, has := range all {
		for whom, shows := range all {
			roots := x509.NewCertPool()
			roots.AppendCertsFromPEM(has[1])
			block, _ := pem.Decode(shows[0])
			leaf, err := x509.ParseCertificate(block.Bytes)
			if err == nil && w.s.Now.Before(leaf.NotAfter) {
				_, err = leaf.Verify(x509.VerifyOptions{Roots: roots, CurrentTime: w.s.Now})
			}
			if err != nil {
				w.t.Errorf("after %s %s does not trust what %s shows: %v", after, who, whom, err)
			}
		}
	}
}

func (w *world) leaf() *x509.Certificate {
	w.t.Helper()
	pair, err := tls.X509KeyPair(w.s.Server[KeyServer], w.s.Server[KeyServerKey])
	if err != nil {
		w.t.Fatal(err)
	}
	return pair.Leaf
}

func TestAGroupGetsACertificate(t *testing.T) {
	w := newWorld(t)
	if got := certificates(w.s.Server[KeyBundle]); len(got) != 1 || got[0].MaxPathLen != 0 || !got[0].MaxPathLenZero || !got[0].IsCA {
		t.Fatalf("the authority is %+v", got)
	}
	a, leaf := certificates(w.s.Authority[KeyAuthority])[0], w.leaf()
	for what, ok := range map[string]bool{
		"skew of the server certificate": leaf.NotBefore.Equal(begin.Add(-Skew)), "its life": leaf.NotAfter.Equal(begin.Add(ServerLife)),
		"skew of the authority": a.NotBefore.Equal(begin.Add(-Skew)), "the authority's life": a.NotAfter.Equal(begin.Add(AuthorityLife)),
		"names": slices.Equal(leaf.DNSNames, w.s.Names), "signature": leaf.CheckSignatureFrom(a) == nil, "no addresses": len(leaf.IPAddresses) == 0,
		"no authority": !leaf.IsCA, "serial": leaf.SerialNumber.Sign() > 0 && leaf.SerialNumber.BitLen() >= 100,
		"no key of the authority among what is mounted": !strings.Contains(string(w.s.Server[KeyBundle]), "PRIVATE"),
		"length of names": len(a.Subject.CommonName) <= 64,
	} {
		if !ok {
			t.Errorf("%s: authority %+v, leaf %+v", what, a.Subject, leaf)
		}
	}
	d := Decide(w.s)
	if !d.ServerEnds.Equal(leaf.NotAfter) || !d.AuthorityEnds.Equal(a.NotAfter) || d.Wait != "" {
		t.Errorf("%+v", d)
	}
}

// A year of a group whose operator looks once a day: nobody is ever without a valid certificate that all trust, and none is made too often.
func TestTheServerCertificateIsRenewed(t *testing.T) {
	w := newWorld(t)
	w.load()
	for range 365 {
		w.s.Now = w.s.Now.Add(day)
		w.trusts("a day")
		w.settle()
		w.load()
		if left := w.leaf().NotAfter.Sub(w.s.Now); left < ServerLife/3-2*day {
			t.Fatalf("%s are left", left)
		}
	}
	if n := len(w.steps); n != 6 || slices.ContainsFunc(w.steps, func(s Step) bool { return s != IssueServer }) {
		t.Errorf("%v", w.steps)
	}
}

func TestWhatIsWrongIsMadeAgain(t *testing.T) {
	other := newWorld(t)
	for name, change := range map[string]func(w *world){
		"the Secret is gone":          func(w *world) { w.s.Server = nil },
		"it is empty":                 func(w *world) { w.s.Server = map[string][]byte{} },
		"rubbish":                     func(w *world) { w.s.Server[KeyServer] = []byte("x") },
		"another key":                 func(w *world) { w.s.Server[KeyServerKey] = other.s.Server[KeyServerKey] },
		"another authority signed it": func(w *world) { w.s.Server = maps.Clone(other.s.Server) },
		"a site more":                 func(w *world) { w.s.Names = append(w.s.Names, "mysql-orders-c.shop.svc") },
		"it has ended":                func(w *world) { w.s.Now = w.s.Now.Add(ServerLife + day) },
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			change(w)
			d := w.settle()
			if !slices.Equal(w.steps, []Step{IssueServer}) || d.Broken != "" || w.leaf().VerifyHostname(w.s.Names[len(w.s.Names)-1]) != nil {
				t.Errorf("%v, %+v", w.steps, d)
			}
		})
	}
	t.Run("what is trusted", func(t *testing.T) {
		w := newWorld(t)
		w.s.Server[KeyBundle] = nil
		if w.settle(); !slices.Equal(w.steps, []Step{TrustAuthorities}) {
			t.Errorf("%v", w.steps)
		}
	})
}

// An authority is replaced in steps. Whoever looks at any moment sees all trust all; trusts() checks it after every step.
func TestAnAuthorityIsReplacedInSteps(t *testing.T) {
	w := newWorld(t)
	w.load()
	before := w.s.Authority[KeyAuthority]
	w.s.Order = &Order{ID: "1", Authority: true, Grace: time.Hour}
	d := w.settle()
	if !slices.Equal(w.steps, []Step{PrepareAuthority, TrustAuthorities}) || !strings.Contains(d.Wait, "MySQL of a, b trusts it") || d.Done {
		t.Fatalf("%v, %+v", w.steps, d)
	}
	w.away["b"] = true
	w.s.Now = w.s.Now.Add(2 * time.Hour)
	w.load()
	if d = w.settle(); !strings.Contains(d.Wait, "MySQL of b trusts it") {
		t.Fatalf("b is not waited for: %v, %+v", w.steps, d)
	}
	w.away = map[string]bool{}
	w.load()
	d = w.settle()
	if !slices.Equal(w.steps[2:], []Step{SwitchAuthority, IssueServer}) || !strings.Contains(d.Wait, "MySQL of a, b shows") || d.Done {
		t.Fatalf("%v, %+v", w.steps, d)
	}
	if string(w.s.Authority[KeyAuthority]) == string(before) || len(certificates(w.s.Server[KeyBundle])) != 2 || w.s.Authority[KeyNext] != nil || w.s.Authority[KeyNextKey] != nil {
		t.Fatal("the new one does not sign")
	}
	w.load()
	if d = w.settle(); d.Step != Nothing || !strings.Contains(d.Wait, "leaves ca.crt at") {
		t.Fatalf("%v, %+v", w.steps, d)
	}
	w.s.Now = w.s.Now.Add(Parting)
	if d = w.settle(); !slices.Equal(w.steps[4:], []Step{DropFormer, TrustAuthorities}) || !d.Done || d.Wait != "" {
		t.Fatalf("%v, %+v", w.steps, d)
	}
	w.load()
	if d = w.settle(); len(w.steps) != 6 || !d.Done || len(certificates(w.s.Server[KeyBundle])) != 1 {
		t.Errorf("the order is carried out again: %v, %+v", w.steps, d)
	}
}

func TestClientsHaveTheirTime(t *testing.T) {
	w := newWorld(t)
	w.s.Now = w.s.Now.Add(AuthorityLife - AuthorityRest + time.Minute)
	w.settle()
	w.load()
	if d := w.settle(); !strings.Contains(d.Wait, "clients have had the time") {
		t.Fatalf("%+v", d)
	}
	// Meanwhile the server certificate goes on, by who signs yet.
	now := w.s.Authority[KeyAuthority]
	w.s.Names = append(w.s.Names, "mysql-orders-c.shop.svc")
	if w.settle(); w.leaf().CheckSignatureFrom(certificates(now)[0]) != nil {
		t.Error("another site's name is signed by who is not trusted yet")
	}
	w.load()
	w.s.Now = w.s.Now.Add(Grace)
	w.steps = nil
	if w.settle(); !slices.Contains(w.steps, SwitchAuthority) {
		t.Errorf("%v", w.steps)
	}
}

// Ten years with a site that never answers: what ends anyway is replaced without it.
func TestAnAuthorityThatEndsDoesNotWait(t *testing.T) {
	for name, gap := range map[string]time.Duration{"looked at daily": day, "nobody looked for years": 11 * 365 * day} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			w.s.Sites = []Site{{Name: "a"}}
			for w.s.Now.Before(begin.Add(AuthorityLife + 100*day)) {
				w.s.Now = w.s.Now.Add(gap)
				d := w.settle()
				if w.leaf().NotAfter.Before(w.s.Now) || d.AuthorityEnds.Before(w.s.Now) {
					t.Fatalf("at %s: %+v", w.s.Now, d)
				}
			}
			if n := len(w.steps); n > 70 {
				t.Errorf("%d steps", n)
			}
		})
	}
}

func TestALostAuthorityIsReplaced(t *testing.T) {
	w := newWorld(t)
	w.load()
	w.s.Authority = nil
	d := w.settle()
	if !slices.Equal(w.steps, []Step{MakeAuthority, TrustAuthorities}) || !strings.Contains(d.Wait, "MySQL of a, b trusts it") {
		t.Fatalf("%v, %+v", w.steps, d)
	}
	// Clients have their time here too: what the lost one signed serves meanwhile.
	w.load()
	w.s.Now = w.s.Now.Add(Grace - time.Second)
	if d = w.settle(); len(w.steps) != 2 || !strings.Contains(d.Wait, "when clients have had the time to trust it") {
		t.Fatalf("%v, %+v", w.steps, d)
	}
	w.s.Now = w.s.Now.Add(time.Second)
	w.settle()
	w.load()
	w.s.Now = w.s.Now.Add(Parting + Skew)
	if d = w.settle(); !slices.Equal(w.steps[2:], []Step{IssueServer, DropFormer, TrustAuthorities}) || d.Wait != "" {
		t.Errorf("%v, %+v", w.steps, d)
	}
}

func TestABrokenAuthorityIsLeftAlone(t *testing.T) {
	other := newWorld(t)
	for name, change := range map[string]func(w *world){
		"no data":     func(w *world) { w.s.Authority = map[string][]byte{} },
		"no key":      func(w *world) { delete(w.s.Authority, KeyPrivate) },
		"another key": func(w *world) { w.s.Authority[KeyPrivate] = other.s.Authority[KeyPrivate] },
		"rubbish":     func(w *world) { w.s.Authority[KeyAuthority] = []byte("hunter2") },
		"no authority": func(w *world) {
			w.s.Authority = map[string][]byte{KeyAuthority: w.s.Server[KeyServer], KeyPrivate: w.s.Server[KeyServerKey]}
		},
		"and none serves": func(w *world) { w.s.Authority, w.s.Server = map[string][]byte{}, nil },
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			change(w)
			d := w.settle()
			if d.Broken == "" || len(w.steps) > 0 || strings.Contains(d.Broken, "hunter2") {
				t.Errorf("%v, %+v", w.steps, d)
			}
		})
	}
	// What is not in use may be rubbish.
	w := newWorld(t)
	w.s.Authority[KeyNext], w.s.Authority[KeyFormer] = []byte("x"), []byte("y")
	if d := w.settle(); d.Broken != "" || len(w.steps) > 0 {
		t.Errorf("%v, %+v", w.steps, d)
	}
}

func TestOrders(t *testing.T) {
	w := newWorld(t)
	before := w.leaf().SerialNumber
	w.s.Order = &Order{ID: "1"}
	for range 3 {
		if d := w.settle(); !d.Done || !slices.Equal(w.steps, []Step{IssueServer}) || w.leaf().SerialNumber.Cmp(before) == 0 {
			t.Fatalf("%v, %+v", w.steps, d)
		}
	}
	w.s.Order = &Order{ID: "2"}
	if w.settle(); len(w.steps) != 2 {
		t.Errorf("%v", w.steps)
	}
	for value, want := range map[string]*Order{
		"server": {ID: "x", Grace: Grace}, "ca": {ID: "x", Authority: true, Grace: Grace}, "ca=2m": {ID: "x", Authority: true, Grace: LeastGrace},
		"": nil, "authority": nil, "server=1h": nil, "ca=": nil, "ca=1s": nil, "ca=10000h": nil, "ca=-1h": nil,
	} {
		got, err := ParseOrder("x", value)
		if (err == nil) != (want != nil) || got != nil && want != nil && *got != *want {
			t.Errorf("%q: %+v, %v", value, got, err)
		}
	}
}

// FuzzDecide: whatever is in the Secrets, it decides, and what it decides can be carried out and comes to an end.
func FuzzDecide(f *testing.F) {
	f.Add([]byte("x"), []byte(nil), []byte(""), []byte("-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n"), []byte("5m"))
	f.Fuzz(func(t *testing.T, next, former, bundle, server, grace []byte) {
		w := newWorld(t)
		w.s.Authority[KeyNext], w.s.Authority[KeyFormer], w.s.Authority[KeyOrderGrace] = next, former, grace
		w.s.Server[KeyBundle], w.s.Server[KeyServer] = bundle, server
		w.settle()
	})
}
