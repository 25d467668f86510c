// SPDX-License-Identifier: Apache-2.0

package keyring

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/mysql-mfg/mfg/api/v1alpha1"
)

// found is the escrowed version from which a site starts if status does not know it.
func found(s Site) (Version, bool) {
	if s.Rendered.Sealed {
		v, _ := s.version(s.Rendered.Secret)
		return v, v.whole()
	}
	if s.told() {
		// Only the keyring that the pod has can read what the pod wrote.
		return s.newest(func(v Version) bool { return v.Digest == s.live() })
	}
	if s.mayTell() && !s.isReplaced() {
		return Version{}, false // its keyring may not be in escrow
	}
	return s.newest(func(Version) bool { return true })
}

// isReplaced is true if a clone is about to replace the site's data, so it does not matter which keyring reads it.
func (s Site) isReplaced() bool { return !s.Provisioned && s.Clone != CloneNone }

// told is true if a pod reports a keyring that it can write, and with which its mysqld has answered.
func (s Site) told() bool { return s.live() != "" && s.Report.Component != "" }

// mayTell is true if a pod may have a needed keyring that it has not reported yet: its Deployment made it able to write its own.
func (s Site) mayTell() bool {
	switch {
	case !s.Rendered.Keyring || s.Rendered.Sealed || s.told():
		return false
	case s.Pod.Lost, s.Pod.Current && s.Pod.Unborn:
		return false // its memory holds no keyring
	}
	return !s.Pod.Silent || !s.inEscrow() // where mysqld does not start, the keyring in the pod may be older than the one that the data needs
}

// numberIn reads the number of a version from its name, given the name that number 0 would have; 0 if it has none.
func numberIn(name, zero string) int64 {
	digits, ok := strings.CutPrefix(name, strings.TrimSuffix(zero, "0"))
	number, err := strconv.ParseInt(digits, 10, 64)
	if !ok || err != nil {
		return 0
	}
	return number
}

// learn notes which keyring is missing once the pod says so: a restored Secret is compared with it.
func (n *Next) learn() {
	if r := n.site.Report; n.Status.Phase == failed && n.Status.KeyringDigest == "" && r != nil && r.Sealed {
		n.Status.KeyringDigest = r.Digest
	}
}

func isFoundLive(_ Group, s Site) bool {
	if !s.told() {
		return false // until mysqld has answered with it, the keyring may be older than the one that the data needs
	}
	if s.Status.Phase == none {
		return !s.inEscrow()
	}
	return s.Status.Work == "" && s.live() != s.Status.KeyringDigest
}

func takeLive(_ Group, n *Next) {
	// The round of the token that the pod has: for another round a new token would be made, and what the pod pushes meanwhile refused.
	n.Status.Round = max(n.Status.Round, n.site.TokenRound, 1)
	// As after a rotation: if the pod is lost, its keyring is too, and the site is cloned again under the same guards. A digest without a
	// version says that it was only found.
	n.Status.Work, n.Status.Stage, n.Status.Rotated = v1alpha1.KeyringRotation, v1alpha1.KeyringRotating, true
	n.Status.SeedVersion, n.Status.SeedDigest, n.Status.FloorVersion, n.Status.RotationPod = 0, n.site.live(), 0, n.site.Pod.UID
	for _, v := range n.site.Versions {
		if v.Digest != n.site.live() {
			n.Status.FloorVersion = max(n.Status.FloorVersion, v.Number)
		}
	}
	n.say(EventFound, fmt.Sprintf("Site %s runs with a keyring that is in no escrow yet; its pod is kept until it is", n.Name))
}

// onlyFound is true for a round in which the keyring of a pod was found: no order began it, and no key was rotated in it.
func onlyFound(st v1alpha1.SiteKeyringStatus) bool { return st.SeedVersion == 0 && st.SeedDigest != "" }

func isFound(_ Group, s Site) bool {
	_, ok := found(s)
	return ok && !s.plain()
}

func takeFound(_ Group, n *Next) {
	v, _ := found(n.site)
	n.hold(v)
	n.Status.Stage = v1alpha1.KeyringSealing
	n.say(EventFound, fmt.Sprintf("Site %s starts with the keyring in the escrow Secret %s", n.Name, v.Name))
}

func isFoundMissing(_ Group, s Site) bool {
	return !s.plain() && (s.Rendered.Sealed || len(s.Versions) > 0 && s.live() == "" && !s.mayTell())
}

func takeMissing(g Group, n *Next) {
	rendered := n.site.Rendered.Secret
	v := Version{Name: rendered, Number: numberIn(rendered, v1alpha1.KeyringSecret(g.Name, n.Name, 0))}
	for _, other := range n.site.Versions {
		if other.Name == rendered || rendered == "" && other.Number > v.Number {
			v = other
		}
	}
	v.Digest = v.Annotated
	if r := n.site.Report; v.Digest == "" && r != nil {
		v.Digest = r.Digest
	}
	n.hold(v)
	miss(g, n)
}
