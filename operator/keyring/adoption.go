// SPDX-License-Identifier: Apache-2.0

package keyring

import (
	"fmt"

	"github.com/mysql-mfg/mfg/api/v1alpha1"
)

// mayAdopt is true for a site whose adoption has not begun yet. It is false for a site that was made with a keyring: the
// annotation stays on the group, and a fresh keyring cannot read what that one wrote (I14).
func mayAdopt(g Group, s Site) bool {
	return g.Adopt && s.Status.Phase == none && s.Provisioned && !s.Rendered.Keyring && (s.plain() || len(s.Versions) == 0)
}

// holdsPlain is true for a new site whose pod refuses to start: its volume holds data in the clear, and the pod has changed nothing there.
func holdsPlain(s Site) bool {
	return written(s.Status) && s.Status.Work == v1alpha1.KeyringBootstrap && s.Pod.Plain && s.Pod.Round == s.Status.Round
}

// isPlainAccepted: a person must accept that a site is encrypted in part, on volumes that stayed as well as in a group that serves.
// Until then it is no site's turn.
func isPlainAccepted(g Group, s Site) bool {
	return holdsPlain(s) && adoptionWaits(g) == "" && adoptedNext(g) == s.Name
}

func acceptPlain(_ Group, n *Next) {
	n.say(EventAdopted, fmt.Sprintf("Site %s is encrypted from now on; tables that exist stay in the clear until they are rebuilt", n.Name))
	n.unseal(v1alpha1.KeyringBootstrap, Version{})
	n.Status.PlainAccepted = true
}

// adoptionWaits says why no site may be adopted now; empty if the next one may. A site whose keyring is not in escrow is no
// candidate (I16), and its copy is lost if its pod is. So there is one such site at a time: if keyrings do not come into escrow,
// whatever the reason, the other sites are unchanged.
func adoptionWaits(g Group) string {
	if g.EscrowTrouble != "" {
		return "the escrow endpoint cannot be used: " + g.EscrowTrouble
	}
	for _, s := range g.Sites {
		if holdsPlain(s) {
			continue // it has no keys yet
		}
		if p := s.Status.Phase; p == pending || p == unsealed || p == failed {
			return fmt.Sprintf("the keyring of site %s is to come into escrow first", s.Name)
		}
	}
	return ""
}

// adoptedNext is the site whose turn it is. A site that is never promoted comes first: it is not missed while its keyring is not in
// escrow. The active one comes last, because tables that it makes encrypted cannot be applied in the clear.
func adoptedNext(g Group) string {
	next, best := "", 0
	for _, s := range g.Sites {
		rank := 2
		switch {
		case !mayAdopt(g, s) && !(g.Adopt && holdsPlain(s)):
			continue
		case s.Active:
			rank = 1
		case s.Passive:
			rank = 3
		}
		if rank > best {
			next, best = s.Name, rank
		}
	}
	return next
}

// AdoptsNext is true if the next decision begins to adopt a site: before that, the caller must find out whether keyrings would come into escrow.
func AdoptsNext(g Group) bool { return adoptedNext(g) != "" && adoptionWaits(g) == "" }

// plainWaits says what a site with data in the clear on its volume waits for.
func plainWaits(g Group) string {
	const plain = "its volume holds data in the clear, of which nothing was changed"
	switch why := adoptionWaits(g); {
	case !g.Adopt:
		return fmt.Sprintf("%s: accept that it is encrypted in part with the annotation %s=confirm, or make the group again without spec.encryptionAtRest",
			plain, v1alpha1.AnnotationEncryptionAdopt)
	case why != "":
		return plain + " yet: " + why
	}
	return plain + " yet: site " + adoptedNext(g) + " comes first"
}

// stillPlain says what a site that serves without encryption waits for.
func stillPlain(g Group, s Site) string {
	const plain = "the site is not encrypted"
	if !mayAdopt(g, s) {
		return plain
	}
	if why := adoptionWaits(g); why != "" {
		return plain + " yet: " + why
	}
	if next := adoptedNext(g); next != s.Name {
		return fmt.Sprintf("%s yet: site %s is adopted first", plain, next)
	}
	return plain + " yet"
}
