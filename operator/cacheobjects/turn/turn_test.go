// SPDX-License-Identifier: Apache-2.0

package turn_test

import (
	"slices"
	"testing"

	"github.com/mysql-mfg/mfg/api/v1alpha1"
	"github.com/mysql-mfg/mfg/operator/cacheobjects/turn"
)

// fine is a group of three whose master is a.
func fine(change func(g *turn.Group)) turn.Group {
	g := turn.Group{Master: "a", Pods: []turn.Pod{
		{Site: "a", Exists: true, Current: true, Ready: true, Traffic: true, Role: v1alpha1.CacheMaster},
		{Site: "b", Exists: true, Current: true, Ready: true, Linked: true, Role: v1alpha1.CacheReplica},
		{Site: "c", Exists: true, Current: true, Ready: true, Linked: true, Role: v1alpha1.CacheReplica},
	}}
	change(&g)
	return g
}

func old(sites ...int) func(*turn.Group) {
	return func(g *turn.Group) {
		for _, i := range sites {
			g.Pods[i].Current = false
		}
	}
}

// dead is a pod that is not ready and does not answer.
func dead(site int) func(*turn.Group) {
	return func(g *turn.Group) { g.Pods[site].Ready, g.Pods[site].Role = false, "" }
}

func TestNext(t *testing.T) {
	both := func(all ...func(*turn.Group)) func(*turn.Group) {
		return func(g *turn.Group) {
			for _, f := range all {
				f(g)
			}
		}
	}
	for name, tt := range map[string]struct {
		change         func(*turn.Group)
		replace, leave string
		reason         v1alpha1.Reason
	}{
		"all is well":      {func(*turn.Group) {}, "", "", ""},
		"one is not ready": {func(g *turn.Group) { g.Pods[1].Ready = false }, "", "", v1alpha1.ReasonWaitingForSite},
		"a replica first":  {old(0, 1, 2), "b", "", v1alpha1.ReasonUpdating},
		"the next replica": {old(0, 2), "c", "", v1alpha1.ReasonUpdating},
		"the master last":  {old(0), "", "a", v1alpha1.ReasonMovingRole},
		"the master has moved": {both(old(0), func(g *turn.Group) {
			g.Master, g.Pods[0].Traffic, g.Pods[0].Linked, g.Pods[1].Linked = "b", false, true, false
			g.Pods[0].Role, g.Pods[1].Role = v1alpha1.CacheReplica, v1alpha1.CacheMaster
		}), "a", "", v1alpha1.ReasonUpdating},
		"but it has the traffic yet":               {both(old(0), func(g *turn.Group) { g.Master = "b" }), "", "a", v1alpha1.ReasonMovingRole},
		"while it moves":                           {both(old(0, 1), func(g *turn.Group) { g.Moving = true }), "", "", v1alpha1.ReasonMovingRole},
		"one that was replaced has not caught up":  {both(old(0, 2), func(g *turn.Group) { g.Pods[1].Linked = false }), "", "", v1alpha1.ReasonWaitingForSite},
		"one that was replaced is not ready":       {both(old(0, 2), func(g *turn.Group) { g.Pods[1].Ready = false }), "", "", v1alpha1.ReasonWaitingForSite},
		"one is going":                             {both(old(0, 2), func(g *turn.Group) { g.Pods[1].Going = true }), "", "", v1alpha1.ReasonWaitingForSite},
		"one is missing":                           {both(old(0, 2), func(g *turn.Group) { g.Pods[1].Exists = false }), "", "", v1alpha1.ReasonWaitingForSite},
		"while the master is full":                 {both(old(0, 1, 2), func(g *turn.Group) { g.Full = true }), "", "", v1alpha1.ReasonCacheFull},
		"a broken one, however full":               {both(old(0, 1, 2), dead(2), func(g *turn.Group) { g.Full = true }), "c", "", v1alpha1.ReasonUpdating},
		"a broken one first":                       {both(old(0, 1, 2), dead(2)), "c", "", v1alpha1.ReasonUpdating},
		"a broken one whatever moves":              {both(old(0, 1, 2), dead(2), func(g *turn.Group) { g.Moving, g.To = true, "b" }), "c", "", v1alpha1.ReasonUpdating},
		"a broken master is not replaced":          {both(old(0), func(g *turn.Group) { g.Pods[0].Ready = false }), "", "a", v1alpha1.ReasonMovingRole},
		"no replica while the master is not ready": {both(old(0, 1, 2), func(g *turn.Group) { g.Pods[0].Ready = false }), "", "", v1alpha1.ReasonWaitingForSite},
		"no replica while the master hangs":        {both(old(0, 1, 2), func(g *turn.Group) { g.Pods[0].Role = "" }), "", "", v1alpha1.ReasonWaitingForSite},
		"one that missed a probe and answers":      {both(old(0, 1, 2), func(g *turn.Group) { g.Pods[2].Ready, g.Moving = false, true }), "", "", v1alpha1.ReasonMovingRole},
		"the one that is to be the master":         {both(old(0, 1, 2), dead(2), func(g *turn.Group) { g.Moving, g.To = true, "c" }), "", "", v1alpha1.ReasonMovingRole},
		"a broken replica all the same":            {both(old(0, 1, 2), dead(0), dead(2)), "c", "", v1alpha1.ReasonUpdating},
		"a master that is no site any more":        {both(old(1), func(g *turn.Group) { g.Master, g.Pods[0].Linked = "gone", true }), "b", "", v1alpha1.ReasonUpdating},
		"paused":                                   {both(old(0, 1), func(g *turn.Group) { g.Paused = "tomorrow" }), "", "", v1alpha1.ReasonPaused},
		"no master yet":                            {both(old(0, 1, 2), func(g *turn.Group) { g.Master, g.Pods[0].Traffic = "", false }), "a", "", v1alpha1.ReasonUpdating},
	} {
		t.Run(name, func(t *testing.T) {
			d := turn.Next(fine(tt.change))
			if d.Replace != tt.replace || d.Leave != tt.leave || d.Reason != tt.reason || (d.Message == "") != (d.Reason == "") {
				t.Errorf("got %+v", d)
			}
		})
	}
}

// From any state of the pods, no more than one is touched, never the one with the traffic, and nothing while another one is missing.
func TestNextNeverTakesTheMaster(t *testing.T) {
	const bits = 6
	for n := range 1 << (2*bits + 4) {
		bit := func(i int) bool { return n>>i&1 == 1 }
		g := turn.Group{Moving: bit(2 * bits), Master: []string{"", "a", "b", "b"}[n>>(2*bits+1)&3]}
		if g.Moving && bit(2*bits+3) {
			g.To = "a"
		}
		for i, site := range []string{"a", "b"} {
			g.Pods = append(g.Pods, turn.Pod{Site: site, Exists: bit(i * bits), Current: bit(i*bits + 1), Ready: bit(i*bits + 2), Traffic: bit(i*bits + 3), Linked: bit(i*bits + 4)})
			if p := &g.Pods[i]; bit(i*bits+5) && site == g.Master {
				p.Role = v1alpha1.CacheMaster
			} else if bit(i*bits + 5) {
				p.Role = v1alpha1.CacheReplica
			}
		}
		d := turn.Next(g)
		at := slices.IndexFunc(g.Pods, func(p turn.Pod) bool { return p.Site == d.Replace })
		if at < 0 {
			continue
		}
		p, other := g.Pods[at], g.Pods[1-at]
		if p.Traffic || p.Site == g.Master || p.Current || !p.Exists || !other.Exists || d.Leave != "" || p.Site == g.To ||
			(p.Ready || p.Role != "") && other.Site == g.Master && (!other.Ready || other.Role == "") {
			t.Fatalf("%+v\n%+v", g, d)
		}
	}
}
