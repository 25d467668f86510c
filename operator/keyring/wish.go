// SPDX-License-Identifier: Apache-2.0

package keyring

import (
	"github.com/mysql-mfg/mfg/api/v1alpha1"
)

// Wish says how the pod of a site must be made. It depends on status alone, so that a restarted operator wishes the same:
// another wish would replace a pod whose memory holds the only copy of a keyring.
type Wish struct {
	// Encrypted is false for a site that runs without a keyring.
	Encrypted bool
	Sealed    bool
	Work      v1alpha1.KeyringWork
	// Secret is the escrow Secret to project or to start from; empty starts with a fresh keyring.
	Secret  string
	Version int64
	Digest  string
	Round   int64
	// AcceptPlain lets a new site start from data in the clear.
	AcceptPlain bool
	// Kept says why the present pod must not be replaced, whatever else was changed; normally empty.
	Kept string
}

// WishOf returns the wish for a site with the status that is persisted.
func WishOf(group string, s Site) Wish {
	st := s.Status
	w := Wish{Kept: kept(s)}
	switch {
	case st.Phase == "":
		return w
	case written(st):
		w.Encrypted, w.Work, w.Round = true, st.Work, st.Round
		w.AcceptPlain = st.Work == v1alpha1.KeyringBootstrap && st.PlainAccepted
		if version, digest := seedOf(st); version > 0 {
			w.Secret, w.Version, w.Digest = v1alpha1.KeyringSecret(group, s.Name, version), version, digest
		}
	default:
		// I18: a sealed site has no round and no token.
		w.Encrypted, w.Sealed = true, true
		w.Secret, w.Version, w.Digest = st.KeyringSecret, st.KeyringVersion, st.KeyringDigest
	}
	return w
}

// kept says why the present pod must not be replaced: its memory holds, or may hold, the only copy of the keyring that reads
// its data. A site that is not provisioned has nothing to lose yet, and may need exactly the change that replaces its pod.
func kept(s Site) string {
	st := s.Status
	_, have := s.current()
	switch {
	case st.Phase == v1alpha1.KeyringFailed && st.KeyringSecret != "" && !have && !s.starved():
		return "the escrow Secret " + st.KeyringSecret + " of its keyring is gone, and only its pod has the keyring still"
	case st.Phase == "" && s.Rendered.Keyring:
		return "its pod has a keyring that status does not tell of"
	case wasTaken(st) && !s.Pod.Lost && !(s.Pod.Current && s.Pod.Unborn):
		// Another unsealed pod would start from a fresh keyring.
		return "its keys were made in this pod: it is replaced by one that is sealed with them"
	case !s.Provisioned:
		return ""
	case s.live() != "" && !s.inEscrow():
		return "its keyring is in its pod alone until it is in escrow"
	case s.Pod.Lost, s.Pod.Current && s.Pod.Unborn:
		return "" // its memory holds no keyring
	case s.seedIsGone() && s.live() == "" && !s.Rendered.Sealed:
		return "the escrow Secret that it was unsealed from is gone, and its pod may have that keyring still"
	case s.Report != nil && !s.Report.Sealed && s.Report.Digest == "":
		return "its keyring is being written"
	case mayHoldNewKeys(s):
		return "its master keys may have been rotated, and what is known of its keyring is older than that"
	case s.live() != "" && s.Calm < calmBeforeSealing:
		// The report may be from before the last work on the site, such as a clone that ended just now.
		return "what is known of its keyring may be older than what it holds"
	}
	return ""
}

// seedOf is the version from which an unsealed pod starts; 0 for none.
func seedOf(st v1alpha1.SiteKeyringStatus) (version int64, digest string) {
	if wasTaken(st) && st.KeyringVersion > st.FloorVersion {
		// The keys that were made in its pod are in escrow by now: if that pod is lost, the next one starts from there.
		return st.KeyringVersion, st.KeyringDigest
	}
	return st.SeedVersion, st.SeedDigest
}

// wasTaken is true for a site whose keyring was found in its pod, and for one whose keys were rotated from a fresh keyring.
func wasTaken(st v1alpha1.SiteKeyringStatus) bool {
	return written(st) && st.Work == v1alpha1.KeyringRotation && st.Rotated && st.SeedVersion == 0
}

// mayHoldNewKeys is true if a pod may have master keys that no report shows yet: there was no report, or the last one is from
// before, or soon after, the end of a rotation, successful or not.
func mayHoldNewKeys(s Site) bool {
	return s.Status.Stage == v1alpha1.KeyringRotating && s.Rendered.Exists && !s.Rendered.Sealed &&
		(s.Report == nil || s.Job.Running || s.Calm < calmBeforeSealing)
}
