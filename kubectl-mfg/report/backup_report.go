// SPDX-License-Identifier: Apache-2.0

package report

import (
	"cmp"
	"slices"
	"time"

	"github.com/mysql-mfg/mfg/api/v1alpha1"
)

// Backup is one backup.
type Backup struct {
	APIVersion string   `json:"apiVersion"`
	Kind       string   `json:"kind"`
	Metadata   Metadata `json:"metadata"`
	Group      string   `json:"group"`
	Profile    string   `json:"profile"`
	Method     string   `json:"method,omitempty"`
	// Phase is Pending, Running, Completed, Failed or Deleting; it is also Pending while the operator has not taken it up.
	Phase string `json:"phase"`
	// Progress is in percent, an estimate.
	Progress   int32      `json:"progress"`
	Attempts   int32      `json:"attempts,omitempty"`
	Job        string     `json:"job,omitempty"`
	Site       string     `json:"site,omitempty"`
	Epoch      int64      `json:"epoch,omitempty"`
	StartedAt  *time.Time `json:"startedAt,omitempty"`
	FinishedAt *time.Time `json:"finishedAt,omitempty"`
	// Bytes is how much it takes in the storage.
	Bytes        int64           `json:"bytes,omitempty"`
	Size         string          `json:"size,omitempty"`
	GTIDExecuted string          `json:"gtidExecuted,omitempty"`
	MySQLVersion string          `json:"mysqlVersion,omitempty"`
	Location     string          `json:"location,omitempty"`
	Encrypted    bool            `json:"encrypted"`
	Verified     *BackupVerified `json:"verified,omitempty"`
	// VerificationAsked is true while a requested verification has no answer.
	VerificationAsked bool `json:"verificationAsked,omitempty"`
	// VerificationWaits says why it has none yet, if a try of it ended without one.
	VerificationWaits *VerificationWait `json:"verificationWaits,omitempty"`
	// KeepsArtifact is true if the stored data stays when the backup is deleted.
	KeepsArtifact bool            `json:"keepsArtifact,omitempty"`
	Reason        v1alpha1.Reason `json:"reason,omitempty"`
	Message       string          `json:"message,omitempty"`
	// Outcome and Next are the verb's: Planned, Requested, Succeeded, Refused or TimedOut; empty for a verb that only looks.
	Outcome string `json:"outcome,omitempty"`
	Next    string `json:"next,omitempty"`
}

// VerificationWait is a verification that is tried again.
type VerificationWait struct {
	Tries     int32           `json:"tries"`
	NotBefore *time.Time      `json:"notBefore,omitempty"`
	Reason    v1alpha1.Reason `json:"reason,omitempty"`
	Message   string          `json:"message,omitempty"`
}

// BackupVerified is the result of the last verification.
type BackupVerified struct {
	At      *time.Time `json:"at,omitempty"`
	Outcome string     `json:"outcome"`
	// RestoreSeconds is how long the restore took, in seconds.
	RestoreSeconds int64  `json:"restoreSeconds,omitempty"`
	Message        string `json:"message,omitempty"`
}

// BackupList are several backups, the newest first.
type BackupList struct {
	APIVersion string   `json:"apiVersion"`
	Kind       string   `json:"kind"`
	Items      []Backup `json:"items"`
}

// BackupOf makes the report of one backup.
func BackupOf(b *v1alpha1.MysqlBackup) Backup {
	at := b.Status
	out := Backup{
		APIVersion: APIVersion, Kind: BackupReportKind,
		Metadata: Metadata{Name: b.Name, Namespace: b.Namespace, CreationTimestamp: timeOf(&b.CreationTimestamp), DeletionTimestamp: timeOf(b.DeletionTimestamp)},
		Group:    b.Spec.Group, Profile: b.Spec.Profile, Method: cmp.Or(string(at.Method), string(b.Spec.Method)),
		Phase: cmp.Or(string(at.Phase), string(v1alpha1.BackupPending)), Progress: at.Progress, Attempts: at.Attempts, Job: at.Job, Site: at.Site, Epoch: at.Epoch,
		StartedAt: timeOf(at.StartedAt), FinishedAt: timeOf(at.FinishedAt), Bytes: at.Bytes, Size: at.Size, GTIDExecuted: at.GTIDExecuted,
		MySQLVersion: at.MySQLVersion, Location: at.Location, Encrypted: at.Encrypted, Reason: at.Reason, Message: at.Message,
		KeepsArtifact: b.Annotations[v1alpha1.AnnotationKeepArtifact] == "true",
	}
	_, out.VerificationAsked = b.Annotations[v1alpha1.AnnotationVerifyBackup]
	if v := at.Verified; v != nil {
		out.Verified = &BackupVerified{At: timeOf(v.At), Outcome: string(v.Outcome), RestoreSeconds: v.RestoreSeconds, Message: v.Message}
	}
	if w := at.VerificationWaits; w != nil && out.VerificationAsked {
		out.VerificationWaits = &VerificationWait{Tries: w.Tries, NotBefore: timeOf(w.NotBefore), Reason: w.Reason, Message: w.Message}
	}
	if out.Size == "" && out.Bytes > 0 {
		out.Size = Bytes(out.Bytes)
	}
	return out
}

// When returns when the backup was completed, or else begun or requested.
func (b Backup) When() time.Time {
	for _, t := range []*time.Time{b.FinishedAt, b.StartedAt, b.Metadata.CreationTimestamp} {
		if t != nil {
			return *t
		}
	}
	return time.Time{}
}

// Completed is true if there is something to restore.
func (b Backup) Completed() bool { return b.Phase == string(v1alpha1.BackupCompleted) }

// Proven is true if a verification passed, NotRestorable if one failed.
func (b Backup) Proven() bool {
	return b.Verified != nil && b.Verified.Outcome == string(v1alpha1.BackupPassed)
}

// NotRestorable is true if the last verification failed.
func (b Backup) NotRestorable() bool { return b.Verified != nil && !b.Proven() }

// NewBackupList makes the report of several backups, the newest first.
func NewBackupList(all []v1alpha1.MysqlBackup) BackupList {
	out := BackupList{APIVersion: APIVersion, Kind: BackupListKind, Items: make([]Backup, 0, len(all))}
	for i := range all {
		out.Items = append(out.Items, BackupOf(&all[i]))
	}
	slices.SortStableFunc(out.Items, func(a, b Backup) int {
		return cmp.Or(b.When().Compare(a.When()), cmp.Compare(a.Metadata.Name, b.Metadata.Name))
	})
	return out
}

// NeedsAttention is true if the newest backup of a profile failed, or the last verification of an existing one.
func (l BackupList) NeedsAttention() bool {
	seen := map[string]bool{}
	for _, b := range l.Items {
		key := b.Group + "/" + b.Profile
		ended := b.Completed() || b.Phase == string(v1alpha1.BackupFailed)
		if !seen[key] && ended {
			seen[key] = true
			if !b.Completed() {
				return true
			}
		}
		if b.Completed() && b.NotRestorable() {
			return true
		}
	}
	return false
}

// Newest returns the newest completed backup, of a profile if one is named.
func (l BackupList) Newest(profile string) (Backup, bool) {
	for _, b := range l.Items {
		if b.Completed() && (profile == "" || b.Profile == profile) && b.Metadata.DeletionTimestamp == nil {
			return b, true
		}
	}
	return Backup{}, false
}
