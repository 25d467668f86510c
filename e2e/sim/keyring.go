// SPDX-License-Identifier: Apache-2.0

package main

import (
	"time"

	"github.com/mysql-mfg/mfg/api/wire"
)

// encrypted is true in every fourth run: there the keyring of a new pod lives in its memory until it was handed to the operator.
func (w *world) encrypted() bool { return w.seed%4 == 3 }

// escrowAfter is when the keyring of a pod that starts now is in escrow; drawn without the run's own dice, so that all else
// happens as in a run without keyrings.
func (w *world) escrowAfter() time.Duration {
	return w.now + time.Duration(uint64(w.processes)*2654435761%6000)*time.Millisecond
}

// unescrowed is true while what is acknowledged would be lost with the pod.
func (p *pod) unescrowed() bool { return p.w.encrypted() && p.w.now < p.escrowAt }

// keyring is what the sidecar of a pod says of it.
func (p *pod) keyring() *wire.KeyringReport {
	switch {
	case !p.w.encrypted():
		return nil
	case p.unescrowed():
		return &wire.KeyringReport{Digest: "sha256:" + p.uid}
	}
	return &wire.KeyringReport{Digest: "sha256:" + p.uid, EscrowedDigest: "sha256:" + p.uid}
}

// escrowed holds I16 when writes are about to be opened.
func (x *truth) escrowed(s *sidecar) {
	if s.pod.unescrowed() {
		x.w.fail("I16", "%s opens %s before its keyring is in escrow", s.pod, s.pod.escrowAt-x.w.now)
	}
}
