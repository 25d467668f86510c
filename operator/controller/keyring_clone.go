// SPDX-License-Identifier: Apache-2.0

package controller

import "github.com/mysql-mfg/mfg/operator/keyring"

// sealedStill says why a clone into an encrypted site has to wait: it writes the keyring, which must be unsealed, and status
// must say so; empty if it may begin.
func (p *provisioner) sealedStill(t task) string {
	if !encrypted(t.group) {
		return ""
	}
	g, known := p.facts.Sites(t.key.group.Namespace, t.key.group.Name)
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
	g, _ := p.facts.Sites(t.key.group.Namespace, t.key.group.Name)
	system := t.group.Spec.EncryptionAtRest.Coverage.SystemTablespace
	return keyring.DonorWaits(keyring.Donor{
		Name: source, Covered: system == nil || *system, Status: keyringStatus(t.group, source), Report: g.Sites[source].Keyring,
	})
}
