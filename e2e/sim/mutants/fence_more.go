// SPDX-License-Identifier: Apache-2.0

package main

const leaveGo = "sidecar/fence/leave.go"

// fenceMoreRows are the rest of the fence core's guards.
var fenceMoreRows = []row{
	{guard: "Observe: an unknown process is not another one", breaks: "I1", edits: []edit{
		{fenceGo, "if f.Running && f.Process == \"\" {", "if false {"},
	}},
	{guard: "Observe: another process started fenced", breaks: "live", edits: []edit{
		{fenceGo, "if s.seen.Process != \"\" && !share(s.seen.Process, f.Process) {", "if false {"},
	}},
	{guard: "Interrupted: an opening of an earlier run is unsure", breaks: "I1 I2", directed: []string{"sidecar that dies while its opening hangs"}, edits: []edit{
		{openGo, "s.unsure, s.interrupted = true, process\n\treturn s", "_ = process\n\treturn s"},
	}},
	{guard: "Observe: only the end of the marked process ends it", breaks: "I1 I2", directed: []string{"sidecar that dies while its opening hangs"}, edits: []edit{
		{fenceGo, "s.unsure, s.interrupted = s.unsure && share(s.interrupted, f.Process), \"\"", "s.unsure, s.interrupted = false, \"\""},
	}},
	{guard: "Observe: a mark is of one process", breaks: "I1 live", edits: []edit{
		{fenceGo, "if s.interrupted != \"\" && f.Process != \"\" {", "if false {"},
	}},
	{guard: "closed: the mark of an earlier run is forgotten", breaks: "I1", edits: []edit{
		{fenceGo, "s.exposed, s.openEpoch, s.starting, s.unsure, s.interrupted = false, 0, false, false, \"\"", "s.exposed, s.openEpoch, s.starting, s.unsure = false, 0, false, false"},
	}},
	{guard: "Decide: an unsure opening ends with the process", breaks: "I1 I2", edits: []edit{
		{fenceGo, "Kill: s.unsure}", "Kill: false}"},
	}},
	{guard: "Fenced: only with proof", breaks: "I1 I2", edits: []edit{
		{fenceGo, "if !proven || (s.unsure && last.Stage != wire.FenceKillServer) {", "if s.unsure && last.Stage != wire.FenceKillServer {"},
	}},
	{guard: "readersKeptOut", breaks: "live", edits: []edit{
		{fenceGo, "return !open && !s.changing && s.seen.Running && s.seen.Answered && s.seen.Offline && !s.seen.Cloning", "return open && false"},
	}},
	{guard: "readersKeptOut: not in a window", breaks: "I3 live", edits: []edit{
		{fenceGo, "return !open && !s.changing && s.seen.Running", "return (!open || open) && !s.changing && s.seen.Running"},
	}},
	{guard: "aboutToOpen: the target keeps clients out", breaks: "I1", edits: []edit{
		{keepoutGo, "return s.Names() && (s.word.Hold || s.seen.Replicates)", "return s.Names() && false"},
	}},
	{guard: "preparedLately: nobody ends a prepared transaction on a replica", breaks: "I1", edits: []edit{
		{keepoutGo, "return s.hasPrepared && (s.prepared > 0 ||", "return false && (s.prepared > 0 ||"},
	}},
	{guard: "readersKeptOut: nobody is let in who is to be kept out", breaks: "I1", edits: []edit{
		{keepoutGo, "return !aboutToOpen(s) && !preparedLately(s, now)", "return true || !aboutToOpen(s) && !preparedLately(s, now)"},
	}},
	{guard: "keptOutLate: an open site whose clients a late statement keeps out", breaks: "live", edits: []edit{
		{keepoutGo, "return s.Open() && s.keepOutUnsure &&", "return false && s.keepOutUnsure &&"},
	}},
	{guard: "behindWindow", breaks: "live", edits: []edit{
		{fenceGo, "_, open := s.word.WindowFor(s.site.Name, now.Wall)\n\treturn open\n", "_, open := s.word.WindowFor(s.site.Name, now.Wall)\n\treturn open && false\n"},
	}},
	{guard: "shouldBeOpen: not while it replicates or is cloned", breaks: "I10", edits: []edit{
		{fenceGo, "s.seen.Answered && !s.seen.Replicates && !s.seen.Cloning\n", "s.seen.Answered\n"},
	}},
	{guard: "lease: sameEpochOtherSite", breaks: "I1 I2 I4", edits: []edit{
		{leaseGo, "return sameEpochOtherSite(s, x.word)", "return false && sameEpochOtherSite(s, x.word)"},
	}},
	{guard: "lease: sentInTheFuture", breaks: "I4", edits: []edit{
		never(leaseGo, "func sentInTheFuture(_ State, x exchange) bool", "x.word.SentAt > x.now.Mono"),
	}},
	{guard: "lease: there is none before the first exchange", breaks: "I4", edits: []edit{
		{leaseGo, "if !s.hasGood {\n\t\treturn 0", "if !s.hasGood {\n\t\treturn lease(s)"},
	}},
	{guard: "open: leaseTooShort", breaks: "I4", edits: []edit{
		{openGo, "return o.now.Mono+s.limits.Opening >= o.word.SentAt+lease(s)", "return false"},
	}},
	{guard: "open: mysqlSilent", breaks: "I3 live", edits: []edit{
		never(openGo, "func mysqlSilent(s State, _ opening) bool", "!s.seen.Running || !s.seen.Answered"),
	}},
	{guard: "open: mysqlWritable", breaks: "I3 I2", edits: []edit{
		{openGo, "return s.seen.Answered && s.seen.Writable && !clientsKeptOut(s, o.now)", "return false"},
	}},
	{guard: "clientsKeptOut", breaks: "live", edits: []edit{
		{fenceGo, "return !open && s.seen.Answered && s.seen.Offline && s.openEpoch != 0", "return open && false"},
	}},
	{guard: "clientsKeptOut: only of what this run opened", breaks: "I3", edits: []edit{
		{fenceGo, "s.seen.Offline && s.openEpoch != 0\n}\n\n// leaving", "s.seen.Offline\n}\n\n// leaving"},
	}},
	{guard: "clientsKeptOut: not in a window", breaks: "I3 I10", edits: []edit{
		{fenceGo, "return !open && s.seen.Answered && s.seen.Offline", "return (!open || open) && s.seen.Answered && s.seen.Offline"},
	}},
	{guard: "Opened: what was open before a refusal is not closed", breaks: "I1 I2 I3", edits: []edit{
		{openGo, "if s.seen.SuperReadOnly {\n\t\t\ts = closed(s)\n\t\t} // else", "{\n\t\t\ts = closed(s)\n\t\t} // else"},
	}},
	{guard: "open: windowIsOpen", breaks: "I10 I3", edits: []edit{
		{openGo, "_, open := s.word.WindowFor(s.site.Name, o.now.Wall)\n\treturn open\n", "_, open := s.word.WindowFor(s.site.Name, o.now.Wall)\n\treturn open && false\n"},
	}},
	{guard: "view: sameEpochOtherSite", breaks: "I1 I2", edits: []edit{
		{viewGo, "return w.Statement.Epoch == s.word.Epoch && w.Statement.ActiveSite != s.word.ActiveSite", "return false"},
	}},
	{guard: "vouch: no statement yet", breaks: "I5", edits: []edit{
		{vouchGo, "func(s State, _ string) bool { return s.word.Epoch == 0 }", "func(s State, _ string) bool { return false }"},
	}},
	{guard: "vouch: notVerified", breaks: "I5", edits: []edit{
		never(vouchGo, "func notVerified(s State, _ string) bool", "!s.verified"),
	}},
	{guard: "vouch: askerIsNoPeer", breaks: "I2", edits: []edit{
		never(vouchGo, "func askerIsNoPeer(s State, asking string) bool", "!s.site.HasPeer(asking)"),
	}},
	{guard: "shut: what was seen writable is not", breaks: "I1 I2", edits: []edit{
		{fenceGo, "s.exposed, s.shut = true, false", "s.exposed = true"},
	}},
	{guard: "shut: what has answered is not", breaks: "I1 I2", edits: []edit{
		{fenceGo, "s.shut = false // from here on", "_ = false // from here on"},
	}},
	{guard: "shut: what is being opened is not", breaks: "I1 I2", edits: []edit{
		{openGo, "s.exposed, s.shut, s.openEpoch, s.changing = true, false, s.word.Epoch, true", "s.exposed, s.openEpoch, s.changing = true, s.word.Epoch, true"},
	}},
	{guard: "report: an unsure opening is not shut", breaks: "I1 I2", edits: []edit{
		{vouchGo, "r.MysqldRunning, r.Answered, r.Fenced = true, false, false", "r.MysqldRunning, r.Answered = true, false"},
	}},
	{guard: "leave: stillOpen", breaks: "live", edits: []edit{
		never(leaveGo, "func stillOpen(s State, now Instant) bool", "s.exposed && !behindWindow(s, now)"),
	}},
	{guard: "leave: stillNamed", breaks: "live", edits: []edit{
		never(leaveGo, "func stillNamed(s State, _ Instant) bool", "s.Names()"),
	}},
	{guard: "leave: changeUnderWay", breaks: "live", edits: []edit{
		never(leaveGo, "func changeUnderWay(s State, _ Instant) bool", "s.word.Epoch > 0 && s.word.Hold"),
	}},
	// watchdog.go: what the supervisor of mysqld is told.
	{guard: "watch: an open site has a deadline", breaks: "I1 I2 I4", directed: []string{"the sidecar stands still and its site is cut off"}, edits: []edit{
		{watchGo, "return Watchdog{Until: s.good + lease(s) + s.limits.Fence}", "return Watchdog{}"},
	}},
	{guard: "watch: the deadline is that of the lease", breaks: "I1 I2 I4", directed: []string{"the sidecar stands still and its site is cut off"}, edits: []edit{
		{watchGo, "return Watchdog{Until: s.good + lease(s) + s.limits.Fence}", "return Watchdog{Until: now.Mono + 2*lease(s) + s.limits.Fence}"},
	}},
	{guard: "watch: a fence that is due prolongs nothing", breaks: "I1 I2 I4", edits: []edit{
		{watchGo, "func(c closer) bool { return c.blocks(s, now) }", "func(c closer) bool { return false && c.blocks(s, now) }"},
	}},
	{guard: "watch: an earlier deadline stands", breaks: "I1 I2 I4", edits: []edit{
		{watchGo, "Until: now.Mono + s.limits.Opening + s.limits.Fence, Sooner: true", "Until: now.Mono + s.limits.Opening + s.limits.Fence"},
	}},
	{guard: "watch: a window ends", breaks: "I1 I4", edits: []edit{
		{watchGo, "now.Mono + w.Deadline.Sub(now.Wall) + s.limits.Fence", "now.Mono + w.Deadline.Sub(now.Wall) + 1000*s.limits.Fence"},
	}},
	{guard: "open: notWatched", breaks: "I4", edits: []edit{
		never(openGo, "func notWatched(s State, _ opening) bool", "!s.seen.Watched"),
	}},
}
