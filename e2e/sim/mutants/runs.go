// SPDX-License-Identifier: Apache-2.0

package main

const (
	runsGo     = "operator/failover/runs.go"
	forecastGo = "operator/failover/forecast.go"
	outlivedGo = "operator/failover/outlived.go"
)

// runRows: what one pod of a site says is no word of another that may still run.
var runRows = []row{
	{guard: "proof: no other run of the site", breaks: "I1 I2", directed: []string{"an active site deleted by force reports elsewhere"}, edits: []edit{
		{gateGo, "ack.Fenced && site.shutBut(ack.PodUID) {", "ack.Fenced {"},
	}},
	{guard: "proof by SQL: no other run of the site", breaks: "I1 I2", edits: []edit{
		{gateGo, " && site.shutBut(fence.PodUID)", ""},
	}},
	{guard: "proof: the pod that ended was the only run", breaks: "I1 I2", directed: []string{"a pod deleted by force whose successor ends"}, edits: []edit{
		{gateGo, "m.Confirmed[x] && site.shutBut(site.Pod.UID) {", "m.Confirmed[x] {"},
	}},
	{guard: "proof: no run but on nodes that are down", breaks: "I1 I2", edits: []edit{
		{gateGo, "site.Pod.OutOfService && site.shutBut(\"\")", "site.Pod.OutOfService"},
	}},
	{guard: "everySiteFenced: no other run of the site", breaks: "I1 I2", edits: []edit{
		{gateGo, "ack.Fenced && site.only(ack.PodUID) || site.gone()", "ack.Fenced || site.gone()"},
	}},
	{guard: "everySiteFenced: nor of the target", breaks: "I1 I2", edits: []edit{
		{gateGo, "Transition.To && site.shutBut(site.Pod.UID) || ack", "Transition.To || ack"},
	}},
	{guard: "lease: no other run of a voucher", breaks: "I1 I2", directed: []string{"a voucher deleted by force acknowledges elsewhere"}, edits: []edit{
		{gateGo, "ack.Epoch >= s.Status.Epoch && site.only(ack.PodUID):", "ack.Epoch >= s.Status.Epoch:"},
	}, behind: []edit{{forecastGo, " || !site.only(site.Pod.UID)", ""}}},
	{guard: "lease: what a run answered before it ended", breaks: "I4", edits: []edit{
		{gateGo, "last = later(last, m.Runs.EndedAt[site.Name])", "_ = m.Runs"},
	}},
	{guard: "gone: ended, and no other run", breaks: "I1 I2", edits: []edit{
		{snapshotGo, "s.Pod.Ended && s.only(s.Pod.UID)", "s.Pod.Ended"},
	}},
	{guard: "gone: down, and no other run", breaks: "I1 I2", edits: []edit{
		{snapshotGo, "s.Pod.OutOfService && s.only(\"\")", "s.Pod.OutOfService"},
	}},
	{guard: "acknowledge: of the pod", breaks: "I4", edits: []edit{
		{rememberGo, "ack.PodUID == fresh.PodUID && known", "known"},
	}},
	{guard: "reopened: no other run may be open", breaks: "I1", directed: []string{"an active site deleted by force that its peers reach", "an active site deleted by force reports elsewhere"}, edits: []edit{
		{decideGo, "if r, may := a.writesBeside(a.Pod.UID); may {", "if r, may := a.writesBeside(a.Pod.UID); may && false {"},
	}},
	{guard: "opening: no other run may be open", breaks: "I1", directed: []string{"an active site deleted by force while it is opened"}, edits: []edit{
		{transitionGo, "if r, may := target.writesBeside(target.Pod.UID); may {", "if r, may := target.writesBeside(target.Pod.UID); may && false {"},
	}},
	{guard: "anew: under no epoch that follows directly", breaks: "I1 I2", directed: []string{"an active site deleted by force that its peers reach"}, edits: []edit{
		{decideGo, "	d.Status.Epoch++\n", ""},
	}},
	{guard: "longestLease: of all runs", breaks: "I4", edits: []edit{
		{gateGo, "site.longestRun())", "0*site.longestRun())"},
	}},
	{guard: "rememberLease: of no other pod", breaks: "I4 I9", edits: []edit{
		{outlivedGo, "heard.After(s.Now) && site.shutBut(site.Pod.UID)", "heard.After(s.Now)"},
	}},
	{guard: "runs: of the same machine only", breaks: "I1 I2", directed: []string{"an active site deleted by force reports elsewhere"}, edits: []edit{
		{runsGo, " && h.Machine != \"\" && r.Machine == h.Machine && same", " && same"},
	}},
	{guard: "runs: on the same volume only", breaks: "I1 I2", edits: []edit{
		{runsGo, "r.Machine == h.Machine && same", "r.Machine == h.Machine && (same || !exists)"},
	}},
	{guard: "runs: what status says of an earlier leader's", breaks: "I9", directed: []string{"a voucher deleted by force, and an operator that restarts"}, edits: []edit{
		{runsGo, "all := slices.Clone(s.Status.Runs[site.Name])", "all := slices.Clone(s.Status.Runs[\"\"])"},
	}},
	{guard: "runs: that are not durable yet", breaks: "I9", edits: []edit{
		{runsGo, "for _, r := range old.Of[site.Name] {", "for _, r := range old.Of[\"\"] {"},
	}},
	{guard: "runs: a node that is Ready", breaks: "I1 I2", edits: []edit{
		{runsGo, "!known || !node.Ready && !node.Gone && !replaced", "!known || false && replaced"},
	}},
	{guard: "runs: for long enough", breaks: "I1 I2", edits: []edit{
		{runsGo, "return s.Now.Sub(since) >= RunsKept", "return s.Now.Sub(since) >= 0"},
	}},
	{guard: "runs: in an unbroken row of polls", breaks: "I1 I2", edits: []edit{
		{runsGo, "since := orNow(old.Quiet[r.key()], s.Now)", "since := orNow(old.Quiet[r.key()], time.Time{})"},
	}},
	{guard: "runs: closed, but those of the target", breaks: "I1", edits: []edit{
		{runsGo, "list[i].Closed = site != target.Name || list[i].UID != target.Pod.UID || list[i].Elsewhere", "list[i].Closed = target.Name != \"\""},
	}},
	{guard: "runs: who may be let open is not closed", breaks: "I1", edits: []edit{
		{runsGo, "r.Closed = false // it may be let open", "_ = s"},
	}},
	{guard: "runs: open again when status is of another time", breaks: "I1 I2", edits: []edit{
		{decideGo, "		known.open()\n", ""},
	}},
	{guard: "runs: durable before one is let open", breaks: "I9", edits: []edit{
		{runsGo, "return r.UID == uid && (!r.Closed || site != d.ActiveSite)", "return true"},
	}},
	{guard: "runs: a pod on another machine is another run", breaks: "I1 I2", edits: []edit{
		{runsGo, "r.Elsewhere, r.Idle = !exists && r.UID == site.Pod.UID, false", "r.Elsewhere, r.Idle = false, false"},
	}},
	{guard: "bounded: nobody is forgotten", breaks: "I9", edits: []edit{
		{runsGo, "	if len(all) <= runsMost {\n		return all\n	}\n", "	if len(all) > runsMost {\n		return all[:runsMost]\n	}\n"},
	}},
	{guard: "bounded: one alone says nothing of the others", breaks: "I9", edits: []edit{
		{runsGo, "			r.UID = several", "			_ = several"},
	}},
}
