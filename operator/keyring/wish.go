// SPDX-License-Identifier: Apache-2.0

package keyring

import (
	"github.com/mysql-mfg/mfg/api/v1alpha1"
)

// Wish is how the pod of a site has to be made. It depends on status alone, so that an operator that was restarted wishes
// the same: another wish would replace a pod whose memory holds the only copy of a keyring.
type Wish struct {
	// Encrypted is false for a site that is run without a keyring.
	Encrypted bool
	Sealed    bool
	Work      v1alpha1.KeyringWork
	// Secret is the escrow Secret to project or to start from; empty starts with a fresh keyring.
	Secret  string
	Version int64
	Digest  string
	Round   int64
	// AcceptPlain lets a new site go on from data in the clear.
	AcceptPlain bool
	// Kept says why the pod in place must not be replaced, whatever else was changed; empty normally.
	Kept string
}

// WishOf is the wish for what is persisted of a site.
func WishOf(group string, s Site) Wish {
	st := s.Status
	w := Wish{Kept: kept(s)}
	switch {
	case st.Phase == "":
		return w
	case written(st):
		w.Encrypted, w.Work, w.Round = true, st.Work, st.Round
		w.AcceptPlain = st.Work == v1alpha1.KeyringBootstrap && st.PlainAccepted
		if w.Version, w.Digest = seedOf(st); w.Version > 0 {
			w.Secret = v1alpha1.KeyringSecret(group, s.Name, w.Version)
		}
	default:
		// I18: no round and no token of a site that is made sealed.
		w.Encrypted, w.Sealed = true, true
		w.Secret, w.Version, w.Digest = st.KeyringSecret, st.KeyringVersion, st.KeyringDigest
	}
	return w
}

// kept says why the pod in place must not be replaced: its memory holds the only copy of what is needed to read its data.
// A site that is not provisioned has nothing to lose yet, and may need just the change that replaces its pod.
func kept(s Site) string {
	st := s.Status
	_, have := s.current()
	switch {
	case st.Phase == v1alpha1.KeyringFailed && st.KeyringSecret != "" && !have && !s.starved():
		return "the escrow Secret " + st.KeyringSecret + " of its keyring is gone, and only its pod has the keyring still"
	case st.Phase == "" && s.Rendered.Keyring:
		return "its pod has a keyring that status does not tell of"
	case wasTaken(st) && !s.Pod.Lost && !(s.Pod.Current && s.Pod.Unborn):
		// Another unsealed one would start from nothing.
		return "its keys were made in this pod: it is replaced by one that is sealed with them"
	case !s.Provisioned:
		return ""
	case s.live() != "" && !s.inEscrow():
		return "its keyring is in its pod alone until it is in escrow"
	case s.Pod.Lost, s.Pod.Current && s.Pod.Unborn:
		return "" // there is nothing in its memory
	case s.seedIsGone() && s.live() == "" && !s.Rendered.Sealed:
		return "the escrow Secret that it was unsealed from is gone, and its pod may have that keyring still"
	case s.Report != nil && !s.Report.Sealed && s.Report.Digest == "":
		return "its keyring is being written"
	case mayHoldNewKeys(s):
		return "its master keys may have been rotated, and what is known of its keyring is older than that"
	case s.live() != "" && s.Calm < calmBeforeSealing:
		// It says what the keyring was before the last thing that was done with the site, such as a clone that ended just now.
		return "what is known of its keyring may be older than what it holds"
	}
	return ""
}

// seedOf is the version from which an unsealed pod starts; 0 for none.
func seedOf(st v1alpha1.SiteKeyringStatus) (version int64, digest string) {
	if wasTaken(st) && st.KeyringVersion > st.FloorVersion {
		// What was made in its pod is in escrow by now: should that pod be lost, the next one starts from there.
		return st.KeyringVersion, st.KeyringDigest
	}
	return st.SeedVersion, st.SeedDigest
}

// wasTaken is true of a site whose keyring was found in its pod, and of one whose keys were rotated from a fresh keyring.
func wasTaken(st v1alpha1.SiteKeyringStatus) bool {
	return written(st) && st.Work == v1alpha1.KeyringRotation && st.Rotated && st.SeedVersion == 0
}

// mayHoldNewKeys is true if a pod may have master keys that no report tells of yet: none came, or the last one was made before, or
// soon after, a rotation ended, whether it succeeded or not.
func mayHoldNewKeys(s Site) bool {
	return s.Status.Stage == v1alpha1.KeyringRotating && s.Rendered.Exists && !s.Rendered.Sealed &&
		(s.Report == nil || s.Job.Running || s.Calm < calmBeforeSealing)
}
