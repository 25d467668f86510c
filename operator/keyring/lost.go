// SPDX-License-Identifier: Apache-2.0

package keyring

import (
	"fmt"

	"github.com/mysql-mfg/mfg/api/v1alpha1"
)

// lostSilently is true if the data of a site needs master keys that died with an earlier pod, and the only sign is that
// mysqld does not start: the sidecar had no time to note which keyring the data needs. It is never true for the pod in
// which the keys may have been made, nor for one that has reported nothing or has anything but its seed: there mysqld may
// fail to start for another reason, and that pod has the only copy of its keyring.
func lostSilently(s Site) bool {
	st := s.Status
	if st.Stage != v1alpha1.KeyringRotating || !seen(s) || !s.Pod.Current || !s.Pod.Silent {
		return false
	}
	if s.Report == nil || s.Report.Component != "" {
		return false // what the pod holds is unknown, or mysqld answered in this very pod, so its data can be read there
	}
	if !s.Provisioned && s.Clone == CloneConfirmed {
		return true // a person has confirmed that the data may go, whatever keeps mysqld from starting
	}
	seeded := st.SeedVersion > 0 && s.live() == st.SeedDigest
	bare := s.live() == "" && wasTaken(st) // it started from a fresh keyring, after the pod that had the keys
	if !seeded && !bare && !s.inEscrow() {
		return false // the pod may hold the only copy of a keyring
	}
	return st.RotationPod != "" && st.RotationPod != s.Pod.UID
}

// note remembers the pod in which mysqld runs while its master keys may be rotated, before any rotation begins there.
func (n *Next) note() {
	st, s := &n.Status, n.site
	if st.Stage != v1alpha1.KeyringRotating || !written(*st) || !s.Pod.Current || s.Pod.UID == "" {
		return
	}
	if r := s.Report; r != nil && !r.Sealed && r.Component != "" {
		st.RotationPod = s.Pod.UID
	}
}

// giveUpWaits says why the data behind lost keys is not given up until a person confirms it; empty if it may be. Keys that
// only seem lost must not cost the last copy beside the active site.
func giveUpWaits(s Site) string {
	switch {
	case s.Diverged:
		return fmt.Sprintf("its new master keys were lost with its pod, and it has, or may have, transactions that no other site has: order %s=%s:confirm to have it cloned again",
			v1alpha1.AnnotationRecloneSite, s.Name)
	case s.Alone && !s.Pod.proven:
		return fmt.Sprintf("mysqld does not start, perhaps since its new master keys were lost with its pod, and no other site but the active one is healthy: "+
			"look at the log of mysqld, and order %s=%s:confirm to have it cloned again", v1alpha1.AnnotationRecloneSite, s.Name)
	}
	return ""
}
