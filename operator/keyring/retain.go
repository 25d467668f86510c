// SPDX-License-Identifier: Apache-2.0

package keyring

import (
	"cmp"
	"slices"

	"github.com/mysql-mfg/mfg/api/v1alpha1"
)

// prunable returns the names of the escrow Secrets of a sealed site that may be deleted, oldest first. I17: never the one
// that the site is sealed with, nor one that its Deployment or a pod of it refers to, nor a newer one: after a roll-back a
// person can roll forward to those.
func prunable(s Site, retain int) []string {
	sealedWith, have := s.current()
	if s.Status.Phase != v1alpha1.KeyringSealed || !have {
		// It is not known yet which versions an unsealed site will need.
		return nil
	}
	var superseded []Version
	for _, v := range s.Versions {
		if v.Number < sealedWith.Number {
			superseded = append(superseded, v)
		}
	}
	slices.SortFunc(superseded, func(a, b Version) int { return cmp.Compare(b.Number, a.Number) })
	if len(superseded) <= retain {
		return nil
	}
	var out []string
	for _, v := range slices.Backward(superseded[retain:]) {
		if !slices.Contains(s.InUse, v.Name) {
			out = append(out, v.Name)
		}
	}
	return out
}
