// SPDX-License-Identifier: Apache-2.0

package main

const (
	transitionGo = "operator/failover/transition.go"
	decideGo     = "operator/failover/decide.go"
	decisionGo   = "operator/failover/decision.go"
	plannedGo    = "operator/failover/planned.go"
	writeProbeGo = "operator/failover/writeprobe.go"
	stallGo      = "operator/failover/stall.go"
)

var transitionRows = []row{
	{guard: "stalled: the volume of the active site", breaks: "live", directed: []string{"stalled volume"}, edits: []edit{
		{stallGo, "if limit <= 0 || lasted == 0 {", "if limit <= 0 || lasted == 0 || s.Now.After(time.Time{}) {"},
	}},
	{guard: "stalled: the volume of who takes over", breaks: "stall", directed: []string{"stalled volumes on one storage"}, edits: []edit{
		{stallGo, "cmp.Or(c.Unfit, takesNoWrites(c.Site))", "cmp.Or(c.Unfit, takesNoWrites(Site{})[:0])"},
	}},
	{guard: "stalled: what forbids a failover", breaks: "G4", edits: []edit{
		{stallGo, "if blocked, _, message := forbidden(s, d.Memory, best, found); blocked {", "if blocked, _, message := forbidden(s, d.Memory, best, found); blocked && !found {"},
	}},
	{guard: "stalled: not opened again for what it has", breaks: "I7", edits: []edit{
		{transitionGo, " || forced(s) || t.overDisk():", " || forced(s):"},
	}},
	{guard: "fencing: an unfit target", breaks: "I1 I6 I10 I8 G2 live", directed: []string{"target that leaves the spec"}, edits: []edit{
		{transitionGo, "} else if why != \"\" {\n\t\treturn targetLost(s, d, why)", "} else if false && why != \"\" {\n\t\treturn targetLost(s, d, why)"},
	}},
	{guard: "fencing: a target that is lost is replaced", breaks: "live", edits: []edit{
		{transitionGo, "next, found := choose(s, d.Memory, t.To)\n\tif !found {", "next, found := choose(s, d.Memory, t.To)\n\tif !found || found {"},
	}},
	{guard: "fencing: drained", breaks: "I7 I8", directed: []string{"relay log that is not applied"}, edits: []edit{
		{transitionGo, "if wait, waiting := drained(s, d, target); waiting {", "if wait, waiting := drained(s, d, target); false && waiting {"},
	}},
	{guard: "drained: what is left to apply", breaks: "I8", directed: []string{"relay log that is not applied"}, edits: []edit{
		{transitionGo, "left := target.MySQL.Retrieved.Subtract(target.MySQL.Executed)\n\tif forced(s) {", "left := gtid.Set{}\n\tif forced(s) {"},
	}},
	{guard: "drained: what others have", breaks: "I7", directed: []string{"candidate that has less than a dr-only site"}, edits: []edit{
		{transitionGo, "if forced(s) {\n\t\tlacks = gtid.Set{}", "if true {\n\t\tlacks = gtid.Set{}"},
	}},
	{guard: "drained: nothing is received any more", breaks: "I8 I7", edits: []edit{
		{transitionGo, "receiving := target.MySQL.ReplicaHost != \"\" && !target.MySQL.ReceiverStopped", "receiving := false"},
	}},
	{guard: "drained: another source only with an empty relay log", breaks: "I8", directed: []string{"candidate that has less than a dr-only site"}, edits: []edit{
		{transitionGo, "if left.IsEmpty() && !lacks.IsEmpty() && (!receiving || target.MySQL.ReplicaOf == where) {", "if !lacks.IsEmpty() {"},
	}},
	{guard: "fencing: the gate", breaks: "I1 I2", edits: []edit{
		{transitionGo, "if !g.Passed {", "if false {"},
	}},
	{guard: "fencing: the loss budget", breaks: "G3", edits: []edit{
		{transitionGo, "if over := overBudget(s, t.known(s, d.Memory, target), target); over != \"\" &&", "if over := overBudget(s, t.FromExecuted, target); false && over != \"\" &&"},
	}, behind: []edit{
		{decideGo, "if over := overBudget(s, m.Executed[s.Status.ActiveSite], best.Site); over != \"\" {", "if over := overBudget(s, m.Executed[s.Status.ActiveSite], best.Site); false && over != \"\" {"},
	}},
	{guard: "pass: persisted before it is opened", breaks: "I2 I9", edits: []edit{
		{transitionGo, "d.Persist, d.Hold = true, false\n\treturn d.say(TopologyTransition, VerdictPromote", "d.Persist, d.Hold = false, false\n\treturn d.say(TopologyTransition, VerdictPromote"},
	}},
	{guard: "opening: one that cannot be opened is replaced", breaks: "live", edits: []edit{
		{transitionGo, "return due(s, d.closed(s), TopologyActiveSilent, ReasonActiveSiteSilent)", "return d.say(TopologyTransition, VerdictWait, ReasonOpening, \"\")"},
	}},
	{guard: "reopening: another look at the relay log", breaks: "I8", edits: []edit{
		{transitionGo, "case !left.IsEmpty() && !forced(s), !target.MySQL.ReceiverStopped:", "case !left.IsEmpty() && false:"},
	}, behind: []edit{
		{transitionGo, "if wait, waiting := drained(s, d, target); waiting {", "if wait, waiting := drained(s, d, target); false && waiting {"},
	}},
	{guard: "complete: the transition ends", breaks: "live", edits: []edit{
		{transitionGo, "d.Status.Transition = nil\n\td.Status.ActiveSince", "d.Status.ActiveSince"},
	}},
	{guard: "settleLoss: what is received is no loss", breaks: "G1", edits: []edit{
		{transitionGo, "|| from.Busy != \"\" || receives(from) {", "|| from.Busy != \"\" {"},
	}, behind: []edit{
		{decideGo, "return false // what it alone has is counted first", "break"},
	}},
	{guard: "settleLoss: of the server it was", breaks: "G1", edits: []edit{
		{transitionGo, "if !sameServer(r, from.MySQL.ServerUUID) || from.OtherVolume {", "if false {"},
	}},
	{guard: "settleLoss: only the newest change of a site", breaks: "G1", edits: []edit{
		{transitionGo, "if seen[r.From] || r.From == r.To {", "if r.From == r.To {"},
	}},
	{guard: "record: the loss is not exact at first", breaks: "G1", edits: []edit{
		{transitionGo, "if t.From == t.To || planned(&t) {", "if true {"},
		{transitionGo, "r.LossExact = lost.IsEmpty()", "r.LossExact = true"},
	}},
	{guard: "moving: the source is fenced", breaks: "I13 I1 I2", edits: []edit{
		{plannedGo, "case !fenced:", "case !fenced && false:"},
	}, behind: []edit{
		{plannedGo, "if g := gate(s, d.Memory); step == \"\" && g.Passed {", "if g := gate(s, d.Memory); step == \"\" {"},
	}},
	{guard: "moving: the target has all of it", breaks: "I13 I7 check", edits: []edit{
		{plannedGo, "case !lacks.IsEmpty():", "case false:"},
	}},
	{guard: "moving: the target can be opened", breaks: "live I10 I13", edits: []edit{
		{plannedGo, "case unfit(s, d.Memory, target) != \"\":", "case false:"},
	}},
	{guard: "moving: the pause has an end", breaks: "live", edits: []edit{
		{plannedGo, "paused > s.Policy.PlannedPauseTimeout {", "paused > 1000*s.Policy.PlannedPauseTimeout {"},
	}, behind: []edit{
		{plannedGo, "case unfit(s, d.Memory, target) != \"\":", "case false:"},
	}},
	{guard: "capturedSet: of a source that is fenced", breaks: "I13", edits: []edit{
		{plannedGo, "|| !r.Answered || !r.SuperReadOnly || !r.FencedUnder(s.Status.Epoch) || from.Writable() {", "|| !r.Answered {"},
	}},
}

var decideRows = []row{
	{guard: "behindTheSites", breaks: "I1 I2 I5 live", edits: []edit{
		{decideGo, "return writer, highest > s.Status.Epoch", "return \"\", false"},
	}},
	{guard: "believed: no impossible epoch", breaks: "I2 I5", edits: []edit{
		{decideGo, "withRuns(onKnownVolumes(believed(s), old), old)", "withRuns(onKnownVolumes(s, old), old)"},
	}},
	{guard: "check: an epoch that a statement can carry", breaks: "I2", edits: []edit{
		{decisionGo, "case d.Status.Epoch > before.Epoch && d.Status.Epoch > wire.MaxEpoch:", "case d.Status.Epoch < 0 && d.Status.Epoch > wire.MaxEpoch:"},
	}},
	{guard: "behindTheSites: the site that the epoch names", breaks: "G2 I2", edits: []edit{
		{decideGo, "r.Writable && r.ActiveSite == site.Name && site", "r.Writable && site"},
	}},
	{guard: "catchUp: the next epoch", breaks: "I1 I2 live", edits: []edit{
		{decideGo, "site.Sidecar.Report.Epoch+1, writer, nil", "site.Sidecar.Report.Epoch, writer, nil"},
	}},
	{guard: "bootstrap: every candidate was seen", breaks: "I1 I2 I7 I10 live", edits: []edit{
		{decideGo, "if unseen = unseenEpochs; !ordered(s) {", "if unseen = unseenEpochs; false {"},
	}},
	{guard: "bootstrap: an epoch above all that were not seen", breaks: "I1", edits: []edit{
		{decideGo, "+unseen+1", "+0*unseen+1"},
	}},
	{guard: "isLongSilent: for so many polls", breaks: "live", edits: []edit{
		{decideGo, "return m.SilentPolls[site] >= s.Policy.Threshold && down", "return down"},
	}},
	{guard: "isLongSilent: for so long", breaks: "live", edits: []edit{
		{decideGo, "return m.SilentPolls[site] >= s.Policy.Threshold && down >= time.Duration(s.Policy.Threshold-1)*s.Policy.PollInterval", "_ = down\n\treturn m.SilentPolls[site] >= s.Policy.Threshold"},
	}},
	{guard: "bootstrap: on the volume that holds the data", breaks: "I12 live G2", edits: []edit{
		{decideGo, "&& !site.Removed && !site.OtherVolume && (best", "&& !site.Removed && (best"},
	}},
	{guard: "isNotProvisioned: another volume, before the first opening too", breaks: "I12 live", edits: []edit{
		{candidateGo, "if site.OtherVolume {\n\t\t// Also", "if t := s.Status.Transition; site.OtherVolume && !(t != nil && t.Kind == v1alpha1.FailoverBootstrap) {\n\t\t// Also"},
	}},
	{guard: "bootstrap: an epoch above all that were seen", breaks: "I1 I2 live", edits: []edit{
		{decideGo, "d.Status.Epoch, d.Status.Transition.From = max(highest, s.Status.Epoch)+unseen+1, \"\"", "d.Status.Epoch, d.Status.Transition.From = s.Status.Epoch+unseen+1, \"\""},
	}},
	{guard: "bootstrap: nothing is missing", breaks: "I7", edits: []edit{
		{decideGo, "if site.SQLAnswers() && !lacks.IsEmpty() && !ordered(s)", "if false && site.SQLAnswers() && !lacks.IsEmpty() && !ordered(s)"},
	}, behind: []edit{
		{candidateGo, "if lacks := held(s, m, site).Subtract(c.All()); !lacks.IsEmpty() && site.Name != c.Name {\n\t\t\treturn", "if lacks := held(s, m, site).Subtract(c.All()); false && !lacks.IsEmpty() && site.Name != c.Name {\n\t\t\treturn"},
	}},
	{guard: "shouldFollow: a diverged site", breaks: "I10", edits: []edit{
		{decideGo, "site.Busy != \"\", diverged, site.Removed:", "site.Busy != \"\", diverged && false, site.Removed:"},
	}, behind: []edit{
		{decideGo, "case !site.All().Subtract(a.MySQL.Executed).IsEmpty():", "case false:"},
	}},
	{guard: "shouldFollow: a site that is not fenced", breaks: "I10", edits: []edit{
		{decideGo, "case !site.MySQL.Direct, !a.MySQL.Direct, !site.Fenced():", "case !site.MySQL.Direct, !a.MySQL.Direct:"},
	}},
	{guard: "shouldFollow: an unsettled site", breaks: "I10 G1", edits: []edit{
		{decideGo, "return false // what it alone has is counted first", "break"},
	}, behind: []edit{
		{decideGo, "case !site.All().Subtract(a.MySQL.Executed).IsEmpty():", "case false:"},
	}},
	{guard: "shouldFollow: what cannot be compared", breaks: "I10", edits: []edit{
		{decideGo, "case !site.All().Subtract(a.MySQL.Executed).IsEmpty():", "case false:"},
	}},
	{guard: "shouldFollow: a site on another volume", breaks: "I10 live G1", edits: []edit{
		{decideGo, "case site.Name == a.Name, !site.Provisioned, site.OtherVolume,", "case site.Name == a.Name, !site.Provisioned,"},
	}},
	{guard: "returned: what others have", breaks: "G2 I7", edits: []edit{
		{decideGo, "if lacks, where := missing(s, d.Memory, a); !lacks.IsEmpty() {", "if lacks, where := missing(s, d.Memory, a); false && !lacks.IsEmpty() {"},
	}, behind: []edit{
		{decideGo, "!known.Subtract(a.MySQL.Executed).IsEmpty() || a.OtherVolume {", "false && !known.IsEmpty() {"},
	}},
	{guard: "returned: what it had itself", breaks: "G2", edits: []edit{
		{decideGo, "!known.Subtract(a.MySQL.Executed).IsEmpty() || a.OtherVolume {", "false && !known.IsEmpty() {"},
	}},
	{guard: "returned: a busy site", breaks: "live I10 G2", edits: []edit{
		{decideGo, "if isBusy(s, d.Memory, a) != \"\" {", "if false {"},
	}},
	{guard: "returned: one that cannot be opened is replaced", breaks: "live", edits: []edit{
		{decideGo, "stuck := late(s, d.Memory.ReopenSince)", "stuck := false"},
	}},
	{guard: "forbidden: the mode", breaks: "G4", edits: []edit{
		{decideGo, "case s.Policy.Mode == v1alpha1.FailoverObserve:", "case false:"},
	}, behind: []edit{
		{decideGo, "case s.Policy.Mode == v1alpha1.FailoverManual:", "case false:"},
	}},
	{guard: "forbidden: the cooldown", breaks: "G4", edits: []edit{
		{decideGo, "case s.Now.Before(s.Status.CooldownUntil):", "case false:"},
	}},
	{guard: "forbidden: paused", breaks: "G4", edits: []edit{
		{decideGo, "case s.paused():", "case false:"},
	}},
	{guard: "begin: the next epoch", breaks: "check I1 I2", edits: []edit{
		{decideGo, "d.Status.Epoch = s.Status.Epoch + 1\n", "d.Status.Epoch = s.Status.Epoch\n"},
	}},
	{guard: "begin: persisted", breaks: "I2 I1", edits: []edit{
		{decideGo, "d.Persist, d.Hold = true, true\n\teffects", "d.Persist, d.Hold = false, true\n\teffects"},
	}},
	{guard: "retarget: the next epoch", breaks: "check I1 I2", edits: []edit{
		{decideGo, "d.Status.Epoch, d.Status.ActiveSite, d.Status.Transition = s.Status.Epoch+1, to, &t", "d.Status.Epoch, d.Status.ActiveSite, d.Status.Transition = s.Status.Epoch, to, &t"},
	}},
	{guard: "retarget: the old active site stays the one to be proven fenced", breaks: "I1 I2 G1", edits: []edit{
		{decideGo, "t.To, t.Reason = to, string(why)", "t.From, t.To, t.Reason = s.Status.ActiveSite, to, string(why)"},
	}},
	{guard: "a foreign writer is fenced", breaks: "live I1", edits: []edit{
		{decideGo, "if len(foreign) > 0 {", "if false {"},
	}},
}

// checkRows plant a mistake in the core, which only the last guard stops, and take that guard away.
var checkRows = []row{
	{guard: "check: opens only the active site", breaks: "I1 I2 I10 live", edits: []edit{
		{decisionGo, "if open.Site != d.Status.ActiveSite {", "if false {"},
	}, behind: []edit{
		{transitionGo, "then(Select{Site: t.To}, Detach{Site: t.To}, Open{Site: t.To}).within(time.Millisecond)",
			"then(Select{Site: t.To}, Detach{Site: t.To}, Open{Site: s.Sites[0].Name}).within(time.Millisecond)"},
	}},
	{guard: "check: opens last", breaks: "I2 I10 I8 live", edits: []edit{
		{decisionGo, "if i != len(d.Effects)-1 {", "if i < 0 {"},
	}, behind: []edit{
		{transitionGo, "then(Select{Site: t.To}, Detach{Site: t.To}, Open{Site: t.To}).within(time.Millisecond)",
			"then(Open{Site: t.To}, Detach{Site: t.To}, Select{Site: t.To}).within(time.Millisecond)"},
	}},
	{guard: "check: does not open on hold", breaks: "live I1", edits: []edit{
		{decisionGo, "if d.Hold {\n\t\t\treturn fmt.Errorf(\"opens %s while", "if false {\n\t\t\treturn fmt.Errorf(\"opens %s while"},
	}, behind: []edit{
		{transitionGo, "d.Persist, d.Hold = true, false\n\treturn d.say(TopologyTransition, VerdictPromote", "d.Persist, d.Hold = true, true\n\treturn d.say(TopologyTransition, VerdictPromote"},
		{transitionGo, "\t\td.Hold = false\n\t\tif d = reopening(s, d, target)", "\t\tif d = reopening(s, d, target)"},
	}},
	{guard: "check: the epoch does not go back", breaks: "I2 I1 live", edits: []edit{
		{decisionGo, "case d.Status.Epoch < before.Epoch:", "case false:"},
	}, behind: []edit{
		{decisionGo, "case d.Status.ActiveSite != before.ActiveSite && d.Status.Epoch <= before.Epoch:", "case false:"},
		{decideGo, "d.Status.Epoch = s.Status.Epoch + 1\n", "d.Status.Epoch = s.Status.Epoch - 1\n"},
	}},
	{guard: "check: another active site, another epoch", breaks: "I1 I2", edits: []edit{
		{decisionGo, "case d.Status.ActiveSite != before.ActiveSite && d.Status.Epoch <= before.Epoch:", "case false:"},
	}, behind: []edit{
		{decideGo, "d.Status.Epoch = s.Status.Epoch + 1\n", "d.Status.Epoch = s.Status.Epoch\n"},
	}},
	{guard: "check: holds before the gate", breaks: "I1 I2", edits: []edit{
		{decisionGo, "case d.Status.Transition != nil && d.Status.Transition.Step == v1alpha1.TransitionFencing && !d.Hold:", "case false:"},
	}, behind: []edit{
		{decideGo, "d.Persist, d.Hold = true, true\n\teffects", "d.Persist, d.Hold = true, false\n\teffects"},
	}},
	{guard: "check: a planned failover opens with all of the source", breaks: "I13 I7", edits: []edit{
		{decisionGo, "!d.Status.Transition.ToExecuted.Contains(d.Status.Transition.FromExecuted):", "false:"},
	}, behind: []edit{
		{plannedGo, "case !lacks.IsEmpty():", "case false:"},
		{plannedGo, "case !elsewhere.IsEmpty():", "case false:"},
	}},
}
