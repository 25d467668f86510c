// SPDX-License-Identifier: Apache-2.0

package apppassword

import "fmt"

// seen is what the Secret and the servers say.
type seen struct {
	// HasNext is true if the Secret has a password under the key next-password.
	HasNext bool
	// Exists, Retained and Open are about the active site: whether it has the account, whether that has an older password beside its
	// primary one, and whether the site accepts changes.
	Exists, Retained, Open bool
	// Current and Next say whether the active site lets the account in with the Secret's password, and with its next one.
	Current, Next bool
	// Behind says of the other sites why they do not let the account in with the next password; it is empty once all of them do.
	Behind []string
}

// step is what to do next.
type step int

const (
	refuse step = iota
	// prepare writes a password into the Secret under the key next-password.
	prepare
	// introduce gives it to the account, which keeps its present one.
	introduce
	// await waits for the other sites.
	await
	// publish makes it the Secret's password.
	publish
	// discard makes the account accept only the Secret's password.
	discard
	done
)

// why says in words why something is refused, and what to do; the group's command line completes the words.
type why string

const (
	whyNoAccount   why = "the active site has no such account\n  make it as the condition ApplicationReady says: kubectl get mfg %[1]s -n %[2]s -o yaml"
	whyNotOpen     why = "the active site takes no changes at the moment\n  see why: kubectl mfg status %[1]s -n %[2]s"
	whyRetained    why = "the account still has its password from before the last replacement, and an application may log in with it: MySQL keeps two at most\n  end it once all applications have the one in the Secret: kubectl mfg app-password retire %[1]s -n %[2]s"
	whyNotCurrent  why = "the active site does not let the account in with the password in the Secret, so the one that works would be ended\n  write that one into the Secret, or give the account the Secret's: kubectl mfg mysql %[1]s -n %[2]s"
	whyNotFinished why = "a replacement is not finished: applications do not have its password yet\n  finish it first: kubectl mfg app-password rotate %[1]s -n %[2]s"
)

func (w why) of(group, namespace string) string { return fmt.Sprintf(string(w), group, namespace) }

// rotation says what a replacement does next. It may be called again after any crash: the next password is in the Secret before any server has
// it, so that it is never lost, and no application gets it before every site accepts it.
func rotation(s seen) (step, why) {
	switch {
	case !s.Exists:
		return refuse, whyNoAccount
	case s.HasNext && s.Next && len(s.Behind) > 0:
		return await, ""
	case s.HasNext && s.Next:
		return publish, ""
	case s.Retained:
		// A third password would end the first, which applications may still use.
		return refuse, whyRetained
	case !s.Current:
		// The account's present password would become its older one, and the Secret's would let no one in.
		return refuse, whyNotCurrent
	case !s.Open:
		return refuse, whyNotOpen
	case !s.HasNext:
		return prepare, ""
	}
	return introduce, ""
}

// retirement says what the end of the older password does next. After it the account has only the Secret's password.
func retirement(s seen) (step, why) {
	switch {
	case !s.Exists:
		return refuse, whyNoAccount
	case s.HasNext && s.Next:
		// Applications have the older one of the two.
		return refuse, whyNotFinished
	case !s.Current:
		return refuse, whyNotCurrent
	case !s.Retained:
		return done, ""
	case !s.Open:
		return refuse, whyNotOpen
	}
	return discard, ""
}
