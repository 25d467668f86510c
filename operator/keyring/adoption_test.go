// SPDX-License-Identifier: Apache-2.0

package keyring

import (
	"strings"
	"testing"

	"github.com/mysql-mfg/mfg/api/v1alpha1"
)

// plainSite serves in the clear.
func plainSite(name string) Site {
	return Site{Name: name, Provisioned: true, Rendered: Rendered{Exists: true}, Pod: Pod{UID: "pod-" + name, Current: true, Ready: true, Settled: true}}
}

// adopts are the sites that one decision begins to adopt.
func adopts(g Group) string {
	var out []string
	for _, n := range Decide(g).Sites {
		if n.Moved && n.Status.Phase == unsealed {
			out = append(out, n.Name)
		}
	}
	return strings.Join(out, " ")
}

// I16: a site that is not in escrow is no candidate, so an adoption takes one site after the other, the active one last, and begins with
// none while the escrow endpoint cannot be reached.
func TestAnAdoptionKeepsCandidatesI16(t *testing.T) {
	phase := func(p v1alpha1.KeyringPhase) func(*Group) {
		return func(g *Group) { g.Sites[1].Status = v1alpha1.SiteKeyringStatus{Phase: p, Work: rot, Round: 1} }
	}
	active := func(i int) func(*Group) { return func(g *Group) { g.Sites[i].Active = true } }
	for name, tt := range map[string]struct {
		reason string
		given  []func(*Group)
		want   string
	}{
		"all in the clear":               {"one site is enough to see whether keyrings come into escrow", []func(*Group){active(0)}, "b"},
		"the active site is named last":  {"the order of the specification", []func(*Group){active(2)}, "a"},
		"one is never promoted":          {"it is no candidate to be lost", []func(*Group){active(0), func(g *Group) { g.Sites[2].Passive = true }}, "c"},
		"the endpoint cannot be reached": {"nothing of it would come into escrow", []func(*Group){active(0), func(g *Group) { g.EscrowTrouble = "no route to host" }}, ""},
		"one is not in escrow":           {"it is no candidate", []func(*Group){active(0), phase(unsealed)}, ""},
		"one is not in escrow for long":  {"it is no candidate", []func(*Group){active(0), phase(failed)}, ""},
		"one is about to be unsealed":    {"it is none soon", []func(*Group){active(0), phase(pending)}, ""},
		"one is in escrow": {"it may take over", []func(*Group){active(0), func(g *Group) {
			g.Sites[1].Status = v1alpha1.SiteKeyringStatus{Phase: sealed, KeyringSecret: ver(1).Name, KeyringVersion: 1, KeyringDigest: ver(1).Digest}
			g.Sites[1].Versions, g.Sites[1].Rendered = []Version{ver(1)}, Rendered{Exists: true, Keyring: true, Sealed: true, Secret: ver(1).Name}
		}}, "c"},
		"one has not got its data yet": {"it may be a candidate soon", []func(*Group){active(0), func(g *Group) { g.Sites[1].Provisioned = false }}, "b c"},
		"only the active one is left":  {"the role moves before its pod is replaced", []func(*Group){active(0), func(g *Group) { g.Sites = g.Sites[:1] }}, "a"},
	} {
		t.Run(name, func(t *testing.T) {
			g := Group{Name: "orders", Now: start, Adopt: true, Known: true, Donor: true, Sites: []Site{plainSite("a"), plainSite("b"), plainSite("c")}}
			for _, change := range tt.given {
				change(&g)
			}
			if got := adopts(g); got != tt.want {
				t.Errorf("%s: %q are adopted at once, want %q", tt.reason, got, tt.want)
			}
		})
	}
}

// I14: volumes that stayed in the clear when their group was deleted are not encrypted unasked, and then one after the other: keys that
// are lost before they are in escrow cost one site and not all.
func TestVolumesInTheClearAreAskedForI14(t *testing.T) {
	refuses := func(name string) Site {
		return Site{Name: name, Rendered: Rendered{Exists: true, Keyring: true}, Pod: Pod{UID: "p", Current: true, Unborn: true, Plain: true, Round: 1},
			Status: v1alpha1.SiteKeyringStatus{Name: name, Phase: unsealed, Work: boot, Round: 1}}
	}
	made := func() Group {
		return Group{Name: "orders", Now: start, Known: true, Sites: []Site{refuses("a"), refuses("b"), refuses("c")}}
	}
	g := made()
	for _, n := range Decide(g).Sites {
		if n.Moved || n.Wish.AcceptPlain || !strings.Contains(n.Status.Message, v1alpha1.AnnotationEncryptionAdopt) {
			t.Errorf("not accepted: %+v", n)
		}
	}
	g.Adopt = true
	n := Decide(g).Sites[0]
	if got := adopts(g); got != "a" || !n.Wish.AcceptPlain || n.Wish.Round != 2 || n.Wish.Work != boot {
		t.Errorf("accepted: %q, %+v", got, n.Wish)
	}
	g.EscrowTrouble = "no route to host"
	if got := adopts(g); got != "" {
		t.Errorf("the endpoint is out of reach: %q", got)
	}
	for phase, want := range map[v1alpha1.KeyringPhase]string{unsealed: "", failed: "", escrowed: "b"} {
		g := made()
		g.Adopt, g.Sites[0].Status.Phase, g.Sites[0].Status.Round, g.Sites[0].Pod = true, phase, 2, Pod{UID: "q", Current: true, Round: 2}
		g.Sites[0].Status.PlainAccepted = true
		if got := adopts(g); got != want {
			t.Errorf("a is %s: %q are taken next, want %q", phase, got, want)
		}
	}
	g = made()
	g.Adopt, g.Sites = true, g.Sites[:1]
	g.Sites[0].Status.Round = 2 // the pod that refuses is about to be replaced by one that may
	if got := adopts(g); got != "" {
		t.Errorf("an old pod: %q", got)
	}
	ends := map[string]func(*Next){"ends": (*Next).endRound, "begins anew": func(n *Next) { n.unseal(clone, Version{}) }}
	for how, end := range ends {
		n := Next{Status: v1alpha1.SiteKeyringStatus{PlainAccepted: true}}
		if end(&n); n.Status.PlainAccepted {
			t.Errorf("its round %s, and what a person accepted stands: the volume may be another one by then", how)
		}
	}
}

// What an adoption waits for is told of each site that it waits with.
func TestAnAdoptionSaysWhatItWaitsFor(t *testing.T) {
	g := Group{Name: "orders", Now: start, Adopt: true, Known: true, Donor: true, Sites: []Site{plainSite("a"), plainSite("b")}}
	g.Sites[0].Active = true
	g.EscrowTrouble = "no route to host"
	for _, n := range Decide(g).Sites {
		if !strings.Contains(n.Status.Message, "no route to host") {
			t.Errorf("%s: %q", n.Name, n.Status.Message)
		}
	}
	g.EscrowTrouble = ""
	if m := Decide(g).Sites[0].Status.Message; !strings.Contains(m, "site b ") {
		t.Errorf("the active site: %q", m)
	}
}
