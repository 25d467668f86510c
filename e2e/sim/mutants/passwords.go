// SPDX-License-Identifier: Apache-2.0

package main

var passwordRows = cuts("operator/passwords/decide.go", []cut{
	{"introduce: not used before every site takes it", "I21", "func(t Taken) bool { return t.Next }); w.Reason != \"\" {", "func(t Taken) bool { return t.Next }); false && w.Reason != \"\" {"},
	{"change: not refused before every site takes the new one", "I21", "return t.Current && (!retired || !t.Previous) }); w.Reason != \"\" {",
		"return t.Current && (!retired || !t.Previous) }); false && w.Reason != \"\" {"},
	{"change: what a failover lost is done again", "I21", "case t.Previous: // another", "case false && t.Previous: // another"},
	{"stillUsed: a sidecar has the former one", "I21", "site.Serial < s.Serial:", "site.Serial < 0:"},
	{"stillUsed: a receiver has the former one", "I21", "!site.Active && site.Receives < s.Serial:", "!site.Active && site.Receives < 0:"},
	{"stillUsed: somebody may remember it", "I21", "if !s.Settled {", "if false {"},
	{"activeSite: not while the role moves", "I21", "if !s.Open {\n\t\treturn nil, notOpen()", "if false {\n\t\treturn nil, notOpen()"},
	{"behind: a site that is cloned", "I21", "case site.Busy || !site.Provisioned:", "case false:"},
	{"behind: a site that cannot be asked", "I21", "case !site.Looked && site.Trouble != \"\":", "case false:"},
	{"behind: a site that was not asked", "I21", "case !site.Looked:\n\t\treturn Wait{ReasonLooking, site.Name + \" is being asked\"}\n\tcase len", "case false:\n\t\treturn Wait{ReasonLooking, site.Name + \" is being asked\"}\n\tcase len"},
	{"repair: an edit at a bad time", "I21", "case e.Current == \"\", e.Next != \"\", e.Previous != \"\":", "case e.Current == \"\":"},
	{"repair: an edit is one to change to", "I21", "e.Next = e.Current", "e.Next = \"\""},
	{"repair: what no server takes", "I21", "if why := unusable(e.Current); why == \"\" {", "if why := unusable(e.Current); why == \"\" || true {"},
})
