// SPDX-License-Identifier: Apache-2.0

package keyring

import (
	"fmt"

	"github.com/mysql-mfg/mfg/api/v1alpha1"
)

func isMissing(_ Group, s Site) bool {
	st := s.Status
	if _, have := s.current(); have {
		return false
	}
	if st.Work == v1alpha1.KeyringClone && st.Phase == pending && s.Clone == CloneConfirmed {
		return false // the clone replaces the data that this keyring reads, and a person confirmed it
	}
	return true
}

// EscrowIsGone is true for a site that is sealed, or about to be, and whose escrow Secret is gone or changed. The site's phase says so only
// after the next decision.
func EscrowIsGone(s Site) bool {
	_, have := s.current()
	return !have && s.Status.KeyringSecret != "" && s.Status.Phase != none && !written(s.Status)
}

// isMissingBefore: the present pod was made sealed, so its memory holds the keyring that is gone.
func isMissingBefore(_ Group, s Site) bool {
	_, have := s.current()
	return !have && s.Status.SeedVersion > 0 && s.Rendered.Sealed && s.Clone != CloneConfirmed
}

func missBefore(g Group, n *Next) {
	n.endRound()
	miss(g, n)
}

func isStarved(_ Group, s Site) bool {
	_, have := newer(s)
	return s.starved() && !have
}

func starve(_ Group, n *Next) {
	n.say(EventEscrowMissing, fmt.Sprintf("The escrow Secret from which site %s is to be unsealed is gone or changed, and its pod cannot start: "+
		"restore it if anybody has a copy, or order %s=%s:confirm to have the site cloned again", n.Name, v1alpha1.AnnotationRecloneSite, n.Name))
}

func miss(_ Group, n *Next) {
	if n.Status.Phase == pending {
		n.Status.Work = "" // nothing was changed yet, and the pod stays sealed
	}
	n.say(EventEscrowMissing, fmt.Sprintf("The escrow Secret %s of site %s is gone or changed. Do not delete or restart its pod: its memory "+
		"holds the only copy of the keyring. See docs/keyring-runbook.md on how to restore it from there", n.Status.KeyringSecret, n.Name))
}

func isRestored(_ Group, s Site) bool {
	_, have := s.current()
	return have && !written(s.Status) && s.Status.Stage != v1alpha1.KeyringSealing
}

func restore(_ Group, n *Next) {
	n.say(EventEscrowBack, fmt.Sprintf("The escrow Secret %s of site %s is there again, with the digest that it had", n.Status.KeyringSecret, n.Name))
}

func isRestoredSealing(_ Group, s Site) bool {
	_, have := s.current()
	return have && s.Status.Stage == v1alpha1.KeyringSealing
}

func restoreSealing(g Group, n *Next) { restore(g, n) }
