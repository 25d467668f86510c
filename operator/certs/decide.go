// SPDX-License-Identifier: Apache-2.0

package certs

import (
	"bytes"
	"crypto/sha256"
	"crypto/x509"
	"encoding/hex"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"
)

// State is the input of the decision on the next step.
type State struct {
	Now time.Time
	// Title begins the common names, such as mysql-orders: at most 48 bytes.
	Title string
	// Names are all names that the server certificate must carry.
	Names []string
	// Authority and Server are the data of the two Secrets; nil if one does not exist.
	Authority, Server map[string][]byte
	// Sites are all sites that must have loaded the files before the next step.
	Sites []Site
	// Order is a person's request; nil normally.
	Order *Order
}

// Site says what the MySQL of a site last loaded: the fingerprints of ca.crt and tls.crt, made by Fingerprint; empty while unknown.
type Site struct {
	Name            string
	Bundle, Current string
}

// Order asks for something that would otherwise come later, or never.
type Order struct {
	// ID tells it from every other order.
	ID string
	// Authority is true for another authority, false for another server certificate.
	Authority bool
	// Grace is how long clients have the new authority before it signs.
	Grace time.Duration
}

// Step is what to write next.
type Step string

// The steps.
const (
	// Nothing means that there is nothing to write.
	Nothing Step = ""
	// MakeAuthority makes the first authority, or replaces a lost one.
	MakeAuthority Step = "MakeAuthority"
	// PrepareAuthority makes the next authority, which is trusted but signs nothing yet.
	PrepareAuthority Step = "PrepareAuthority"
	// TrustAuthorities puts the trusted authorities where servers and clients find them.
	TrustAuthorities Step = "TrustAuthorities"
	// SwitchAuthority makes the next authority sign from now on.
	SwitchAuthority Step = "SwitchAuthority"
	// IssueServer makes a server certificate.
	IssueServer Step = "IssueServer"
	// DropFormer ends the trust in the former authority.
	DropFormer Step = "DropFormer"
)

// OfAuthority is true for a step that changes the authority's Secret, and false for one that changes the server's.
func (s Step) OfAuthority() bool {
	return s != TrustAuthorities && s != IssueServer
}

// Decision is what Decide answers.
type Decision struct {
	Step Step
	// Why says why a server certificate is made.
	Why string
	// Wait says what a replacement of the authority waits for; empty if none is under way.
	Wait string
	// Broken says what is wrong with the authority's Secret. Then nothing is written.
	Broken string
	// Done is true once the order is carried out.
	Done bool
	// ServerEnds and AuthorityEnds are when each certificate ends; zero while there is none.
	ServerEnds, AuthorityEnds time.Time
	// ServerRenews and AuthorityRenews are when each is due for renewal; zero while there is none.
	ServerRenews, AuthorityRenews time.Time
}

// Fingerprint names a loaded file: by its hexadecimal SHA-256.
func Fingerprint(file []byte) string {
	sum := sha256.Sum256(file)
	return hex.EncodeToString(sum[:])
}

// Decide says what to write next.
func Decide(s State) Decision {
	if s.Authority == nil {
		return Decision{Step: MakeAuthority}
	}
	a, err := readAuthority(s.Authority)
	if err != nil {
		return Decision{Broken: err.Error()}
	}
	d := Decision{AuthorityEnds: a.now.cert.NotAfter, AuthorityRenews: a.now.cert.NotAfter.Add(-AuthorityRest)}
	server, wrong := readServer(s, a)
	if server != nil {
		d.ServerEnds, d.ServerRenews = server.NotAfter, Renews(server)
	}
	d.Done = s.done(a)
	early := s.Now.Before(a.now.cert.NotBefore)
	if early && s.isShown() {
		return d // it is good by the clocks of all sites: this clock is behind
	}
	if early || !s.Now.Before(a.now.cert.NotAfter) {
		// What it signs is useless.
		d.Step = PrepareAuthority
		if a.next != nil {
			d.Step = SwitchAuthority
		}
		return d
	}
	if wrong != "" {
		d.Step, d.Why = IssueServer, wrong
		return d
	}
	if s.wantsNext(a) {
		d.Step = PrepareAuthority
		return d
	}
	if !bytes.Equal(s.Server[KeyBundle], a.bundle(s.Now)) {
		d.Step = TrustAuthorities
		return d
	}
	s.settle(&d, a, server)
	return d
}

// settle decides once there is a server certificate, and all trusted authorities are handed out.
func (s State) settle(d *Decision, a authority, server *x509.Certificate) {
	loading := s.behind(func(site Site) string { return site.Bundle }, KeyBundle)
	if server.CheckSignatureFrom(a.now.cert) != nil {
		s.resign(d, a, server, loading)
		return
	}
	switch why := s.renewal(server); {
	case why != "":
		d.Step, d.Why = IssueServer, why
	case a.next != nil:
		s.change(d, a, loading)
	case len(a.former) > 0:
		s.part(d, server, loading)
	}
}

// resign decides when to replace a certificate of a former authority. One that was replaced in order has had its grace as the next one; one
// in the place of a lost authority has it here, while what the lost one signed serves on.
func (s State) resign(d *Decision, a authority, server *x509.Certificate, loading []string) {
	from := a.now.made().Add(graceOf(s.Authority))
	switch {
	case server.NotAfter.Sub(s.Now) < lifeOf(server)/6:
		d.Step, d.Why = IssueServer, "by the new authority, because the former certificate ends soon"
	case len(loading) > 0:
		d.Wait = "the new authority signs once MySQL of " + list(loading) + " trusts it"
	case s.isOrdered():
		d.Step, d.Why = IssueServer, "by order" // its key may be known to others: that is worse than clients that must read ca.crt again
	case s.Now.Before(from):
		d.Wait = "the new authority is in ca.crt, and signs from " + from.UTC().Format(time.RFC3339) + " on, when clients have had the time to trust it"
	default:
		d.Step, d.Why = IssueServer, "by the new authority"
	}
}

// change decides when the next authority signs.
func (s State) change(d *Decision, a authority, loading []string) {
	from := a.next.made().Add(graceOf(s.Authority))
	switch {
	case s.Now.Add(AuthorityLate).After(a.now.cert.NotAfter):
		d.Step = SwitchAuthority
	case len(loading) > 0:
		d.Wait = "the next authority is in ca.crt, and signs once MySQL of " + list(loading) + " trusts it"
	case s.Now.Before(from):
		d.Wait = "the next authority is in ca.crt, and signs from " + from.UTC().Format(time.RFC3339) + " on, when clients have had the time to trust it"
	default:
		d.Step = SwitchAuthority
	}
}

// part decides when the former authority leaves.
func (s State) part(d *Decision, server *x509.Certificate, loading []string) {
	showing := s.behind(func(site Site) string { return site.Current }, KeyServer)
	until := server.NotBefore.Add(Skew + Parting)
	switch {
	case len(loading) > 0 || len(showing) > 0:
		d.Wait = "the former authority leaves ca.crt once MySQL of " + list(union(loading, showing)) + " shows a certificate of the new one"
	case s.Now.Before(until):
		d.Wait = "the former authority leaves ca.crt at " + until.UTC().Format(time.RFC3339)
	default:
		d.Step = DropFormer
	}
}

// wantsNext is true if another authority must be made, or an order noted on the one that is already made.
func (s State) wantsNext(a authority) bool {
	ordered := s.Order != nil && s.Order.Authority && string(s.Authority[KeyOrder]) != s.Order.ID
	if a.next != nil {
		return ordered
	}
	late := s.Now.Add(AuthorityLate).After(a.now.cert.NotAfter)
	if len(a.former) > 0 && !late {
		return false // one after the other
	}
	return ordered || s.Now.Add(AuthorityRest).After(a.now.cert.NotAfter)
}

// isShown is true if the MySQL of every site has loaded what is in the Secret: sidecars offer it nothing that is not valid yet by their clocks.
func (s State) isShown() bool {
	return len(s.Sites) > 0 && len(s.behind(func(site Site) string { return site.Bundle }, KeyBundle)) == 0 &&
		len(s.behind(func(site Site) string { return site.Current }, KeyServer)) == 0
}

// isOrdered is true if a person ordered another server certificate, and none was made for it yet.
func (s State) isOrdered() bool {
	return s.Order != nil && !s.Order.Authority && string(s.Server[KeyOrder]) != s.Order.ID
}

// renewal says why to make the server certificate again; empty if there is no reason.
func (s State) renewal(server *x509.Certificate) string {
	if s.isOrdered() {
		return "by order"
	}
	if !s.Now.Before(Renews(server)) {
		return "two thirds of its time are over"
	}
	return ""
}

// done is true once an order has been carried out.
func (s State) done(a authority) bool {
	switch {
	case s.Order == nil:
		return false
	case s.Order.Authority:
		return string(s.Authority[KeyOrder]) == s.Order.ID && a.next == nil && len(a.former) == 0
	}
	return string(s.Server[KeyOrder]) == s.Order.ID
}

// behind returns the sites whose MySQL has not loaded the present version of a file.
func (s State) behind(of func(Site) string, key string) []string {
	var out []string
	want := Fingerprint(s.Server[key])
	for _, site := range s.Sites {
		if of(site) != want {
			out = append(out, site.Name)
		}
	}
	return out
}

// Renews returns when a server certificate is due for renewal: after two thirds of its time.
func Renews(c *x509.Certificate) time.Time { return c.NotBefore.Add(lifeOf(c) * 2 / 3) }

func lifeOf(c *x509.Certificate) time.Duration { return c.NotAfter.Sub(c.NotBefore) }

func union(a, b []string) []string {
	all := map[string]bool{}
	for _, name := range slices.Concat(a, b) {
		all[name] = true
	}
	return slices.Sorted(maps.Keys(all))
}

func list(names []string) string { return strings.Join(names, ", ") }

// graceOf returns what the authority's Secret says, or the usual time.
func graceOf(data map[string][]byte) time.Duration {
	grace, _ := time.ParseDuration(string(data[KeyOrderGrace])) // a text that is no duration is 0
	if grace < LeastGrace || grace > MostGrace {
		return Grace
	}
	return grace
}

// ParseOrder reads the value of the annotation: server, ca, or ca=DURATION.
func ParseOrder(id, value string) (*Order, error) {
	what, grace, timed := strings.Cut(value, "=")
	o := &Order{ID: id, Authority: what == OrderAuthority, Grace: Grace}
	if what != OrderAuthority && (what != OrderServer || timed) {
		return nil, fmt.Errorf("%q is none of %s, %s and %s=DURATION", value, OrderServer, OrderAuthority, OrderAuthority)
	}
	if !timed {
		return o, nil
	}
	o.Grace, _ = time.ParseDuration(grace) // a text that is no duration is 0
	if o.Grace < LeastGrace || o.Grace > MostGrace {
		return nil, fmt.Errorf("%q is no duration from %s to %s, such as 1h", grace, LeastGrace, MostGrace)
	}
	return o, nil
}

// The values of an order.
const (
	OrderServer    = "server"
	OrderAuthority = "ca"
)
