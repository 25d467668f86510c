// SPDX-License-Identifier: Apache-2.0

package keyring

import (
	"fmt"

	"github.com/mysql-mfg/mfg/api/v1alpha1"
)

// lostSilently is true if the data of a site needs master keys that died with an earlier pod, and mysqld shows it only by
// not starting: the sidecar had no time to note which keyring the data needs. It is never true of the pod in which the keys
// may have been made, nor of one that has said nothing or has anything but its seed: what looks the same there is a mysqld
// that does not start for another reason, and the only copy of its keyring is in that pod.
func lostSilently(s Site) bool {
	st := s.Status
	if st.Stage != v1alpha1.KeyringRotating || !seen(s) || !s.Pod.Current || !s.Pod.Silent {
		return false
	}
	if s.Report == nil || s.Report.Component != "" {
		return false // nobody knows what is in the pod, or mysqld answered in this very one, so its data can be read there
	}
	if !s.Provisioned && s.Clone == CloneConfirmed {
		return true // a person has said that the data may go, whatever keeps mysqld from starting
	}
	seeded := st.SeedVersion > 0 && s.live() == st.SeedDigest
	bare := s.live() == "" && wasTaken(st) // it started from nothing after the pod that had the keys
	if !seeded && !bare && !s.inEscrow() {
		return false // the pod may hold what exists nowhere else
	}
	return st.RotationPod != "" && st.RotationPod != s.Pod.UID
}

// note remembers the pod in which mysqld runs while its master keys may be rotated, before anything is done there.
func (n *Next) note() {
	st, s := &n.Status, n.site
	if st.Stage != v1alpha1.KeyringRotating || !written(*st) || !s.Pod.Current || s.Pod.UID == "" {
		return
	}
	if r := s.Report; r != nil && !r.Sealed && r.Component != "" {
		st.RotationPod = s.Pod.UID
	}
}

// giveUpWaits says why the data behind lost keys is not given up without a person's word; empty if it may be. Keys that only
// seem to be lost do not cost the last copy beside the active site.
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
