// SPDX-License-Identifier: Apache-2.0

package keyring

import (
	"fmt"

	"github.com/mysql-mfg/mfg/api/v1alpha1"
)

// message says what the site waits for, or what went wrong. It has no times in it, so that it does not change while nothing else does.
func message(g Group, s Site) string {
	st := s.Status
	if _, have := s.current(); st.Phase == failed && st.KeyringSecret != "" && !have && !s.starved() {
		return "the escrow Secret " + st.KeyringSecret + " with the digest " + st.KeyringDigest + " is missing: restore it from the pod, which must not be restarted"
	}
	if st.Phase == sealed {
		return ""
	}
	return waitsFor(g, s)
}

// waitsFor says what a site's next step waits for.
func waitsFor(g Group, s Site) string {
	st := s.Status
	switch {
	case st.Phase == "" && s.Provisioned:
		return stillPlain(g, s)
	case st.Phase == "" && s.mayTell():
		return "its pod was made with a keyring that it can write, and has not said which: the operator continues once its mysqld answers; if mysqld cannot start any more, delete the Deployment of the site"
	case st.Phase == "":
		return ""
	case st.Phase == pending:
		return "the site is about to be unsealed"
	case st.Stage == v1alpha1.KeyringSealing:
		return unsealedYet(g, s)
	case lostKeys(s) && s.Provisioned && giveUpWaits(s) != "":
		return giveUpWaits(s)
	case s.starved():
		seed, _ := seedOf(st)
		return fmt.Sprintf("its pod cannot start, because the escrow Secret with version %d of its keyring is gone or changed: restore it if anybody has a copy, "+
			"or order %s=%s:confirm to have the site cloned again", seed, v1alpha1.AnnotationRecloneSite, s.Name)
	case holdsPlain(s):
		return plainWaits(g)
	case s.Pod.Lost:
		return "the pod cannot start"
	case s.Report == nil || s.Report.Sealed || !s.Pod.Current:
		return "its pod is to be replaced by an unsealed one"
	case s.Report.Trouble != "":
		return s.Report.Trouble
	case st.Phase == escrowed && !s.Provisioned:
		return "the site waits for the group's data"
	case st.Phase == escrowed && s.outlived():
		return "a newer keyring of it is in escrow than the one that its sidecar tells of"
	case st.Phase == escrowed:
		return "the keyring is to stay as it is for a moment before the site is sealed"
	case st.Work == v1alpha1.KeyringRotation && !st.Rotated && s.Job.Trouble != "":
		return "the last try to rotate: " + s.Job.Trouble
	case st.Work == v1alpha1.KeyringRotation && !st.Rotated:
		if why := notYet(g, s); why != "" {
			return "the master keys are to be rotated, and wait: " + why
		}
		return "the master keys are to be rotated"
	}
	return "the keyring is to be escrowed"
}

// coverage is what the site's MySQL says is encrypted, or what it said last if it says nothing now.
func coverage(s Site) v1alpha1.CoverageStatus {
	out := s.Status.Coverage
	r := s.Report
	if r == nil || r.Component == "" {
		return out
	}
	out.KeyringComponent, out.KeyringReadOnly = r.Component, r.ReadOnly && r.MountReadOnly
	if c := r.Coverage; c != nil {
		out.SystemTablespaceEncrypted, out.UnencryptedTablespaces = c.SystemTablespace, c.Unencrypted
		out.RedoLogEncrypted, out.UndoLogEncrypted, out.BinlogEncrypted = c.RedoLog, c.UndoLog, c.BinaryLog
	}
	return out
}
