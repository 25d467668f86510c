// SPDX-License-Identifier: Apache-2.0

package main

// outlivedRows is every guard around sites that nobody fences.
var outlivedRows = concat(cuts("operator/failover/outlived.go", []cut{
	{"rememberLease: a site that is seen to accept writes", "I4", "if site.Writable() {\n\t\t// The look", "if false {\n\t\t// The look"},
	{"rememberLease: what was seen before", "I4", "m.WritableAt[name] = old.WritableAt[name]\n", ""},
	{"rememberLease: who closes in time is not called late", "live", "s.Now.Add(-AskTimeout)", "s.Now"},
	{"rememberLease: what its sidecar said before", "live", "heard := old.HeardUntil[name]", "heard := time.Time{}"},
	{"rememberLease: what its sidecar says", "live", "if told := leaseTold(s, site, longest); told > 0 {", "if told := leaseTold(s, site, longest); false && told > 0 {"},
	{"rememberLease: what this operator answered", "live", "later(s.Renewed[name], s.LeaderSince).Add(longest)", "s.LeaderSince.Add(longest)"},
	{"rememberLease: what an earlier leader answered", "live", "later(s.Renewed[name], s.LeaderSince).Add(longest)", "s.Renewed[name].Add(longest)"},
	{"rememberLease: is found out", "I4", "case m.WritableAt[name].After(until.Add(LeaseMargin)):", "case until.IsZero() && false:"},
	{"rememberLease: a new leader takes nothing back", "I9", "case heard.After(s.Now) &&", "case until.After(s.Now) &&"},
	{"rememberLease: is remembered while it is not durable", "I9", "case old.Outlived[name] || slices", "case slices"},
	{"rememberLease: what an earlier leader noted", "I9", "old.Outlived[name] || slices.Contains(s.Status.Outlived, name)", "old.Outlived[name]"},
	{"leaseTold: only the sidecar of the volume that counts", "I12", "site.Sidecar.Deaf) || site.OtherVolume", "site.Sidecar.Deaf)"},
	{"leaseTold: one that takes no statement has a lease too", "live", "!(site.Sidecar.Answered || site.Sidecar.Deaf)", "!site.Sidecar.Answered"},
	{"leaseTold: one of an older version", "live", "case told == nil:\n\t\treturn longest", "case told == nil:\n\t\treturn 0"},
	{"leaseTold: one without a lease", "I4", "case *told <= 0:\n\t\treturn 0", "case *told <= 0:\n\t\treturn longest"},
	{"outlived: what was noted", "I4", "if !m.Outlived[x] && !m.WritableAt", "if !m.WritableAt"},
	{"outlived: what was seen since", "I4", "if !m.Outlived[x] && !m.WritableAt[x].After(leaseEnd) {", "if !m.Outlived[x] {"},
	{"noteOutlived: is durable", "I9", "d.Persist = true", "d.Persist = d.Persist || false"},
}), cuts(gateGo, []cut{
	{"lease: a site that outlived it", "I4", "len(g.Blockers) == 0 && g.Outlived == \"\":", "len(g.Blockers) == 0:"},
	{"lease: what its sidecar said of it", "live", "later(g.ReadyAt, m.HeardUntil[x].Add(LeaseMargin))", "g.ReadyAt"},
}), cuts(decideGo, []cut{
	{"due: nothing is begun that time could not end", "G1", "why == ReasonActiveSiteSilent && never != \"\" {", "false && never != \"\" {"},
}))
