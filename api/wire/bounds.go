// SPDX-License-Identifier: Apache-2.0

package wire

import (
	"slices"
	"strings"
)

// Bounds of what a report holds, in bytes: its texts and names go into status, which the API server does not take beyond a size, and
// without status no epoch can be persisted. A text can be cut. A name is far shorter, whichever version a sidecar has.
const (
	LongestText = 4 << 10
	LongestName = 2 << 10
)

// Overlong is true for a report with a name in it that nothing has.
func (r Report) Overlong() bool {
	names := []string{r.Anchor, r.BootID, r.VolumeID, r.ActiveSite, r.ServerUUID, string(r.FenceStage), string(r.FenceCause)}
	if k := r.Keyring; k != nil {
		names = append(names, k.Component, k.DataFile, k.Digest, k.EscrowedDigest)
	}
	return slices.ContainsFunc(names, func(name string) bool { return len(name) > LongestName })
}

// Trimmed is the report with its texts cut.
func (r Report) Trimmed() Report {
	r.Message = cutText(r.Message)
	if r.Keyring != nil {
		r.Keyring.Trouble = cutText(r.Keyring.Trouble)
	}
	if r.Certificate != nil {
		r.Certificate.Problem = cutText(r.Certificate.Problem)
	}
	return r
}

func cutText(text string) string {
	if len(text) <= LongestText {
		return text
	}
	return strings.ToValidUTF8(text[:LongestText], "") + "..."
}
