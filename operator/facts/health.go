// SPDX-License-Identifier: Apache-2.0

package facts

import "time"

// ProbeValid is how old a sidecar's last try to write may be and still say anything.
const ProbeValid = 10 * time.Second

// Lasts is true if the site counts as another copy of the group's data (I14): it has the data, on its own volume, and neither the site nor its
// volume is about to go.
func (s Site) Lasts() bool {
	return s.Provisioned && !s.Removed && !s.OtherVolume && !s.Pod.VolumeGoes
}

// Unescrowed says why what the site would acknowledge could not be read once its pod is gone (I16); empty if that is not so. A sealed keyring comes
// from escrow, and a site without one has nothing to lose. A file that is being written has no digest, and is not in escrow either.
func (s Site) Unescrowed() string {
	k := s.Sidecar.Report.Keyring
	switch {
	case k == nil || k.Sealed || k.Digest != "" && k.Digest == k.EscrowedDigest:
		return ""
	case k.Trouble != "":
		return "its live keyring is not escrowed: " + k.Trouble
	}
	return "its live keyring is not escrowed yet"
}

// Stalls is true if the sidecar of an open site has just found that its volume takes no writes.
func (s Site) Stalls() bool {
	p := s.Sidecar.Report.WriteProbe
	return s.Sidecar.Answered && s.Writable() && p.Stalled() && time.Duration(p.AgeMillis)*time.Millisecond <= ProbeValid
}
