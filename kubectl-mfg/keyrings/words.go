// SPDX-License-Identifier: Apache-2.0

package keyrings

import (
	"fmt"
	"strings"

	"github.com/mysql-mfg/mfg/api/v1alpha1"
)

// SiteStatus returns what status says of the keyring of a site.
func SiteStatus(g *v1alpha1.MysqlFailoverGroup, site string) v1alpha1.SiteKeyringStatus {
	if e := g.Status.EncryptionAtRest; e != nil {
		for _, s := range e.Sites {
			if s.Name == site {
				return s
			}
		}
	}
	return v1alpha1.SiteKeyringStatus{Name: site}
}

// PhaseWords says what phase a keyring is in.
func PhaseWords(k v1alpha1.SiteKeyringStatus) string {
	words := string(k.Phase)
	if k.Phase == "" {
		words = "not there"
	}
	if k.Message != "" {
		words += " (" + k.Message + ")"
	}
	return words
}

// Repair says what to do about a site that is not sealed: for a person at night, and for a run that ended half-way.
func Repair(k v1alpha1.SiteKeyringStatus, group, namespace string) string {
	where := group + " -n " + namespace
	switch {
	case k.Phase == v1alpha1.KeyringFailed && !Writable(k):
		return fmt.Sprintf("its pod has the only copy: do not delete or restart it; bring the keyring back into escrow: kubectl mfg recover-keyring %s %s -n %s", group, k.Name, namespace)
	case k.Phase == v1alpha1.KeyringFailed, k.Rotated, k.Stage == v1alpha1.KeyringRotating:
		return "do not delete, restart or drain its pod: until its new keyring is in escrow, it has the only copy. The operator keeps trying; see what it says: kubectl mfg events " + where + " --warnings"
	case k.Phase == v1alpha1.KeyringPending, k.Phase == v1alpha1.KeyringUnsealed && k.SeedVersion > 0:
		return fmt.Sprintf("its keys are not rotated yet, and the operator continues as soon as it can; to withdraw the order: kubectl annotate mfg %s %s-", where, v1alpha1.AnnotationRotateKeyring)
	case k.Phase == v1alpha1.KeyringUnsealed:
		return "its keyring is not in escrow yet, and the operator continues as soon as it can; see how far it is: kubectl mfg status " + where + " -w"
	case k.Phase == v1alpha1.KeyringEscrowed:
		return "its new keyring is in escrow; the operator seals it as soon as its pod can be replaced; see how far it is: kubectl mfg status " + where + " -w"
	}
	return "see how it is: kubectl mfg status " + where
}

// VersionWords says which keyring each site has.
func VersionWords(g *v1alpha1.MysqlFailoverGroup) string {
	var words []string
	for _, s := range g.Spec.Sites {
		k := SiteStatus(g, s.Name)
		words = append(words, fmt.Sprintf("%s v%d %s", s.Name, k.KeyringVersion, k.Phase))
	}
	return strings.Join(words, ", ")
}
