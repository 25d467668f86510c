// SPDX-License-Identifier: Apache-2.0

package secure_test

import (
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/mysql-mfg/mfg/api/v1alpha1"
	"github.com/mysql-mfg/mfg/operator/secure"
)

// at is a group in a phase, in which everything is there that the next one needs.
func at(phase v1alpha1.TLSPhase) secure.Group {
	g := secure.Group{
		Status: v1alpha1.TLSStatus{Phase: phase, Later: phase != v1alpha1.TLSPlain && phase != ""}, Asked: true, Usable: true, Settled: true, Active: "a",
		PlainConnections: v1alpha1.PlainRefuse,
	}
	for _, name := range []string{"a", "b", "c"} {
		g.Sites = append(g.Sites, secure.Site{Name: name, Loaded: true, Verified: name != "a", Plain: &secure.Plain{QuietFor: secure.Quiet}})
	}
	return g
}

// quietly asks for an end of clients without TLS once there is none.
func quietly(g *secure.Group) { g.PlainConnections = v1alpha1.PlainRefuseWhenUnused }

const (
	plain        = v1alpha1.TLSPlain
	certificates = v1alpha1.TLSCertificates
	channels     = v1alpha1.TLSChannels
	clients      = v1alpha1.TLSClients
	required     = v1alpha1.TLSRequired
)

func TestEachStepWaitsForWhatItNeeds(t *testing.T) {
	for _, tc := range []struct {
		why    string
		from   v1alpha1.TLSPhase
		change func(*secure.Group)
		want   v1alpha1.TLSPhase
		reason v1alpha1.Reason
		site   string
	}{
		{"a group without TLS says so, so that the API lets it have some", "", func(g *secure.Group) { g.Asked = false }, plain, "", ""},
		{"it stays so", plain, func(g *secure.Group) { g.Asked = false }, plain, "", ""},
		{"what is durable stays, whatever becomes of the specification", channels, func(g *secure.Group) { g.Asked = false }, channels, "", ""},
		{"a group that had TLS from its beginning requires it", "", nil, required, v1alpha1.ReasonAsExpected, ""},
		{"even while its certificate is not usable", "", func(g *secure.Group) { g.Usable = false }, required, v1alpha1.ReasonAsExpected, ""},

		{"a usable certificate is given to the sites", plain, nil, certificates, v1alpha1.ReasonTLSUpdatingSites, ""},
		{"without one nothing begins", plain, func(g *secure.Group) { g.Usable = false }, plain, v1alpha1.ReasonTLSWaitingForCertificate, ""},

		{"every site has it", certificates, nil, channels, v1alpha1.ReasonTLSVerifying, ""},
		{"a site is still without", certificates, func(g *secure.Group) { g.Sites[2].Loaded = false }, certificates, v1alpha1.ReasonTLSUpdatingSites, "c"},
		{"the active site neither", certificates, func(g *secure.Group) { g.Sites[0].Loaded = false }, certificates, v1alpha1.ReasonTLSUpdatingSites, "a"},
		{"it is no good any more", certificates, func(g *secure.Group) { g.Usable = false }, certificates, v1alpha1.ReasonTLSUpdatingSites, ""},
		{"of no site nothing follows", certificates, func(g *secure.Group) { g.Sites = nil }, certificates, v1alpha1.ReasonTLSUpdatingSites, ""},

		{"every replica verifies its source", channels, nil, clients, v1alpha1.ReasonTLSUpdatingSites, ""},
		{"one does not", channels, func(g *secure.Group) { g.Sites[2].Verified = false }, channels, v1alpha1.ReasonTLSVerifying, "c"},
		{"the role moves", channels, func(g *secure.Group) { g.Settled = false }, channels, v1alpha1.ReasonTLSVerifying, ""},
		{"the certificate is no good", channels, func(g *secure.Group) { g.Usable = false }, channels, v1alpha1.ReasonTLSVerifying, ""},
		{"of no site nothing follows", channels, func(g *secure.Group) { g.Sites = nil }, channels, v1alpha1.ReasonTLSVerifying, ""},

		{"clients are refused by order", clients, nil, required, v1alpha1.ReasonAsExpected, ""},
		{"whoever is connected", clients, func(g *secure.Group) { g.Sites[1].Plain = &secure.Plain{Connections: 9} }, required, v1alpha1.ReasonAsExpected, ""},
		{"not with a certificate that is no good", clients, func(g *secure.Group) { g.Usable = false }, clients, v1alpha1.ReasonTLSWaitingForCertificate, ""},
		{"nobody is cut off before a person has said so", clients, func(g *secure.Group) { g.PlainConnections = "" }, clients, v1alpha1.ReasonTLSPlainConnectionsAllowed, ""},
		{"nor when he says no", clients, func(g *secure.Group) { g.PlainConnections = v1alpha1.PlainAllow }, clients, v1alpha1.ReasonTLSPlainConnectionsAllowed, ""},
		{"a group that was made with TLS takes none back by itself", clients, func(g *secure.Group) { g.PlainConnections, g.Status.Later = "", false }, required, v1alpha1.ReasonAsExpected, ""},
		{"nobody was seen for long", clients, quietly, required, v1alpha1.ReasonAsExpected, ""},
		{"somebody is connected", clients, func(g *secure.Group) { quietly(g); g.Sites[1].Plain.Connections = 1 }, clients, v1alpha1.ReasonTLSPlainConnectionsSeen, "b"},
		{"somebody was a moment ago", clients, func(g *secure.Group) { quietly(g); g.Sites[2].Plain.QuietFor -= time.Second }, clients, v1alpha1.ReasonTLSPlainConnectionsSeen, "c"},
		{"of a site nothing is known", clients, func(g *secure.Group) { quietly(g); g.Sites[0].Plain = nil }, clients, v1alpha1.ReasonTLSPlainConnectionsSeen, "a"},
		{"of no site nothing follows", clients, func(g *secure.Group) { quietly(g); g.Sites = nil }, clients, v1alpha1.ReasonTLSPlainConnectionsSeen, ""},

		{"a phase that this version does not know stays", "Another", nil, "Another", "", ""},

		{"required it stays", required, nil, required, v1alpha1.ReasonAsExpected, ""},
		{"also when clients are seen that cannot be", required, func(g *secure.Group) { quietly(g); g.Sites[1].Plain.Connections = 1 }, required, v1alpha1.ReasonAsExpected, ""},
		{"and without a certificate", required, func(g *secure.Group) { g.Usable = false }, required, v1alpha1.ReasonAsExpected, ""},
		{"a forgotten client is let in again", required, func(g *secure.Group) { g.PlainConnections = v1alpha1.PlainAllow }, clients, v1alpha1.ReasonTLSPlainConnectionsAllowed, ""},
		{"at once, whatever the certificate", required, func(g *secure.Group) { g.PlainConnections, g.Usable = v1alpha1.PlainAllow, false }, clients, v1alpha1.ReasonTLSPlainConnectionsAllowed, ""},
		{"as in a group that got TLS later and says nothing", required, func(g *secure.Group) { g.PlainConnections = "" }, clients, v1alpha1.ReasonTLSPlainConnectionsAllowed, ""},
	} {
		g := at(tc.from)
		if tc.change != nil {
			tc.change(&g)
		}
		d := secure.Decide(g)
		if d.Phase != tc.want || d.Reason != tc.reason || d.Site != tc.site {
			t.Errorf("from %q, %s: %s (%s, site %q), want %s (%s, site %q)", tc.from, tc.why, d.Phase, d.Reason, d.Site, tc.want, tc.reason, tc.site)
		}
		if (d.Message == "") != (tc.reason == "") || !strings.Contains(d.Message, tc.site) {
			t.Errorf("from %q, %s: message %q", tc.from, tc.why, d.Message)
		}
		if later := tc.from == plain && tc.want == certificates || g.Status.Later; d.Later != later {
			t.Errorf("from %q, %s: later %t", tc.from, tc.why, d.Later)
		}
	}
}

func TestWhatTheMessageWaitsFor(t *testing.T) {
	const stays, waits = "the role stays", "it waits until"
	for name, tc := range map[string]struct {
		phase       v1alpha1.TLSPhase
		change      func(*secure.Group)
		stays, site bool
	}{
		"the role moves":                      {channels, func(g *secure.Group) { g.Settled = false }, true, false},
		"a site, while the role moves":        {channels, func(g *secure.Group) { g.Settled, g.Sites[1].Verified = false, false }, false, true},
		"a certificate, and the role stays":   {channels, func(g *secure.Group) { g.Usable = false }, false, false},
		"a certificate, and every site is so": {certificates, func(g *secure.Group) { g.Usable = false }, false, false},
		"a site":                              {certificates, func(g *secure.Group) { g.Sites[1].Loaded = false }, false, true},
	} {
		g := at(tc.phase)
		tc.change(&g)
		m := secure.Decide(g).Message
		if strings.Contains(m, stays) != tc.stays || strings.Contains(m, waits) != tc.site {
			t.Errorf("%s: %q", name, m)
		}
	}
}

// order is how strict a phase is.
var order = map[v1alpha1.TLSPhase]int{plain: 0, certificates: 1, channels: 2, clients: 3, required: 4}

// TestNoWalkSkipsAStep: whatever happens to a group, in whatever order, it goes one step at a time, never back before Clients, and into each
// step only with what it needs.
func TestNoWalkSkipsAStep(t *testing.T) {
	reached := map[v1alpha1.TLSPhase]int{}
	for seed := range uint64(3000) {
		rnd := rand.New(rand.NewPCG(seed, 31))
		g := at(plain)
		for range 30 {
			shake(rnd, &g)
			d := secure.Decide(g)
			if why := wrong(g, d); why != "" {
				t.Fatalf("seed %d: from %s to %s: %s\n%+v", seed, g.Status.Phase, d.Phase, why, g)
			}
			g.Status.Phase, g.Status.Later = d.Phase, d.Later
			reached[d.Phase]++
		}
	}
	for phase := range order {
		if reached[phase] == 0 {
			t.Errorf("no walk has come to %s", phase)
		}
	}
}

// shake has something happen to the group.
func shake(rnd *rand.Rand, g *secure.Group) {
	likely := func() bool { return rnd.IntN(4) > 0 }
	g.Usable, g.Settled = likely(), likely()
	g.PlainConnections = []v1alpha1.PlainConnections{"", v1alpha1.PlainAllow, v1alpha1.PlainRefuse, v1alpha1.PlainRefuseWhenUnused}[rnd.IntN(4)]
	g.Active = []string{"a", "b", "c"}[rnd.IntN(3)]
	for i := range g.Sites {
		s := &g.Sites[i]
		s.Loaded, s.Verified, s.Plain = rnd.IntN(16) > 0, likely(), nil
		if likely() {
			s.Plain = &secure.Plain{Connections: max(rnd.IntN(6)-4, 0), QuietFor: time.Duration(rnd.IntN(4)+8) * time.Minute}
		}
	}
}

// wrong says what is wrong with a step; empty if nothing is.
func wrong(g secure.Group, d secure.Decision) string {
	from, to := order[g.Status.Phase], order[d.Phase]
	switch {
	case to > from+1:
		return "it skips a step"
	case to < from && !(g.Status.Phase == required && d.Phase == clients):
		return "it goes back"
	case to > from && !g.Usable:
		return "it goes on with a certificate that is no good"
	case to == from:
		return ""
	}
	for _, s := range g.Sites {
		switch {
		case d.Phase == channels && !s.Loaded:
			return s.Name + " cannot be verified"
		case d.Phase == clients && to > from && s.Name != g.Active && !s.Verified:
			return s.Name + " does not verify"
		case d.Phase == required && secure.Wanted(g) == v1alpha1.PlainRefuseWhenUnused && (s.Plain == nil || s.Plain.Connections > 0 || s.Plain.QuietFor < secure.Quiet):
			return s.Name + " has clients without TLS"
		case d.Phase == required && secure.Wanted(g) == v1alpha1.PlainAllow:
			return "nobody has asked for it"
		}
	}
	return ""
}
