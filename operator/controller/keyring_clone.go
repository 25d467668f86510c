// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"github.com/mysql-mfg/mfg/operator/keyring"
)

// sealedStill says why a clone into an encrypted site has to wait: it writes the keyring, which must be unsealed, and status
// must say so; empty if it may begin.
func (p *provisioner) sealedStill(t task) string {
	if !encrypted(t.group) {
		return ""
	}
	g, known := p.reach.In(t.key.group)
	k := g.Sites[t.key.site].Keyring
	switch {
	case !keyring.MayClone(keyringStatus(t.group, t.key.site)):
		return "the keyring is to be unsealed first"
	case !known || k == nil || k.Sealed || !k.Active:
		return "the pod with the unsealed keyring is to come first"
	}
	return ""
}

// donorWaits says why no clone from a site of an encrypted group may begin now; empty if it may.
func (p *provisioner) donorWaits(t task, source string) string {
	if !encrypted(t.group) {
		return ""
	}
	g, _ := p.reach.In(t.key.group)
	system := t.group.Spec.EncryptionAtRest.Coverage.SystemTablespace
	return keyring.DonorWaits(keyring.Donor{
		Name: source, Covered: system == nil || *system, Status: keyringStatus(t.group, source), Report: g.Sites[source].Keyring,
	})
}

// cloneWish says whether the site's data is about to be replaced. What is not persisted does not count (I15).
func (r *Clones) cloneWish(s *scope, name string) keyring.Clone {
	if s.provisioned[name] || name == s.activeSite() {
		return keyring.CloneNone
	}
	o := standing(s.clones[name])
	switch {
	case o.given() && o.discards():
		return keyring.CloneConfirmed
	case o.given(), r.Work.wantsUnseal(s.work(name)):
		return keyring.CloneWanted
	}
	return keyring.CloneNone
}
