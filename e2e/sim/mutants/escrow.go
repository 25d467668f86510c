// SPDX-License-Identifier: Apache-2.0

package main

const (
	escrowGo   = "operator/failover/escrow.go"
	overtakeGo = "operator/failover/overtake.go"
	viewsGo    = "operator/failover/views.go"
)

// checkEscrow takes the last look of Decision.check at the keyring away.
var checkEscrow = edit{
	decisionGo,
	"if site, _ := s.Site(open.Site); isUnescrowed(s, d.Memory, site) != \"\" {",
	"if site, _ := s.Site(open.Site); false && isUnescrowed(s, d.Memory, site) != \"\" {",
}

var (
	returnedUnescrowed = edit{decideGo, "if why := isUnescrowed(s, d.Memory, a); why != \"\" {", "if why := isUnescrowed(s, d.Memory, a); false && why != \"\" {"}
	openingUnescrowed  = edit{transitionGo, "if why := isUnescrowed(s, d.Memory, target); why != \"\" {", "if why := isUnescrowed(s, d.Memory, target); false && why != \"\" {"}
)

var escrowRows = []row{
	{guard: "isUnescrowed", breaks: "I16", edits: []edit{
		{escrowGo, "case k == nil || k.Sealed || k.Digest != \"\" && k.Digest == k.EscrowedDigest:", "case true || k.Sealed:"},
	}},
	{guard: "isUnescrowed: a file that is being written", breaks: "I16", edits: []edit{
		{escrowGo, "k.Digest != \"\" && k.Digest == k.EscrowedDigest:", "k.Digest == k.EscrowedDigest:"},
	}},
	{guard: "isEscrowMissing", breaks: "I16", edits: []edit{
		{escrowGo, "if t := s.Status.Transition; !site.EscrowMissing ||", "if t := s.Status.Transition; true ||"},
	}},
	{guard: "isEscrowMissing: whoever had the role is opened again", breaks: "live", edits: []edit{
		{escrowGo, "t != nil && t.From == site.Name {", "t != nil && false {"},
	}},
	{guard: "views: the only keyring is not evicted", breaks: "I16", edits: []edit{
		{viewsGo, "v.State == v1alpha1.SitePrimary || site.EscrowMissing ||", "v.State == v1alpha1.SitePrimary ||"},
	}},
	{guard: "bootstrap: the keyring is in escrow", breaks: "I16 live", edits: []edit{
		{decideGo, "if why := isUnescrowed(s, d.Memory, best.Site); why != \"\" {", "if why := isUnescrowed(s, d.Memory, best.Site); false && why != \"\" {"},
	}},
	{guard: "steady: holds until the keyring is in escrow", breaks: "I16", edits: []edit{
		{decideGo, "d.Hold = isUnescrowed(s, d.Memory, a) != \"\"", "d.Hold = false"},
	}},
	{guard: "opening: holds until the keyring is in escrow", breaks: "I16", edits: []edit{
		{transitionGo, "d.Hold = isUnescrowed(s, d.Memory, target) != \"\"", "d.Hold = false"},
	}},
	{guard: "returned: the keyring is in escrow", breaks: "I16", edits: []edit{
		returnedUnescrowed,
	}, behind: []edit{
		checkEscrow,
	}},
	{guard: "opening: the keyring is in escrow", breaks: "I16", edits: []edit{
		openingUnescrowed,
	}, behind: []edit{
		checkEscrow,
	}},
	{guard: "returnedWhole: a site that may be a target", breaks: "live", edits: []edit{
		{transitionGo, "case isRemoved(s, m, from) != \"\" || isDiverged(s, m, from) != \"\":", "case false:"},
	}},
	{guard: "returnedWhole: the keyring is in escrow", breaks: "I16 live", edits: []edit{
		{transitionGo, " || isUnescrowed(s, m, from) != \"\":", ":"},
	}},
	{guard: "check: opens only what is in escrow", breaks: "I16", edits: []edit{
		checkEscrow,
	}, behind: []edit{
		returnedUnescrowed, openingUnescrowed,
	}},
	{guard: "overtaken: the source is down", breaks: "I13 live", edits: []edit{
		{overtakeGo, "if !from.unusable() || s.Policy.AbortPlanned", "if s.Policy.AbortPlanned"},
	}},
	{guard: "overtaken: the target is fit", breaks: "live I10 I16", edits: []edit{
		{overtakeGo, " || unfit(s, d.Memory, target) != \"\" {", " {"},
	}},
	{guard: "overtaken: what forbids an emergency failover", breaks: "G3 G4", edits: []edit{
		{overtakeGo, "if blocked || overBudget(s, d.Memory.Executed[from.Name], target) != \"\" {", "if false && blocked {"},
	}},
	{guard: "overtaken: the source gets its time", breaks: "I13 G4", edits: []edit{
		{overtakeGo, "if why == \"\" {", "if why == \"\" && from.Name == \"\" {"},
	}},
}
