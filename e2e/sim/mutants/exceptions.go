// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"slices"
)

// exception is a mutant that nobody can miss, with the reason. It names its condition by what is written there and not by its
// line; one that fits nothing any more is an error.
type exception struct {
	folder, function, text string
	// change is what is excepted; empty is all that can be done to the condition.
	change change
	reason string
}

func (e exception) fits(p point, c change) bool {
	return e.folder == p.folder && e.function == p.function && e.text == p.text && (e.change == "" || e.change == c)
}

// exceptions is as short as it can be: a condition that changes nothing is better taken away. These stay because what they say is read
// before what makes them say nothing.
var exceptions = []exception{
	{failover, "Decide", "err != nil", deny,
		"no decision of the package breaks its own rules (TestDecisionsNeverBreakTheirOwnRules): the branch is for a mistake that is not there"},
	{failover, "Decide", "behind (2)", force, "behindTheSites names a writer only where it is behind"},
	{failover, "Decide", `last != ""`, force, "nobody asks for the time of a site without a name"},
	{failover, "evidence", "gate.ProofOrder", "", exhaustive},
	{failover, "change.awaitTarget", "TargetReady", "", exhaustive},
	{explain, "explained.target", "failover.TargetReady", "", exhaustive},
	{memory, "OutlivedAndSilent", "known", force, noSite + ", and has no pod that could have ended"},
	{lineage, "successorHad", "err != nil", deny, "what cannot be parsed is the empty set"},
	{promotion, "IsNumberingAgain", "err != nil", deny, "what cannot be parsed is the empty set"},
	{failover, "keptFirst", "site.KeptFenced", force, "it is asked only where no site may be the first, so one that is not kept fenced may not either"},
	{failover, "waiting", `why.Reason != ""`, force, "no reason is no passing one"},
	{lineage, "ErrantOf", `active.Name == ""`, deny, noSite + ", which the third case asks"},
	{lineage, "ErrantOf", "!active.SQLAnswers()", deny, "whose MySQL does not answer is not writable, which is asked beside it"},
	{failover, "returnedWhole", "!known", deny, noSite + ", which the second case asks"},
	{lineage, "SettleLoss", "!known", deny, noSite + ", which is asked beside it"},
	{lineage, "SettleLoss", "from.OtherVolume (2)", deny, "its record was marked before, and sameServer, which is asked beside it, is false of those"},
	{views, "UnwritableOf", "!known", deny, noSite + ", which is asked beside it"},
	{explain, "explained.taker", "known", force, noSite + ", which is asked beside it"},
	{views, "Lately", "!at.IsZero()", force, "the time zero is long ago"},
	{views, "Unheard", "since.IsZero()", deny, "the time zero is long ago, which is asked beside it"},
	{views, "remarked", `reason != ""`, force, "a healthy site has no reason and no message before"},
	{"operator/claims", "Decide", `holder != ""`, force, "without a Lease and without a claim the group is operated by the last case too"},
	{"operator/render", "jsonText", "err != nil", deny, "strings and booleans are always encoded"},
	{wire, "Sign", "err != nil", deny, encodes},
	{wire, "Sign", "err != nil (2)", deny, signs},
	{wire, "Sign", "err != nil (3)", deny, signs},
	{wire, "VerifyBy", "!trusted", deny, "without trust there is no key, and by none the library verifies nothing, with the same error"},
	{wire, "VerifyBy", "err != nil (4)", deny, "what cannot be decoded has no epoch, and is refused for that with the same error"},
	{wire, "OpenReport", "err != nil (3)", deny, "what cannot be decoded answers no challenge, which is asked next"},
	{wire, "SignReport", "err != nil", deny, encodes},
	{wire, "SignReport", "err != nil (2)", deny, encodes},
	{wire, "SignReport", "err != nil (3)", deny, signs},
	{wire, "SignReport", "err != nil (4)", deny, signs},
	{"internal/archive", "Archive.putSmall", "err != nil", deny, encodes},
	{"internal/archive", "Archive.Sweep", `!strings.HasPrefix(key, binlogsFolder+"/")`, deny, "find takes data of that folder only"},
	{"internal/archive", "Archive.present", "wasRemoved", "", exhaustive},
	{"internal/archive", "startOf", "e.Known", force, "an epoch without an object is Unknown, which is asked beside it"},
	{"internal/archive", "planner.checkGTID", "err != nil", deny, "what cannot be parsed is the empty set, and no one transaction"},
	{"internal/archive", "planner.route", "i < 0", force, "then the next file is later than the time too, which is asked next"},
	{"internal/archive", "segment.Read", "s.whole != nil && errors.Is(err, io.EOF)", deny,
		"a sealed log that ends before the segment has another length than its manifest says, and is Damaged, or is not moved to"},
	{"internal/archive", "segment.move", "m.From = 0", drop, "the key of a sealed log does not tell where it begins"},
	{"internal/bucket", "Writer.Commit", "err != nil (2)", deny, encodes},
	{cacheLoop, "loop.patch", "err != nil", deny, encodes},
	{cacheLoop, "loop.route", "err != nil", deny, encodes},
	{cacheLoop, "loop.mark", "err != nil", deny, encodes},
	{cacheLoop, "loop.apply", "err != nil", deny, encodes},
	{"operator/request", "Writer.annotate", "err != nil", deny, "a struct of strings is always encoded"},
	{"sidecar/watchdog", "read", "err != nil", deny, clock},
	{"sidecar", "runOnce", "err != nil", deny, clock},
	{"sidecar", "overdue", "err != nil", deny, clock},
	{"operator/monitor", "loop.apply", "err != nil", deny, encodes},
	{"operator/encryption", "Encryption.inPodAlone", "site.Pod.Current", force, "PodOf says only of the pod that the Deployment asks for that it never began"},
	{"operator/encryption", "Encryption.RemovalWaits", "err != nil", deny, "a look that fails finds nothing, which is asked beside it, and the error is returned then too"},
	{backup, "Expired", "r.Count <= 0 && r.MaxAge <= 0", deny, "without a MaxAge none is younger than that, which is asked next"},
	{backup, "Expired", "r.MaxAge > 0", force, "none of the past is younger than no time"},
	{"operator/campaign", "Group.atHand", "is", force, "a site that is not there does not rotate"},
	{failover, "orderedAway", "!known", deny, "an order goes to a site that can be promoted (WithOrder), so without one to no other, which is asked beside it"},
	{"operator/pitr", "heldBy", "err == nil", force, "what cannot be parsed is the empty set, which is asked beside it"},
	{"operator/pitr", "Retained", "out.Executed = gtid.Set{}", drop, "a set that is not known is empty, and so is what it has in common with others"},
	{"operator/cache", "instead", "t.Method = v1alpha1.CacheByPromotion", drop, "the first look at the move finds the old master silent, and promotes for that reason"},
	{"operator/escrow", "Store.unused", "status.SeedVersion > 0", force, "no version that is listed has the number 0, which is asked beside it"},
	{"operator/secure", "refuses", "v1alpha1.PlainAllow", "", exhaustive},
	{"operator/certs", "State.Carry", "Nothing", "", "it is refused as what is no step at all is"},
	{"operator/certs", "State.newAuthority", "err != nil (2)", deny, makesKeys},
	{"operator/certs", "State.issue", "err != nil (2)", deny, "crypto/x509 makes no certificate without a serial number either"},
	{"operator/certs", "State.issue", "err != nil (3)", deny, makesKeys},
	{"operator/certs", "State.issue", "err != nil (4)", deny, signsOwn},
	{"operator/certs", "sign", "err != nil", deny, signsOwn},
	{"operator/certs", "sign", "err != nil (2)", deny, "a key of a curve that is known is always encoded"},
}

const (
	failover  = "operator/failover"
	lineage   = "operator/lineage"
	memory    = "operator/memory"
	promotion = "operator/promotion"
	views     = "operator/views"
	explain   = "operator/explain"
	backup    = "operator/backup"
	wire      = "api/wire"
	cacheLoop = "operator/cache/loop"
	encodes   = "a struct of strings, numbers and times in this century is always encoded"
	clock     = "Linux has the clock; a supervisor without one must not guess"
	makesKeys = "since Go 1.26 crypto/ecdsa takes its own randomness, and ends the process if there is none"
	signsOwn  = "an authority that was read signs what this package makes, with randomness that cannot fail"
	signs     = "the library signs with every key of the right length"
	noSite    = "a site that is not there does not answer"
	// exhaustive is for the case of a switch that does nothing.
	exhaustive = "the last value, for which nothing is done in the switch: the linter of that name has whoever adds a value think of this place"
)

// within are the exceptions in some packages.
func within(all []exception, read []core) []exception {
	return slices.DeleteFunc(slices.Clone(all), func(e exception) bool {
		return !slices.ContainsFunc(read, func(c core) bool { return c.folder == e.folder })
	})
}

// stale are the exceptions that fit no mutant, or give no reason.
func stale(exceptions []exception, points []point) []error {
	var out []error
	for _, e := range exceptions {
		fits := 0
		for _, p := range points {
			for _, c := range p.changes {
				if e.fits(p, c) {
					fits++
				}
			}
		}
		if fits == 0 || e.reason == "" {
			out = append(out, fmt.Errorf("exception %s %s: %q (%s) fits %d mutants; its reason is %q", e.folder, e.function, e.text, e.change, fits, e.reason))
		}
	}
	return out
}

// reasonFor is why a mutant is not hunted, or "".
func reasonFor(p point, c change) string {
	for _, e := range exceptions {
		if e.fits(p, c) {
			return e.reason
		}
	}
	return ""
}
