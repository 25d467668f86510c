// SPDX-License-Identifier: Apache-2.0

package main

// authorityRows is every guard of what the operator says of who may write.
var authorityRows = concat(cuts("operator/authority/authority.go", []cut{
	{"Set: never back to a lower epoch", "I2", "if s.Epoch < a.now.Epoch {", "if false {"},
	{"Set: nobody opens on what the loop does not stand by", "I3 I12", "\t\ta.now.Hold = true\n\t\treturn\n", "\t\treturn\n"},
	{"Set: what was answered under an older epoch is kept", "I4", "if at.After(a.below[site]) {\n\t\t\t\ta.below[site] = at", "if false {\n\t\t\t\ta.below[site] = at"},
	{"Set: the last of them", "I4", "if at.After(a.below[site]) {\n\t\t\t\ta.below[site] = at", "if true {\n\t\t\t\ta.below[site] = at"},
	{"Set: a new epoch, nobody was answered", "live", "\t\ta.last = map[string]time.Time{}\n\t}\n\ta.now", "\t}\n\ta.now"},
	{"Set: only a new epoch", "I4", "if s.Epoch > a.now.Epoch {", "if true {"},
	{"Set: answers are of the epoch before", "I4", "if s.Epoch > a.now.Epoch {", "if false {"},
	{"SetSigner: what was signed with another key is not pushed", "live", "a.signer, a.pushed = signer, pushed{}", "a.signer = signer"},
	{"Answer: nobody is answered without a key", "live", "if a.signer == nil || a.now.Epoch == 0 {\n\t\treturn \"\", wire.ErrNoStatement\n\t}\n\tif nonce", "if a.now.Epoch == 0 {\n\t\treturn \"\", wire.ErrNoStatement\n\t}\n\tif nonce"},
	{"Answer: nobody is answered before the first epoch", "I3", "if a.signer == nil || a.now.Epoch == 0 {\n\t\treturn \"\", wire.ErrNoStatement\n\t}\n\tif nonce", "if a.signer == nil {\n\t\treturn \"\", wire.ErrNoStatement\n\t}\n\tif nonce"},
	{"Answer: a curious person delays no failover", "live", "if nonce == \"\" {\n\t\treturn a.signLocked(nonce, now)", "if false {\n\t\treturn a.signLocked(nonce, now)"},
	{"Answer: a stranger counts for all", "I4", "if !a.sites[site] {\n\t\tsite = \"\"", "if false {\n\t\tsite = \"\""},
	{"Answer: is remembered", "I4", "\ta.last[site] = now\n", "\n"},
	{"Answer: an old word permits nobody", "I3", "q.Pod != a.pods[q.Site]; stale || stranger {", "q.Pod != a.pods[q.Site]; stale && false || stranger {"},
	{"Answer: a pod that was not looked at", "I1 I12", "q.Pod != a.pods[q.Site]; stale || stranger {", "q.Pod != a.pods[q.Site]; stale || stranger && false {"},
	{"Answer: one that does not say which it is", "live", "q.Pod != \"\" && q.Pod != a.pods[q.Site];", "q.Pod != a.pods[q.Site];"},
	{"Answer: on its own nonce", "I3", "s.Hold, s.Nonce, s.IssuedAt = true, nonce, now.UTC()", "s.Hold, s.IssuedAt = true, now.UTC()"},
	{"Answer: a permission is remembered", "I4", "a.permitted[a.now.ActiveSite] = now\n", "_ = a.permitted\n"},
	{"Answer: a hold is no permission", "live", "if !a.now.Hold && (site == a.now.ActiveSite || site == \"\") {", "if (site == a.now.ActiveSite || site == \"\") {"},
	{"Answer: nor what another site is told", "live", "if !a.now.Hold && (site == a.now.ActiveSite || site == \"\") {", "if !a.now.Hold {"},
	{"Answer: a stranger may be the active site", "I4", "(site == a.now.ActiveSite || site == \"\") {", "(site == a.now.ActiveSite) {"},
	{"Sign: nothing is pushed without a key", "live", "if a.signer == nil || a.now.Epoch == 0 {\n\t\treturn \"\", wire.ErrNoStatement\n\t}\n\tif age", "if a.now.Epoch == 0 {\n\t\treturn \"\", wire.ErrNoStatement\n\t}\n\tif age"},
	{"Sign: nothing is pushed before the first epoch", "I3", "if a.signer == nil || a.now.Epoch == 0 {\n\t\treturn \"\", wire.ErrNoStatement\n\t}\n\tif age", "if a.signer == nil {\n\t\treturn \"\", wire.ErrNoStatement\n\t}\n\tif age"},
	{"Sign: not from the future", "order", "age >= 0 && age < pushFor && reflect", "age < pushFor && reflect"},
	{"Sign: not for ever", "order", "age >= 0 && age < pushFor && reflect", "age >= 0 && reflect"},
	{"Sign: only while it is so", "I2 I3", "age < pushFor && reflect.DeepEqual(a.pushed.of, a.now) {", "age < pushFor {"},
	{"signLocked: on its own nonce", "I3 live", "s.Nonce, s.IssuedAt = nonce, now.UTC()\n\treturn a.signer(s)\n}\n\n// Answered", "s.IssuedAt = now.UTC()\n\t_ = nonce\n\treturn a.signer(s)\n}\n\n// Answered"},
	{"Answered: who does not say its name counts for all", "I4", "anyone.After(below[site]) {", "false && anyone.IsZero() {"},
	{"Answered: the last of both", "I4", "if anyone := a.below[\"\"]; anyone.After(below[site]) {", "if anyone := a.below[\"\"]; !anyone.IsZero() {"},
}), cuts("operator/authority/pulse.go", []cut{
	{"Beat: a process that was frozen", "I4", "if !p.last.IsZero() && now.Sub(p.last) > frozenAfter {\n\t\tp.thawed", "if false {\n\t\tp.thawed"},
	{"Beat: the first beat is none", "live", "if !p.last.IsZero() && now.Sub(p.last) > frozenAfter {\n\t\tp.thawed", "if now.Sub(p.last) > frozenAfter {\n\t\tp.thawed"},
	{"Beat: a short break is none", "live", "if !p.last.IsZero() && now.Sub(p.last) > frozenAfter {\n\t\tp.thawed", "if !p.last.IsZero() {\n\t\tp.thawed"},
	{"ThawedAt: the heart has not beaten yet", "I4", "if !p.last.IsZero() && now.Sub(p.last) > frozenAfter {\n\t\treturn", "if false {\n\t\treturn"},
	{"ThawedAt: the first beat is none", "live", "if !p.last.IsZero() && now.Sub(p.last) > frozenAfter {\n\t\treturn", "if now.Sub(p.last) > frozenAfter {\n\t\treturn"},
	{"Steady: the heart beats", "I4", "return now.Sub(p.last) <= frozenAfter && now", "return now"},
	{"Steady: for a while", "I4", "frozenAfter && now.Sub(p.thawed) > thawing", "frozenAfter"},
}))
