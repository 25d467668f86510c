// SPDX-License-Identifier: Apache-2.0

package passwords

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"unicode"

	"github.com/mysql-mfg/mfg/api/v1alpha1"
)

// Decide says what to do next. It may be asked at any time, after any crash: what was begun follows from the Secret, and what the
// servers take from having tried.
func Decide(s State) Decision {
	if d, is := unknown(s); is {
		return d
	}
	if w, is := repair(s); is {
		return Decision{Effect: w}
	}
	if former := with(s.Entries, func(e Entry) bool { return e.Previous != "" }); len(former) > 0 {
		return change(s, former)
	}
	if coming := with(s.Entries, func(e Entry) bool { return e.Next != "" }); len(coming) > 0 {
		return introduce(s, coming)
	}
	return begin(s)
}

// unknown takes over a Secret without the operator's copies: one of an earlier version, or one that somebody has replaced. What it
// has becomes known only where the active site takes it; in a group that was never open there is nothing that could refuse it.
func unknown(s State) (Decision, bool) {
	lacking := with(s.Entries, func(e Entry) bool { return e.Known == "" })
	if len(lacking) == 0 {
		return Decision{}, false
	}
	if !s.Fresh {
		active, wait := activeSite(s)
		if active == nil {
			if wait.Reason == v1alpha1.ReasonActiveSiteNotOpen {
				return Decision{Wait: wait}, true
			}
			return Decision{Effect: Look{lacking}, Wait: wait}, true
		}
		if refused := refusing(*active, lacking, func(t Taken) bool { return t.Current }); len(refused) > 0 {
			return Decision{Effect: Look{lacking}, Wait: Wait{v1alpha1.ReasonPasswordRefused, fmt.Sprintf("%s refuses the password of %s that is in the Secret: "+
				"write the one there that was in it before", active.Name, strings.Join(refused, ", "))}}, true
		}
	}
	entries := maps.Clone(s.Entries)
	for _, name := range lacking {
		e := entries[name]
		e.Known = e.Current
		entries[name] = e
	}
	return Decision{Effect: Write{Entries: entries, Serial: s.Serial}}, true
}

// repair puts right what a person did to the Secret. A password that was edited is one to change to; it takes the same way as any
// other, and until it has come to its end everybody goes on with the one before.
func repair(s State) (Write, bool) {
	entries := maps.Clone(s.Entries)
	var notes []Note
	for _, name := range slices.Sorted(maps.Keys(entries)) {
		e := entries[name]
		switch {
		case e.Current == e.Known:
		case e.Current == "", e.Next != "", e.Previous != "":
			notes = append(notes, Note{EventUndone, name, "it was edited or removed while it is being replaced, or left empty"})
			e.Current = e.Known
		default:
			if why := unusable(e.Current); why == "" {
				e.Next = e.Current
				notes = append(notes, Note{EventEdited, name, "it was edited, and the servers are given the new one"})
			} else {
				notes = append(notes, Note{EventUnusable, name, why})
			}
			e.Current = e.Known
		}
		if e.Next == e.Known || e.Next == e.Previous {
			e.Next = ""
		}
		if why := unusable(e.Next); why != "" {
			notes = append(notes, Note{EventUnusable, name, why})
			e.Next = ""
		}
		if e.Previous == e.Known {
			e.Previous = ""
		}
		entries[name] = e
	}
	return Write{Entries: entries, Serial: s.Serial, Notes: notes}, !maps.Equal(entries, s.Entries)
}

// unusable says why a password cannot be one.
func unusable(password string) string {
	switch {
	case len(password) > maxLength:
		return fmt.Sprintf("it has more than %d characters, which replication does not take", maxLength)
	case strings.ContainsFunc(password, func(r rune) bool { return unicode.IsControl(r) || r > unicode.MaxASCII }):
		return "it holds a line break (look for echo without -n), or something else than printable ASCII"
	}
	return ""
}

// begin takes an order.
func begin(s State) Decision {
	if !s.HasOrder {
		return Decision{}
	}
	accounts, why := ParseOrder(s.Order)
	switch {
	case why != "":
		return Decision{Effect: Refuse{why}}
	case s.Fresh || !s.Open:
		return Decision{Wait: notOpen()}
	}
	return Decision{Effect: Generate{accounts, s.OrderID}, Accounts: accounts}
}

// introduce has every site take the next passwords beside those in use.
func introduce(s State, accounts []string) Decision {
	d := Decision{Phase: v1alpha1.PasswordsIntroducing, Accounts: accounts}
	active, wait := activeSite(s)
	if active == nil {
		return d.waits(accounts, wait)
	}
	secrets := map[string]Pair{}
	for _, name := range accounts {
		t, e := active.Taken[name], s.Entries[name]
		switch {
		case t.Next:
		case t.Current:
			secrets[name] = Pair{Stays: e.Current, Comes: e.Next}
		default:
			return d.waits(accounts, Wait{v1alpha1.ReasonPasswordRefused, fmt.Sprintf("%s refuses the password of %s that is in use: it was changed there by hand; "+
				"write the one that it takes as %s into the Secret", active.Name, name, name)})
		}
	}
	if len(secrets) > 0 {
		d.Effect = Introduce{Site: active.Name, Secrets: secrets}
		return d
	}
	for _, site := range s.Sites {
		if w := behind(site, accounts, func(t Taken) bool { return t.Next }); w.Reason != "" {
			return d.waits(accounts, w)
		}
	}
	// I21: only what every site takes becomes the password that everybody logs in with.
	entries := maps.Clone(s.Entries)
	for _, name := range accounts {
		e := entries[name]
		entries[name] = Entry{Current: e.Next, Known: e.Next, Previous: e.Known}
	}
	d.Effect = Write{Entries: entries, Serial: s.Serial + 1}
	return d
}

// change has everybody log in with the new passwords, and the former ones refused once everybody does.
func change(s State, accounts []string) Decision {
	d := Decision{Phase: v1alpha1.PasswordsSwitching, Accounts: accounts}
	active, wait := activeSite(s)
	if active == nil {
		return d.waits(accounts, wait)
	}
	secrets := map[string]Pair{}
	for _, name := range accounts {
		t, e := active.Taken[name], s.Entries[name]
		switch {
		case t.Current:
		case t.Previous: // another site became active, which had lost it
			secrets[name] = Pair{Stays: e.Previous, Comes: e.Current}
		default:
			return d.waits(accounts, Wait{v1alpha1.ReasonPasswordRefused, fmt.Sprintf("%s refuses both passwords of %s: it was changed there by hand", active.Name, name)})
		}
	}
	if len(secrets) > 0 {
		d.Effect = Introduce{Site: active.Name, Secrets: secrets}
		return d
	}
	retired := len(refusing(*active, accounts, func(t Taken) bool { return !t.Previous })) == 0
	for _, site := range s.Sites {
		if w := behind(site, accounts, func(t Taken) bool { return t.Current && (!retired || !t.Previous) }); w.Reason != "" {
			return d.waits(accounts, w)
		}
	}
	if retired {
		return finish(s, d)
	}
	if w := stillUsed(s, accounts); w.Reason != "" {
		return d.waits(accounts, w)
	}
	d.Effect = Retire{Site: active.Name, Accounts: accounts}
	return d
}

// stillUsed says who may log in with a former password yet (I21). Nobody else does: what the operator and the plugin read, they read
// again.
func stillUsed(s State, accounts []string) Wait {
	for _, site := range s.Sites {
		switch {
		case slices.Contains(accounts, v1alpha1.AccountSidecar) && site.Serial < s.Serial:
			return Wait{v1alpha1.ReasonSidecarBehind, fmt.Sprintf("the sidecar of %s has not logged in with the new password yet: the kubelet hands it over within a "+
				"minute or two; a pod of an earlier version has to be replaced first", site.Name)}
		case slices.Contains(accounts, v1alpha1.AccountReplication) && !site.Active && site.Receives < s.Serial:
			return Wait{v1alpha1.ReasonReceiverBehind, fmt.Sprintf("the receiver of %s has not been given the new password yet", site.Name)}
		}
	}
	if !s.Settled {
		return Wait{v1alpha1.ReasonSettling, "what was read of the Secret before may be in use for some seconds yet"}
	}
	return Wait{}
}

// finish ends a rotation. An order that is not done with it is left for the next look, and gets a rotation of its own.
func finish(s State, d Decision) Decision {
	entries := maps.Clone(s.Entries)
	for _, name := range d.Accounts {
		e := entries[name]
		e.Previous = ""
		entries[name] = e
	}
	d.Effect = Finish{Accounts: d.Accounts, Entries: entries, Answered: isDone(s, d.Accounts)}
	return d
}

// isDone is true if the order that stands was carried out: the passwords that have come were made for it, and for all its accounts.
// What a person wrote, or another order brought, may be the very password that this order is to end.
func isDone(s State, accounts []string) bool {
	if s.MadeFor == "" || s.MadeFor != s.OrderID {
		return false
	}
	ordered, why := ParseOrder(s.Order)
	return why == "" && !slices.ContainsFunc(ordered, func(name string) bool { return !slices.Contains(accounts, name) })
}

// waits looks again, unless nothing can come of it.
func (d Decision) waits(accounts []string, w Wait) Decision {
	d.Wait = w
	if w.Reason != v1alpha1.ReasonActiveSiteNotOpen {
		d.Effect = Look{accounts}
	}
	return d
}

// behind says why a site is not there yet, whether it is ready or not.
func behind(site Site, accounts []string, has func(Taken) bool) Wait {
	switch {
	case site.Busy || !site.Provisioned:
		return Wait{v1alpha1.ReasonSiteBusy, site.Name + " is being given the group's data, or new keys"}
	case !site.Looked && site.Trouble != "":
		return Wait{v1alpha1.ReasonSiteUnreachable, fmt.Sprintf("%s cannot be asked (%s); both passwords stay valid until it can", site.Name, site.Trouble)}
	case !site.Looked:
		return Wait{v1alpha1.ReasonLooking, site.Name + " is being asked"}
	case len(refusing(site, accounts, has)) > 0:
		return Wait{v1alpha1.ReasonSiteBehind, site.Name + " has not replicated the change yet"}
	}
	return Wait{}
}

func refusing(site Site, accounts []string, has func(Taken) bool) []string {
	return slices.DeleteFunc(slices.Clone(accounts), func(name string) bool { return has(site.Taken[name]) })
}

// activeSite is the open active site, if it was asked.
func activeSite(s State) (*Site, Wait) {
	if !s.Open {
		return nil, notOpen()
	}
	for i, site := range s.Sites {
		switch {
		case !site.Active:
		case site.Looked:
			return &s.Sites[i], Wait{}
		case site.Trouble != "":
			return nil, Wait{v1alpha1.ReasonSiteUnreachable, fmt.Sprintf("%s cannot be asked (%s)", site.Name, site.Trouble)}
		default:
			return nil, Wait{v1alpha1.ReasonLooking, site.Name + " is being asked"}
		}
	}
	return nil, notOpen()
}

func notOpen() Wait {
	return Wait{v1alpha1.ReasonActiveSiteNotOpen, "no site is open for writes, or the role is moving"}
}
