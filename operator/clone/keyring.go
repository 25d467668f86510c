// SPDX-License-Identifier: Apache-2.0

package clone

import (
	"github.com/mysql-mfg/mfg/operator/keyring"
	"github.com/mysql-mfg/mfg/operator/scope"
)

// sealedStill says why a clone into an encrypted site must wait; empty if it may begin. A clone writes the keyring, so the
// keyring must be unsealed, and status must say so.
func (p *provisioner) sealedStill(t task) string {
	if !scope.Encrypted(t.group) {
		return ""
	}
	g, known := p.reach.In(t.key.Group)
	k := g.Sites[t.key.Site].Keyring
	switch {
	case !keyring.MayClone(scope.KeyringStatus(t.group, t.key.Site)):
		return "the keyring is to be unsealed first"
	case !known || k == nil || k.Sealed || !k.Active:
		return "the pod with the unsealed keyring is to come first"
	}
	return ""
}

// donorWaits says why no clone from a site of an encrypted group may begin now; empty if it may.
func (p *provisioner) donorWaits(t task, source string) string {
	if !scope.Encrypted(t.group) {
		return ""
	}
	g, _ := p.reach.In(t.key.Group)
	system := t.group.Spec.EncryptionAtRest.Coverage.SystemTablespace
	return keyring.DonorWaits(keyring.Donor{
		Name: source, Covered: system == nil || *system, Status: scope.KeyringStatus(t.group, source), Report: g.Sites[source].Keyring,
	})
}

// CloneWish says whether the site's data is about to be replaced. Facts that are not persisted do not count (I15).
func (r *Clones) CloneWish(s *scope.Scope, name string) keyring.Clone {
	if s.Provisioned[name] || name == s.ActiveSite() {
		return keyring.CloneNone
	}
	o := standing(s.Clones[name])
	switch {
	case o.given() && o.discards():
		return keyring.CloneConfirmed
	case o.given(), r.Work.WantsUnseal(s.SiteKey(name)):
		return keyring.CloneWanted
	}
	return keyring.CloneNone
}
