// SPDX-License-Identifier: Apache-2.0

package main

// adoptionRows: which site that serves in the clear is taken next, and when.
var adoptionRows = cuts("operator/keyring/adoption.go", []cut{
	{"mayAdopt: a person said so", "adoption", "return g.Adopt && s.Status", "return s.Status"},
	{"mayAdopt: it holds data", "live", "== none && s.Provisioned && !", "== none && !"},
	{"mayAdopt: its pod was not made with a keyring", "I14", " && !s.Rendered.Keyring && (s.plain()", " && (s.plain()"},
	{"mayAdopt: whatever is in escrow, a plain site is", "live", "(s.plain() || len(s.Versions) == 0)", "len(s.Versions) == 0"},
	{"mayAdopt: nothing is in escrow", "I14", "(s.plain() || len(s.Versions) == 0)", "true"},
	{"adoptedNext: a person said so", "I14", "!(g.Adopt && holdsPlain(s))", "!holdsPlain(s)"},
	{"isPlainAccepted: when nothing stands in the way", "I14", "holdsPlain(s) && adoptionWaits(g) == \"\" &&", "holdsPlain(s) &&"},
	{"isPlainAccepted: one at a time", "I14", "adoptionWaits(g) == \"\" && adoptedNext(g) == s.Name", "adoptionWaits(g) == \"\""},
	{"holdsPlain: its own pod says so", "live", " && s.Pod.Plain && s.Pod.Round == s.Status.Round", " && s.Pod.Plain"},
	{"holdsPlain: its pod says so", "I14", " && s.Pod.Plain && s.Pod", " && s.Pod"},
	{"adoptionWaits: not for those that have no keys yet", "live", "if holdsPlain(s) {\n\t\t\tcontinue", "if false {\n\t\t\tcontinue"},
	{"adoptedNext: what was found in the clear too", "live", "!(g.Adopt && holdsPlain(s))", "true"},
	{"adoptionWaits: the endpoint can be reached", "I16", "if g.EscrowTrouble != \"\" {", "if false {"},
	{"adoptionWaits: one that is about to be unsealed", "I16", "case pending, unsealed, failed:", "case unsealed, failed:"},
	{"adoptionWaits: one that is unsealed", "I16", "case pending, unsealed, failed:", "case pending, failed:"},
	{"adoptionWaits: one that is late", "I16", "case pending, unsealed, failed:", "case pending, unsealed:"},
	{"adoptedNext: the active site is the last", "adoption", "case s.Active:\n\t\t\trank = 1", "case s.Active:\n\t\t\trank = 2"},
	{"adoptedNext: who is never promoted comes first", "I16", "case s.Passive:\n\t\t\trank = 3", "case s.Passive:\n\t\t\trank = 2"},
})

// acceptedRows: what a person accepted of a volume does not outlive the round.
var acceptedRows = cuts("operator/keyring/decide.go", []cut{
	{"unseal: nothing in the clear is accepted any more", "I14", "\tst.PlainAccepted = false // it", "\t// it"},
	{"endRound: nothing in the clear is accepted any more", "I14", "\tst.PlainAccepted = false\n", "\n"},
})
