// SPDX-License-Identifier: Apache-2.0

package main

// moreRows are guards of the decision core that were added after the first of them.
var moreRows = []row{
	{guard: "unwritable: a probe that is not able to write is not bad", breaks: "live", edits: []edit{
		{writeProbeGo, " || p == nil || p.Outcome != wire.WriteFails", " || p == nil"},
	}},
	{guard: "unwritable: of a site that is open", breaks: "live", edits: []edit{
		{writeProbeGo, "if d.Topology != TopologyHealthy || !known", "if !known"},
	}},
	{guard: "unwritable: not of long ago", breaks: "live", edits: []edit{
		{writeProbeGo, "if time.Duration(p.AgeMillis)*time.Millisecond > probeValid {", "if false {"},
	}},
	{guard: "unwritable: not of a moment", breaks: "live", edits: []edit{
		{writeProbeGo, "if time.Duration(p.ForMillis)*time.Millisecond < patience {", "if patience < 0 {"},
	}},
	{guard: "unwritable: not of a peak of load", breaks: "live", edits: []edit{
		{writeProbeGo, "if busy[p.Reason] {", "if false {"},
	}},
	{guard: "returnedWhole: fenced under this epoch", breaks: "I1 I2 live", edits: []edit{
		{transitionGo, "case !from.Sidecar.Answered || !from.Sidecar.Report.FencedUnder(s.Status.Epoch) || !from.Fenced():", "case !from.Sidecar.Answered:"},
	}},
	{guard: "returnedWhole: one that may be active", breaks: "I6 I12 I10 live", edits: []edit{
		{transitionGo, "case isDROnly(s, m, from) != \"\" || isNotProvisioned(s, m, from) != \"\" || isBusy(s, m, from) != \"\" || isUnescrowed(s, m, from) != \"\":", "case false:"},
	}},
	{guard: "returnedWhole: misses nothing", breaks: "I7 live", edits: []edit{
		{transitionGo, "return from, more && lacks.IsEmpty()", "return from, more || more && lacks.IsEmpty()"},
	}},
	{guard: "returnedWhole: holds more", breaks: "live", edits: []edit{
		{transitionGo, "return from, more && lacks.IsEmpty()", "return from, lacks.IsEmpty() || more && lacks.IsEmpty()"},
	}},
	{guard: "fencing: the target has acknowledged the epoch", breaks: "I2 I5 live", edits: []edit{
		{transitionGo, "if target.Sidecar.Report.Epoch < s.Status.Epoch {", "if false {"},
	}},
	{guard: "drained: what was written off is fetched from nobody", breaks: "I10", edits: []edit{
		{transitionGo, "if left.IsEmpty() && !lacks.IsEmpty() && unsettled(s, d.Memory, where) {", "if false {"},
	}},
	{guard: "drained: a broken applier elsewhere has its time", breaks: "I7", edits: []edit{
		{transitionGo, "if late(s, d.Memory.DrainSince) {\n\t\t// What only", "if true {\n\t\t// What only"},
	}},
	{guard: "drained: and no more than that", breaks: "live", edits: []edit{
		{transitionGo, "if late(s, d.Memory.DrainSince) {\n\t\t// What only", "if false {\n\t\t// What only"},
	}},
	{guard: "obtainable: only what a broken applier cannot apply", breaks: "I7", edits: []edit{
		{candidateGo, "has = has.Intersect(site.MySQL.Executed)", "has = gtid.Set{}"},
	}},
	{guard: "brokenApplier: not one that is slow", breaks: "I7", edits: []edit{
		{candidateGo, "return site.MySQL.Direct && !left.IsEmpty() && !site.MySQL.SQLRunning && site.MySQL.SQLError != \"\"", "return !left.IsEmpty()"},
	}},
	{guard: "pass: what is left behind is counted", breaks: "I7", edits: []edit{
		{transitionGo, "t.FromExecuted = t.FromExecuted.Union(behind)", "_ = behind"},
	}},
	{guard: "known: what is left behind counts for the budget", breaks: "I7", edits: []edit{
		{transitionGo, "Union(m.Executed[t.From]).Union(behind)", "Union(m.Executed[t.From]); _ = behind"},
	}},
	{guard: "known: a later look counts", breaks: "G3", edits: []edit{
		{transitionGo, "Union(m.Executed[t.From]).Union(behind)", "Union(behind)"},
	}},
	{guard: "unbroken: a broken target is replaced", breaks: "live", edits: []edit{
		{transitionGo, "if next, found := unbroken(s, d.Memory, target); found && late", "if next, found := unbroken(s, d.Memory, target); false && found && late"},
	}},
	{guard: "drained: has an end", breaks: "live", edits: []edit{
		{transitionGo, "if late(s, d.Memory.DrainSince) {\n\t\t// Going on", "if false {\n\t\t// Going on"},
	}},
	{guard: "opening: what it had at its gate is still there", breaks: "G2 I7 I12", edits: []edit{
		{transitionGo, "case target.Sidecar.Answered && target.MySQL.Direct && (target.OtherVolume || !target.MySQL.Executed.Contains(t.ToExecuted)):", "case false:"},
	}},
	{guard: "fencing: the name of the first volume is durable", breaks: "I12 G2", edits: []edit{
		never(transitionGo, "func isUnnoted(target Site) bool", "!target.Provisioned && target.Unnoted"),
	}},
	{guard: "settleLoss: what was thrown away cannot be compared", breaks: "G1", edits: []edit{
		{transitionGo, "from.OtherVolume) && r.FromServerUUID != ServerReplaced {", "from.OtherVolume) && false {"},
	}},
	{guard: "settleLoss: a rotation throws nothing away", breaks: "I10", edits: []edit{
		{transitionGo, "from.thrownAway() || from.OtherVolume) && r.From", "from.Busy != \"\" || from.OtherVolume) && r.From"},
	}},
	{guard: "settleLoss: diverged at once", breaks: "I10", edits: []edit{
		{transitionGo, "m.Diverged[r.From] = lost //", "_ = lost //"},
	}},
	{guard: "holdsLost", breaks: "I10", edits: []edit{
		{candidateGo, "if r.From == site && r.LossExact {\n\t\t\treturn holdsLost(s, m, r, site)", "if r.From == site && r.LossExact {\n\t\t\treturn false"},
	}},
	{guard: "holdsLost: what the active site has is not lost", breaks: "live", edits: []edit{
		{candidateGo, ".Intersect(lost).Subtract(m.Executed[s.Status.ActiveSite]).IsEmpty()", ".Intersect(lost).IsEmpty()"},
	}},
	{guard: "capturedSet: on the volume that counts", breaks: "I13", edits: []edit{
		{plannedGo, "if !from.Sidecar.Answered || from.OtherVolume || !r.Answered", "if !from.Sidecar.Answered || !r.Answered"},
	}},
	{guard: "moving: what others have", breaks: "I7 I13", edits: []edit{
		{plannedGo, "case !elsewhere.IsEmpty():", "case false:"},
	}},
	{guard: "moving: the target has acknowledged the epoch", breaks: "I2 I13 live", edits: []edit{
		{plannedGo, "case target.Sidecar.Report.Epoch < s.Status.Epoch:", "case false:"},
	}},
	{guard: "moving: a person gives it up", breaks: "G4", edits: []edit{
		{plannedGo, "case s.Policy.AbortPlanned:\n", "case false:\n"},
	}},
	{guard: "preflight: the mode", breaks: "G4", edits: []edit{
		{plannedGo, "if s.Policy.Mode == v1alpha1.FailoverObserve {", "if false {"},
	}},
	{guard: "preflight: paused", breaks: "G4", edits: []edit{
		{plannedGo, "if s.paused() {\n\t\treturn ReasonPaused, pausedMessage(s)", "if false {\n\t\treturn ReasonPaused, pausedMessage(s)"},
	}},
	{guard: "preflight: a target that is fit", breaks: "I6 I10 I12 I13", edits: []edit{
		{plannedGo, "for _, guard := range unfitness {\n\t\tif why := guard(s, m, target); why != \"\" {\n\t\t\treturn ReasonNotFit", "for _, guard := range unfitness {\n\t\tif why := guard(s, m, target); false && why != \"\" {\n\t\t\treturn ReasonNotFit"},
	}},
	{guard: "preflight: a target that stays", breaks: "I13", edits: []edit{
		{plannedGo, "case target.Leaving != \"\":", "case false:"},
	}},
	{guard: "preflight: an active site that answers", breaks: "I13", edits: []edit{
		{plannedGo, "case !a.Sidecar.Answered || !a.MySQL.Direct:", "case false:"},
	}},
	{guard: "preflight: a target that replicates", breaks: "I13", edits: []edit{
		{plannedGo, "case target.MySQL.ReplicaOf != a.Name || !target.MySQL.IORunning || !target.MySQL.SQLRunning:", "case false:"},
	}},
	{guard: "preflight: nobody else accepts writes", breaks: "I1 I13", edits: []edit{
		{plannedGo, "case writableElsewhere(s, a.Name) != \"\":", "case false:"},
	}},
	{guard: "preflight: nobody is given the data", breaks: "G5 live", edits: []edit{
		{plannedGo, "if site.Busy != \"\" && a.Leaving == \"\" {", "if false {"},
	}},
}
