// SPDX-License-Identifier: Apache-2.0

package main

const (
	gateGo      = "operator/failover/gate.go"
	candidateGo = "operator/failover/candidate.go"
	rememberGo  = "operator/failover/remember.go"
	snapshotGo  = "operator/failover/snapshot.go"
	numbersGo   = "operator/failover/numbers.go"
)

// begunAnyway has failovers begin that could not be ended by time.
var begunAnyway = edit{decideGo, "why == ReasonActiveSiteSilent && silent != \"\" {", "false && reason != \"\" && silent != \"\" {"}

var gateRows = []row{
	{guard: "writableElsewhere", breaks: "I1 I2", edits: []edit{
		{gateGo, "if writer := writableElsewhere(s, t.To); writer != \"\" {", "if writer := writableElsewhere(s, t.To); false && writer != \"\" {"},
	}},
	{guard: "everySiteFenced", breaks: "I1 I2", edits: []edit{
		{gateGo, "return everySiteFenced(s, m)", "return Gate{Passed: true, Evidence: []string{\"none\"}}"},
	}},
	{guard: "everySiteFenced: under this epoch", breaks: "I1 I2", edits: []edit{
		{gateGo, "ack.Epoch >= s.Status.Epoch && ack.Fenced && site.only(ack.PodUID) || site.gone() || never", "ack.Fenced && site.only(ack.PodUID) || site.gone() || never"},
	}},
	// A sidecar fences before it reports, and reports after it; what it could not fence it has killed.
	{guard: "everySiteFenced: fenced", breaks: "I1 I2", edits: []edit{
		{gateGo, "ack.Epoch >= s.Status.Epoch && ack.Fenced && site.only(ack.PodUID) || site.gone() || never", "ack.Epoch >= s.Status.Epoch && site.only(ack.PodUID) || site.gone() || never"},
	}},
	{guard: "proof: of this epoch", breaks: "I1 I2", directed: []string{"active site that is cut off as it opens"}, edits: []edit{
		{gateGo, "if ack := m.Acks[x]; ack.Epoch >= epoch && ack.Fenced && site.shutBut(ack.PodUID) {", "if ack := m.Acks[x]; ack.Fenced && site.shutBut(ack.PodUID) {"},
	}},
	// A sidecar fences before it reports, and reports after it; what it could not fence it has killed.
	{guard: "proof: fenced", breaks: "I1 I2", edits: []edit{
		{gateGo, "if ack := m.Acks[x]; ack.Epoch >= epoch && ack.Fenced && site.shutBut(ack.PodUID) {", "if ack := m.Acks[x]; ack.Epoch >= epoch && site.shutBut(ack.PodUID) {"},
	}},
	// Whoever was opened after an older fence had a later permission, for which mayStillOpen looks.
	{guard: "proof by SQL: of this epoch", breaks: "I1 I2", edits: []edit{
		{gateGo, "was && fence.Epoch >= epoch && fence.PodUID", "was && fence.PodUID"},
	}},
	{guard: "proof by SQL: of the pod that was confirmed", breaks: "I1 I2", directed: []string{"replaced volume that acknowledges"}, edits: []edit{
		{gateGo, "fence.PodUID == m.Confirmed[x] && site.shutBut(fence.PodUID)", "site.shutBut(fence.PodUID)"},
	}, behind: []edit{
		{rememberGo, "if site.Writable() || site.OtherVolume {", "if site.Writable() {"},
	}},
	{guard: "proof by SQL: mayStillOpen", breaks: "I1 I2", directed: []string{"opening that hangs while the role moves"}, edits: []edit{
		{gateGo, " && !mayStillOpen(s, x, fence.At) {", " {"},
	}},
	{guard: "proof by SQL: an earlier leader may have answered", breaks: "I1 I2", edits: []edit{
		{gateGo, "last := later(s.Permitted[x], s.LeaderSince)", "last := s.Permitted[x]"},
	}},
	{guard: "proof: the pod that ended had the volume that counts", breaks: "I1 I2", directed: []string{"replaced volume whose pod ends"}, edits: []edit{
		{gateGo, "if known && site.Pod.Ended && site.Pod.UID == m.Confirmed[x] && site.shutBut(site.Pod.UID) {", "if known && site.Pod.Ended && site.shutBut(site.Pod.UID) {"},
	}},
	{guard: "lease: what this operator answered", breaks: "I1 I2", directed: []string{"lease answered by the operator"}, edits: []edit{
		{gateGo, "last := later(s.Answered[x], s.LeaderSince)", "last := s.LeaderSince"},
	}},
	{guard: "lease: what an earlier leader answered", breaks: "I1 I2", directed: []string{"lease answered by an earlier leader"}, edits: []edit{
		{gateGo, "last := later(s.Answered[x], s.LeaderSince)", "last := s.Answered[x]"},
	}},
	{guard: "lease: a voucher has acknowledged this epoch", breaks: "I1 I2", directed: []string{"lease kept by a peer that is cut off too"}, edits: []edit{
		{gateGo, "case acked && ack.Epoch >= s.Status.Epoch && site.only(ack.PodUID):", "case acked && site.only(ack.PodUID):"},
	}, behind: []edit{begunAnyway}},
	// No simulated site waits for a node.
	{guard: "lease: never ran: no pod was on a node", breaks: "I1 I2", edits: []edit{
		{snapshotGo, "return s.Pod.Unplaced && !s.Listed && !s.Provisioned && !s.Sidecar.Answered", "return !s.Listed && !s.Provisioned && !s.Sidecar.Answered"},
	}},
	{guard: "lease: never ran: nobody was started to ask it", breaks: "I1 I2", edits: []edit{
		{snapshotGo, "return s.Pod.Unplaced && !s.Listed && !s.Provisioned && !s.Sidecar.Answered", "return s.Pod.Unplaced && !s.Provisioned && !s.Sidecar.Answered"},
	}},
	{guard: "lease: never ran: it has no data", breaks: "I1 I2", edits: []edit{
		{snapshotGo, "return s.Pod.Unplaced && !s.Listed && !s.Provisioned && !s.Sidecar.Answered", "return s.Pod.Unplaced && !s.Listed && !s.Sidecar.Answered"},
	}},
	{guard: "lease: never ran: it does not answer", breaks: "I1 I2", edits: []edit{
		{snapshotGo, "return s.Pod.Unplaced && !s.Listed && !s.Provisioned && !s.Sidecar.Answered", "return s.Pod.Unplaced && !s.Listed && !s.Provisioned"},
	}},
	{guard: "lease: never ran: it was not heard", breaks: "I1 I2", edits: []edit{
		{gateGo, "case !acked && site.neverRan():", "case site.neverRan():"},
	}},
	{guard: "lease: asked by nobody: status says so", breaks: "I1 I2", edits: []edit{
		{gateGo, "return site.Unlisted && !site.Provisioned && !m.Listed[site.Name]", "return !site.Provisioned && !m.Listed[site.Name]"},
	}},
	{guard: "lease: asked by nobody: it has no data", breaks: "I1 I2", edits: []edit{
		{gateGo, "return site.Unlisted && !site.Provisioned && !m.Listed[site.Name]", "return site.Unlisted && !m.Listed[site.Name]"},
	}},
	{guard: "lease: asked by nobody: nobody was seen to be told of it", breaks: "I1 I2", edits: []edit{
		{gateGo, "return site.Unlisted && !site.Provisioned && !m.Listed[site.Name]", "return site.Unlisted && !site.Provisioned"},
	}},
	{guard: "lease: what the vouchers answered", breaks: "I1 I2", directed: []string{"lease answered by peers"}, edits: []edit{
		{gateGo, "last = later(last, ack.LastVouch[x])\n", ""},
	}},
	{guard: "lease: what was answered before a voucher was gone", breaks: "I1 I2", directed: []string{"lease answered by a peer that is gone"}, edits: []edit{
		{gateGo, "last = later(last, m.GoneSince[site.Name])\n", ""},
	}},
	{guard: "lease: blockers", breaks: "I1 I2", directed: []string{"lease kept by a peer that is cut off too"}, edits: []edit{
		{gateGo, "\t\t\tg.Blockers = append(g.Blockers, site.Name)\n\t\t}\n\t}\n\tslices.Sort", "\t\t}\n\t}\n\tslices.Sort"},
	}, behind: []edit{begunAnyway}},
	{guard: "lease: also an order waits for it", breaks: "I1 I2", edits: []edit{
		{gateGo, "if s.Now.Before(g.ReadyAt) {", "if s.Now.Before(g.ReadyAt) && !forced(s) {"},
	}},
	{guard: "lease: has run out", breaks: "I1 I2", edits: []edit{
		{gateGo, "if s.Now.Before(g.ReadyAt) {", "if s.Now.Before(g.ReadyAt) && forced(s) {"},
	}},
	{guard: "lease: the fence's deadline and the margin", breaks: "I1 I2", directed: []string{"lease that ends in a slow fence"}, edits: []edit{
		{gateGo, "g.ReadyAt = last.Add(longestLease(s, m, x) + LeaseMargin)", "g.ReadyAt = last.Add(longestLease(s, m, x) - s.Policy.FenceTimeout)"},
	}},
	{guard: "lease: what the pod was started with", breaks: "I1 I2", directed: []string{"lease that was longer"}, edits: []edit{
		{gateGo, "return max(longest, known)", "return longest"},
	}},
	{guard: "lease: the worst of a pod that was never seen", breaks: "I1 I2", edits: []edit{
		{gateGo, "\t\tlongest = max(longest, lease)\n", "\t\t_ = lease\n"},
	}},
}

var candidateRows = []row{
	// A site that left the spec has no role any more, so isDROnly answers.
	{guard: "isRemoved", breaks: "I6 live", edits: []edit{
		{candidateGo, "if site.Removed {", "if false {"},
	}},
	{guard: "isDROnly", breaks: "I6", directed: []string{"candidate that has less than a dr-only site"}, edits: []edit{
		{candidateGo, "if site.Role != v1alpha1.PrimaryCandidate {", "if false {"},
	}},
	{guard: "isNotProvisioned: on another volume", breaks: "I12 G2 I7 I10 live", directed: []string{"replaced volume that acknowledges"}, edits: []edit{
		{candidateGo, "if site.OtherVolume {", "if false {"},
	}},
	{guard: "isNotProvisioned", breaks: "I12 G2 I7 I10 live", directed: []string{"site without the data that is left alone"}, edits: []edit{
		{candidateGo, "if !site.Provisioned {", "if false {"},
	}},
	{guard: "isBusy", breaks: "I10 G2 I7 live", edits: []edit{
		{candidateGo, "if site.Busy != \"\" || site.MySQL.Cloning {", "if false {"},
	}},
	{guard: "isSilent: the sidecar", breaks: "live", edits: []edit{
		{candidateGo, "case !site.Sidecar.Answered:\n\t\treturn \"its sidecar does not answer\"", "case false:\n\t\treturn \"its sidecar does not answer\""},
	}},
	{guard: "isSilent: MySQL", breaks: "I8 live", edits: []edit{
		{candidateGo, "case !site.MySQL.Direct:", "case false:"},
	}},
	{guard: "isNotFenced", breaks: "I1 I10 live", edits: []edit{
		{candidateGo, "if site.Writable() && site.Name != s.Status.ActiveSite {", "if false {"},
	}},
	{guard: "isDiverged", breaks: "I10", directed: []string{"diverged site that is left alone"}, edits: []edit{
		{candidateGo, "if set, diverged := m.Diverged[site.Name]; diverged {", "if set, diverged := m.Diverged[site.Name]; false && diverged {"},
	}},
	{guard: "isUnsettled", breaks: "I10", directed: []string{"replaced site that comes back alone"}, edits: []edit{
		{candidateGo, "if unsettled(s, m, site.Name) {\n\t\treturn \"was replaced", "if false {\n\t\treturn \"was replaced"},
	}},
	{guard: "isWithoutRows", breaks: "I7", edits: []edit{
		{"operator/failover/engines.go", "case had == 0 || !site.Sidecar.Answered:", "case true:"},
	}},
	{guard: "isWithoutRows: who has not looked", breaks: "I7", edits: []edit{
		{"operator/failover/engines.go", "case mine == nil:", "case mine == nil && had < 0:"},
		{"operator/failover/engines.go", "case mine.Tables > 0 && mine.WithRows < had:", "case mine != nil && mine.Tables > 0 && mine.WithRows < had:"},
	}},
	{guard: "isWithoutRows: what the active site had is durable", breaks: "I7", edits: []edit{
		{"operator/failover/engines.go", "d.Status.RowsOutside, d.Persist = found.WithRows, true", "d.Persist = false"},
	}},
	// A simulated server that was cloned is another one, as a real one is, so none would number again.
	{guard: "isNumberingAgain", breaks: "I10", edits: []edit{
		{numbersGo, "if other.Name != site.Name && mayHold(m, r, other, again) {", "if false {"},
	}},
	{guard: "isNumberingAgain: whose numbers", breaks: "live", edits: []edit{
		{numbersGo, "lost.OfServer(site.MySQL.ServerUUID).Subtract(site.All())", "lost.Subtract(site.All())"},
	}},
	{guard: "isNumberingAgain: who is not seen may hold them", breaks: "I10", edits: []edit{
		{numbersGo, "return !was || site.OtherVolume || ", "return false && !was || "},
	}},
	{guard: "isNumberingAgain: who took over lacked them", breaks: "live", edits: []edit{
		{numbersGo, "if site.Name == r.To || site.neverRan() {", "if site.neverRan() {"},
	}},
	{guard: "unsettled: a site that was active again is settled", breaks: "live", edits: []edit{
		{candidateGo, "if r.To == site {", "if false {"},
	}},
	{guard: "sameServer", breaks: "live G1", directed: []string{"replaced site that comes back alone"}, edits: []edit{
		{candidateGo, "return r.FromServerUUID == \"\" || uuid == \"\" && r.FromServerUUID != ServerReplaced || r.FromServerUUID == uuid", "return true"},
	}},
	{guard: "missing", breaks: "I7", directed: []string{"candidate that has less than a dr-only site"}, edits: []edit{
		{candidateGo, "if lacks := held(s, m, site).Subtract(c.All()); !lacks.IsEmpty() && site.Name != c.Name {\n\t\t\treturn", "if lacks := held(s, m, site).Subtract(c.All()); false && !lacks.IsEmpty() && site.Name != c.Name {\n\t\t\treturn"},
	}},
	{guard: "missing: what a diverged site alone has does not count", breaks: "I10 live", edits: []edit{
		{candidateGo, "isNotProvisioned(s, m, site) != \"\" || diverged || site.thrownAway()", "isNotProvisioned(s, m, site) != \"\" || diverged && false || site.thrownAway()"},
	}},
	{guard: "missing: what an unsettled site alone has does not count", breaks: "I10 live", edits: []edit{
		{candidateGo, "return site.All().Intersect(replacedBy(s, site.Name))", "return site.All()"},
	}},
	{guard: "missing: what is in a relay log counts", breaks: "I7", edits: []edit{
		{candidateGo, "\t}\n\treturn site.All()\n", "\t}\n\treturn site.MySQL.Executed\n"},
	}},
}

var rememberRows = []row{
	{guard: "onKnownVolumes", breaks: "I1 I2 G2", directed: []string{"replaced volume that acknowledges", "replaced volume whose pod ends"}, edits: []edit{
		{rememberGo, "if !s.Sites[i].Sidecar.Answered && old.OtherVolume[s.Sites[i].Name] {", "if false {"},
	}},
	{guard: "what was found diverged stays found", breaks: "I10", directed: []string{"diverged site that is left alone"}, edits: []edit{
		{rememberGo, "; was && !known && !isHistory(s, site) && !isCovered(s, site) {", "; false && was && !known {"},
	}},
	{guard: "isHistory: what was ordered active is the history", breaks: "live I7", edits: []edit{
		{rememberGo, "; was && !known && !isHistory(s, site) && !isCovered(s, site) {", "; was && !known && !isCovered(s, site) {"},
	}, behind: []edit{
		{transitionGo, " || isDiverged(s, m, from) != \"\":", ":"},
	}},
	{guard: "isHistory: not before it is seen open", breaks: "I10", edits: []edit{
		{rememberGo, " && site.Sidecar.Answered && r.Epoch == s.Status.Epoch && r.Answered && r.Writable && !site.OtherVolume", " && r.Epoch <= s.Status.Epoch"},
	}},
	{guard: "isCovered: what the active site had too is the history", breaks: "I7", edits: []edit{
		{rememberGo, " && !isHistory(s, site) && !isCovered(s, site) {", " && !isHistory(s, site) {"},
	}},
	{guard: "isCovered: of this opening only", breaks: "I10", edits: []edit{
		{rememberGo, "if r.To != s.Status.ActiveSite || r.Epoch != s.Status.Epoch {", "if false {"},
	}},
	{guard: "isCovered: all that it has", breaks: "I10", edits: []edit{
		{rememberGo, "return err == nil && site.All().Subtract(had).IsEmpty()", "_ = had\n\treturn err == nil"},
	}},
	{guard: "isCovered: only what is known", breaks: "I10", edits: []edit{
		{rememberGo, "if s.Status.Transition != nil || len(s.Status.Records) == 0 || !site.SQLAnswers() || site.OtherVolume {", "if len(s.Status.Records) == 0 {"},
	}},
	{guard: "errantOf", breaks: "I10 live", edits: []edit{
		{rememberGo, "return previous.Subtract(active.MySQL.Executed), true", "_ = previous\n\treturn gtid.Set{}, true"},
	}},
	{guard: "errantOf: only against an open active site", breaks: "live I10", edits: []edit{
		{rememberGo, "case !active.SQLAnswers() || !active.Writable() || !had || !site.Provisioned:", "case !active.SQLAnswers() || !had || !site.Provisioned:"},
	}},
	{guard: "the lease of the pod that may still run", breaks: "I1 I2", directed: []string{"replaced volume and a shorter lease"}, edits: []edit{
		{rememberGo, "m.Lease[name] = max(old.Lease[name], site.Pod.Lease)", "m.Lease[name] = site.Pod.Lease"},
	}},
	{guard: "an acknowledgement of another volume", breaks: "I1 I2", directed: []string{"replaced volume that acknowledges"}, edits: []edit{
		{rememberGo, "if site.Sidecar.Answered && !site.OtherVolume {\n\t\t// Another", "if site.Sidecar.Answered {\n\t\t// Another"},
	}},
	{guard: "a pod on another volume is not confirmed", breaks: "I1 I2", directed: []string{"replaced volume whose pod ends", "replaced volume that acknowledges"}, edits: []edit{
		{rememberGo, "if site.Sidecar.Answered && !site.OtherVolume {\n\t\tm.Confirmed", "if site.Sidecar.Answered {\n\t\tm.Confirmed"},
	}, behind: []edit{
		{rememberGo, "if site.Writable() || site.OtherVolume {", "if site.Writable() {"},
	}},
	{guard: "a fence of one that was opened since proves nothing", breaks: "I1 I2", directed: []string{"active site that is cut off as it opens"}, edits: []edit{
		{rememberGo, "if site.Writable() || site.OtherVolume {", "if site.OtherVolume {"},
	}},
	{guard: "acknowledge: the bound of the vouches", breaks: "I1 I2", directed: []string{"lease answered by peers"}, edits: []edit{
		{rememberGo, "bound := at.Add(-r.VouchAge(other.Name))", "bound := at.Add(-time.Hour)"},
	}},
	{guard: "acknowledge: of this epoch only", breaks: "I1 I2", edits: []edit{
		{rememberGo, "was && ack.Epoch == r.Epoch && ack.PodUID", "was && ack.PodUID"},
	}},
	{guard: "acknowledge: fenced under its epoch", breaks: "I1 I2", directed: []string{"active site that is cut off as it opens"}, edits: []edit{
		{rememberGo, "Fenced: r.FencedUnder(r.Epoch)", "Fenced: true"},
	}},
	{guard: "silence is counted", breaks: "live", edits: []edit{
		{rememberGo, "m.SilentPolls[name] = old.SilentPolls[name] + 1", "m.SilentPolls[name] = 1"},
	}},
	{guard: "what a silent site held is kept", breaks: "G2 G3 I7", edits: []edit{
		{rememberGo, "m.Executed[name], m.UUID[name] = old.Executed[name], old.UUID[name]\n", ""},
	}},
}
