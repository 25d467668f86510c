// SPDX-License-Identifier: Apache-2.0

package main

const orderGo = "operator/failover/order.go"

// orderRows: what only a person's order goes past, and what not even that does.
var orderRows = []row{
	{guard: "returned: without what it lacks only by order", breaks: "G2 I7 I12", edits: []edit{
		{decideGo, "if ordered(s) {\n\t\treturn reopened(", "if true {\n\t\treturn reopened("},
	}},
	{guard: "opening: without what it had only by order", breaks: "G2 I7 I12", edits: []edit{
		{transitionGo, "if ordered(s) { // it is this site", "if true { // it is this site"},
	}},
	{guard: "accepted: persisted, and held, before it is opened", breaks: "G1 G2", edits: []edit{
		{orderGo, "t.Kind, t.ToExecuted = v1alpha1.FailoverForced, target.MySQL.Executed", "t.Kind = v1alpha1.FailoverForced"},
	}},
	{guard: "everySiteFenced: only by order without every acknowledgement", breaks: "I1 I2", edits: []edit{
		{gateGo, "case forced(s) && !s.Now.Before(g.ReadyAt):", "case !s.Now.Before(g.ReadyAt):"},
	}},
	{guard: "everySiteFenced: by order too the leases are waited for", breaks: "I1 I2", edits: []edit{
		{gateGo, "case forced(s) && !s.Now.Before(g.ReadyAt):", "case forced(s):"},
	}},
	{guard: "isOutside: a site that is half cloned is not ordered", breaks: "I12 G2", edits: []edit{
		{candidateGo, "if !site.OtherVolume && !slices.ContainsFunc(s.Sites, func(other Site) bool { return other.Provisioned }) {", "if !site.OtherVolume {"},
	}},
	{guard: "isOutside: a site on another volume is not ordered", breaks: "I12 G2", edits: []edit{
		{candidateGo, "if !site.OtherVolume && !slices.ContainsFunc(", "if !slices.ContainsFunc("},
	}},
	{guard: "whole: a half cloned site is none", breaks: "I12 G2", edits: []edit{
		{candidateGo, " && !s.MySQL.HalfCloned && ", " && "},
	}},
	{guard: "whole: nothing is known of clones without the plugin", breaks: "I12 G2", edits: []edit{
		{candidateGo, " && !s.MySQL.NoClone", ""},
	}},
	{guard: "isHalfCloned: whatever its mark says", breaks: "I12 G2", edits: []edit{
		{candidateGo, "if site.Provisioned && site.MySQL.HalfCloned && !(", "if false && !("},
	}},
	{guard: "whole: an empty site is none", breaks: "I12 G2", edits: []edit{
		{candidateGo, " && !s.MySQL.Executed.IsEmpty()", ""},
	}},
	{guard: "whole: on the volume that status names", breaks: "I12 G2", edits: []edit{
		{candidateGo, "return s.Noted && s.MySQL.Direct", "return s.MySQL.Direct"},
	}},
	{guard: "status names the order that goes on", breaks: "live", edits: []edit{
		{orderGo, "if c.Site.Name != exclude && forcible(s, c.Site) {", "if c.Site.Name != exclude {"},
	}},
}
