// SPDX-License-Identifier: Apache-2.0

package main

const (
	fenceGo   = "sidecar/fence/fence.go"
	keepoutGo = "sidecar/fence/keepout.go"
	leaseGo   = "sidecar/fence/lease.go"
	openGo    = "sidecar/fence/open.go"
	viewGo    = "sidecar/fence/view.go"
	vouchGo   = "sidecar/fence/vouch.go"
	watchGo   = "sidecar/fence/watchdog.go"
)

// never makes a one-line guard say no.
func never(file, head, expression string) edit {
	return edit{file, head + " { return " + expression + " }", head + " { return false && (" + expression + ") }"}
}

// rows is every guard. Where two guards stop the same harm, the second is removed too: each is safe alone, and that one
// is enough must not hide what both are for.
var rows = concat(fenceRows, fenceMoreRows, gateRows, runRows, outlivedRows, candidateRows, transitionRows, decideRows, rememberRows, escrowRows, moreRows, orderRows, checkRows,
	authorityRows, chainRows, keyringRows, rolloutRows, passwordRows)

func concat(all ...[]row) []row {
	var out []row
	for _, some := range all {
		out = append(out, some...)
	}
	return out
}

var fenceRows = []row{
	// fence.go: when MySQL is fenced.
	{guard: "leaving", breaks: "I4 I2", edits: []edit{
		never(fenceGo, "func leaving(s State, _ Instant) bool", "s.leaving"),
	}},
	{guard: "starting", breaks: "I4 I2", edits: []edit{
		never(fenceGo, "func starting(s State, _ Instant) bool", "s.starting"),
	}, behind: []edit{
		never(fenceGo, "func notOpenedHere(s State, _ Instant) bool", "s.openEpoch == 0"),
		never(fenceGo, "func missedEpoch(s State, _ Instant) bool", "s.openEpoch != s.word.Epoch"),
	}},
	{guard: "openingUnsure", breaks: "I1 I2", edits: []edit{
		never(fenceGo, "func openingUnsure(s State, _ Instant) bool", "s.unsure"),
	}, behind: []edit{
		{vouchGo, "if s.unsure {", "if false {"},
		{fenceGo, "case !s.unsure:", "default:"},
	}},
	// Before the first good exchange there is no lease, so leaseOver closes too.
	{guard: "noStatement", breaks: "I3", edits: []edit{
		never(fenceGo, "func noStatement(s State, _ Instant) bool", "s.word.Epoch == 0"),
	}, behind: []edit{
		never(fenceGo, "func namesAnother(s State, _ Instant) bool", "s.word.ActiveSite != s.site.Name"),
		never(fenceGo, "func notOpenedHere(s State, _ Instant) bool", "s.openEpoch == 0"),
	}},
	{guard: "windowOver", breaks: "I3 I1 I2 live", edits: []edit{
		never(fenceGo, "func windowOver(s State, _ Instant) bool", "s.seen.Offline && s.openEpoch == 0"),
	}, behind: []edit{
		never(fenceGo, "func missedEpoch(s State, _ Instant) bool", "s.openEpoch != s.word.Epoch"),
		never(fenceGo, "func namesAnother(s State, _ Instant) bool", "s.word.ActiveSite != s.site.Name"),
		never(fenceGo, "func notOpenedHere(s State, _ Instant) bool", "s.openEpoch == 0"),
	}},
	{guard: "namesAnother", breaks: "I1 I2", edits: []edit{
		never(fenceGo, "func namesAnother(s State, _ Instant) bool", "s.word.ActiveSite != s.site.Name"),
	}, behind: []edit{
		never(fenceGo, "func missedEpoch(s State, _ Instant) bool", "s.openEpoch != s.word.Epoch"),
	}},
	{guard: "notOpenedHere", breaks: "I3 I1 I2", edits: []edit{
		never(fenceGo, "func notOpenedHere(s State, _ Instant) bool", "s.openEpoch == 0"),
	}, behind: []edit{
		never(fenceGo, "func missedEpoch(s State, _ Instant) bool", "s.openEpoch != s.word.Epoch"),
	}},
	// The decision core names a site again only after it was seen fenced under an epoch in between.
	{guard: "missedEpoch", breaks: "I2 I1", directed: []string{"lease over an epoch that was missed"}, edits: []edit{
		never(fenceGo, "func missedEpoch(s State, _ Instant) bool", "s.openEpoch != s.word.Epoch"),
	}},
	{guard: "leaseOver", breaks: "I2 I4", edits: []edit{
		never(leaseGo, "func leaseOver(s State, now Instant) bool", "LeaseLeft(s, now) <= 0"),
	}},
	{guard: "Observe: a look that overlaps a change", breaks: "I1 I2 I4", edits: []edit{
		{fenceGo, "if s.changing || change != s.change {", "if false {"},
	}},
	{guard: "Observe: silence proves nothing", breaks: "I1 I2", edits: []edit{
		{fenceGo, "case !f.Answered:\n", "case !f.Answered:\n\t\ts = closed(s)\n"},
	}},
	{guard: "behindWindow: for this site only while offline", breaks: "I3 I1 I2 I4", edits: []edit{
		{fenceGo, "if !s.seen.Offline || s.openEpoch != 0 || s.unsure {", "if false {"},
	}},
	{guard: "Fenced: an unsure opening ends with the process", breaks: "I1 I2", edits: []edit{
		{fenceGo, "if !proven || (s.unsure && last.Stage != wire.FenceKillServer) {", "if !proven {"},
	}, behind: []edit{
		{fenceGo, "Kill: s.unsure}", "Kill: false}"},
	}},
	{guard: "Boot: exposed until looked at", breaks: "I1 I2 I4", edits: []edit{
		{fenceGo, "starting: true, exposed: true,", "starting: false, exposed: false,"},
	}, behind: []edit{
		{fenceGo, "s.exposed, s.shut = true, false", "s.exposed, s.shut = s.openEpoch > 0, false"},
	}},
	// lease.go: what prolongs the lease.
	{guard: "lease: notAskedFor", breaks: "I4 I2", edits: []edit{
		never(leaseGo, "func notAskedFor(_ State, x exchange) bool", "x.word.Origin != Operator && x.word.Origin != Peer"),
	}, behind: []edit{
		{leaseGo, "\tif !s.hasGood || w.SentAt > s.good {", "\tif w.Origin == Push {\n\t\tw.SentAt = now.Mono\n\t}\n\tif !s.hasGood || w.SentAt > s.good {"},
	}},
	{guard: "lease: otherNonce", breaks: "I4 I2", directed: []string{"lease and old answers"}, edits: []edit{
		{leaseGo, "return otherNonce(s, x.word)", "return false && otherNonce(s, x.word)"},
	}},
	{guard: "lease: otherGroup", breaks: "I4 I2", directed: []string{"lease and old answers"}, edits: []edit{
		{leaseGo, "return otherGroup(s, x.word)", "return false && otherGroup(s, x.word)"},
	}, behind: []edit{
		never(leaseGo, "func notTheCurrentEpoch(s State, x exchange) bool", "x.word.Statement.Epoch != s.word.Epoch"),
		{leaseGo, "return sameEpochOtherSite(s, x.word)", "return false && sameEpochOtherSite(s, x.word)"},
	}},
	{guard: "lease: notTheCurrentEpoch", breaks: "I2 I4", edits: []edit{
		never(leaseGo, "func notTheCurrentEpoch(s State, x exchange) bool", "x.word.Statement.Epoch != s.word.Epoch"),
	}, behind: []edit{
		never(fenceGo, "func namesAnother(s State, _ Instant) bool", "s.word.ActiveSite != s.site.Name"),
		never(fenceGo, "func missedEpoch(s State, _ Instant) bool", "s.openEpoch != s.word.Epoch"),
	}},
	{guard: "lease: counts from when it was sent", breaks: "I4 I2", edits: []edit{
		{leaseGo, "s.good, s.hasGood = w.SentAt, true", "s.good, s.hasGood = now.Mono+5*time.Second, true"},
	}},
	{guard: "lease: the shorter of both", breaks: "I4 I2", edits: []edit{
		{leaseGo, "return min(told, s.limits.Lease)", "return max(told, s.limits.Lease)"},
	}},
	// open.go: the boot rule.
	{guard: "open: notFromOperator", breaks: "I3 I2", edits: []edit{
		{openGo, "return o.word.Origin != Operator || otherNonce(s, o.word)", "return false"},
	}, behind: []edit{
		{viewGo, "return w.Origin == Operator && (w.Nonce == \"\" || w.Statement.Nonce != w.Nonce)", "return false"},
	}},
	{guard: "open: openOtherGroup", breaks: "I3", edits: []edit{
		never(openGo, "func openOtherGroup(s State, o opening) bool", "otherGroup(s, o.word)"),
	}, behind: []edit{
		{viewGo, "return w.Statement.Namespace != s.site.Namespace || w.Statement.Group != s.site.Group", "return false"},
	}},
	{guard: "open: openNamesAnother", breaks: "I3 I1 I2", edits: []edit{
		never(openGo, "func openNamesAnother(s State, o opening) bool", "o.word.Statement.ActiveSite != s.site.Name"),
	}, behind: []edit{
		{openGo, "return o.word.Statement.Epoch != s.word.Epoch || o.word.Statement.ActiveSite != s.word.ActiveSite", "return false"},
		{openGo, "return s.changing || Decide(s, o.now).Do == Fence", "return s.changing"},
	}},
	{guard: "open: notTheNewest", breaks: "I3 I2 I1", directed: []string{"opening on slow SQL while the role moves"}, edits: []edit{
		{openGo, "return o.word.Statement.Epoch != s.word.Epoch || o.word.Statement.ActiveSite != s.word.ActiveSite", "return false"},
	}},
	{guard: "open: held", breaks: "I3 I2 I1", directed: []string{"opening on slow SQL while the role moves"}, edits: []edit{
		never(openGo, "func held(s State, o opening) bool", "o.word.Statement.Hold || s.word.Hold"),
	}},
	{guard: "open: notDurable", breaks: "I5", edits: []edit{
		never(openGo, "func notDurable(s State, o opening) bool", "s.kept.Statement.Epoch < o.word.Statement.Epoch"),
	}},
	{guard: "open: tooOld", breaks: "I3 I2", directed: []string{"restarts on slow SQL"}, edits: []edit{
		{openGo, "return age < 0 || age >= freshFor", "return age < 0 && age >= freshFor"},
	}},
	{guard: "open: mysqlReplicates", breaks: "I10", edits: []edit{
		never(openGo, "func mysqlReplicates(s State, _ opening) bool", "s.seen.Answered && s.seen.Replicates"),
	}},
	{guard: "open: mysqlCloning", breaks: "I10", edits: []edit{
		never(openGo, "func mysqlCloning(s State, _ opening) bool", "s.seen.Answered && s.seen.Cloning"),
	}},
	{guard: "open: leaving", breaks: "I4", edits: []edit{
		{openGo, "func(s State, _ opening) bool { return s.leaving }", "func(s State, _ opening) bool { return false }"},
	}, behind: []edit{
		never(fenceGo, "func leaving(s State, _ Instant) bool", "s.leaving"),
	}},
	{guard: "open: fenceDue", breaks: "I1 I2", edits: []edit{
		{openGo, "return s.changing || Decide(s, o.now).Do == Fence", "return false"},
	}, behind: []edit{
		{openGo, "return s.seen.Answered && s.seen.Writable && !clientsKeptOut(s, o.now)", "return false"},
	}},
	{guard: "Opened: an unsure outcome stays unsure", breaks: "I1 I2", edits: []edit{
		{openGo, "s.openEpoch, s.unsure = 0, true", "s = closed(s)"},
	}},
	{guard: "Opened: a failed outcome is fenced", breaks: "I3 I1 I2", edits: []edit{
		{openGo, "case Failed:\n\t\t// It may be open, but that was not proven: fence, and begin anew.\n\t\ts.openEpoch = 0", "case Failed:\n\t\ts = closed(s)"},
	}},
	// view.go: what is taken in.
	{guard: "view: otherGroup", breaks: "I3 I5 I1 I2 live", edits: []edit{
		{viewGo, "return w.Statement.Namespace != s.site.Namespace || w.Statement.Group != s.site.Group", "return false"},
	}},
	{guard: "view: lowerEpoch", breaks: "I5 I2 I1", edits: []edit{
		never(viewGo, "func lowerEpoch(s State, w Word) bool", "w.Statement.Epoch < s.word.Epoch"),
	}},
	{guard: "view: otherNonce", breaks: "I3 I4 I2", edits: []edit{
		{viewGo, "return w.Origin == Operator && (w.Nonce == \"\" || w.Statement.Nonce != w.Nonce)", "return false"},
	}},
	{guard: "view: peerNotNewer", breaks: "I3 I2 live", edits: []edit{
		{viewGo, "return w.Origin == Peer && !w.Statement.NewerThan(s.word)", "return false"},
	}},
	{guard: "view: only the next epoch goes on", breaks: "I2 I1", directed: []string{"lease over an epoch that was missed"}, edits: []edit{
		{viewGo, "if s.openEpoch > 0 && w.Statement.Epoch == s.openEpoch+1 && w.Statement.ActiveSite == s.site.Name {",
			"if s.openEpoch > 0 && w.Statement.ActiveSite == s.site.Name {"},
	}},
	{guard: "view: what was vouched counts as under a lower epoch", breaks: "I2 I1", directed: []string{"lease answered by peers"}, edits: []edit{
		{viewGo, "s.vouched = s.vouched.lowered()", "s.vouched = vouches{}"},
	}},
	{guard: "Keep: never an older statement", breaks: "I5", edits: []edit{
		{viewGo, "if k.Statement.Epoch >= s.kept.Statement.Epoch {", "{"},
	}},
	// vouch.go: what peers are told.
	{guard: "vouch: askerIsSelf", breaks: "I4", edits: []edit{
		never(vouchGo, "func askerIsSelf(s State, asking string) bool", "asking == s.site.Name"),
	}},
	{guard: "vouch: wordNotDurable", breaks: "I5", edits: []edit{
		never(vouchGo, "func wordNotDurable(s State, _ string) bool", "s.kept.Statement.Epoch < s.word.Epoch"),
	}},
	{guard: "vouch: notHeard", breaks: "I2 I5", directed: []string{"replaced volume and an operator that restarts"}, edits: []edit{
		never(vouchGo, "func notHeard(s State, _ string) bool", "!s.heard"),
	}},
	{guard: "vouch: what was answered is remembered", breaks: "I2 I1", directed: []string{"lease answered by peers"}, edits: []edit{
		{vouchGo, "s.vouched = s.vouched.with(asking, now.Mono)\n", ""},
	}},
	{guard: "report: an unsure opening proves nothing", breaks: "I1 I2", edits: []edit{
		{vouchGo, "if s.unsure {", "if false {"},
	}},
	{guard: "report: only a durable epoch is acknowledged", breaks: "I5", edits: []edit{
		{vouchGo, "Site: s.site.Name, Epoch: s.Epoch(),", "Site: s.site.Name, Epoch: s.word.Epoch,"},
	}},
}
