// SPDX-License-Identifier: Apache-2.0

package report

import (
	"cmp"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/mysql-mfg/mfg/api/v1alpha1"
)

// Kinds of the reports of backups.
const (
	BackupReportKind = "MfgBackupReport"
	BackupListKind   = "MfgBackupReportList"
)

// Backups are the backups of a group, as its custom resource sums them up.
type Backups struct {
	// Ready and Verified are what the conditions BackupReady and BackupVerified say; nil while there is none, or while they are unknown.
	Ready    *bool           `json:"ready,omitempty"`
	Reason   v1alpha1.Reason `json:"reason,omitempty"`
	Message  string          `json:"message,omitempty"`
	Verified *bool           `json:"verified,omitempty"`
	// VerifiedReason and VerifiedMessage are from BackupVerified.
	VerifiedReason  v1alpha1.Reason `json:"verifiedReason,omitempty"`
	VerifiedMessage string          `json:"verifiedMessage,omitempty"`
	Profiles        []BackupProfile `json:"profiles"`
}

// BackupProfile is one way to back up, with its results.
type BackupProfile struct {
	Name   string `json:"name"`
	Method string `json:"method,omitempty"`
	// Storage names the place: kind, and bucket or claim.
	Storage string `json:"storage,omitempty"`
	// Encrypted is true if backups are encrypted with age before they leave their pod.
	Encrypted bool `json:"encrypted"`
	// Cron is empty without a schedule.
	Cron      string `json:"cron,omitempty"`
	TimeZone  string `json:"timeZone,omitempty"`
	Suspended bool   `json:"suspended,omitempty"`
	// Removed is true for a profile that has left the specification but still has backups.
	Removed bool `json:"removed,omitempty"`

	Backups      int32      `json:"backups"`
	Bytes        int64      `json:"bytes"`
	Running      string     `json:"running,omitempty"`
	LastBackup   string     `json:"lastBackup,omitempty"`
	LastSuccess  *time.Time `json:"lastSuccess,omitempty"`
	LastAttempt  *time.Time `json:"lastAttempt,omitempty"`
	Next         *time.Time `json:"next,omitempty"`
	LastVerified string     `json:"lastVerified,omitempty"`
	VerifiedAt   *time.Time `json:"verifiedAt,omitempty"`
	// RestoreSeconds is how long the restore of the last verification took, in seconds.
	RestoreSeconds int64           `json:"restoreSeconds,omitempty"`
	Reason         v1alpha1.Reason `json:"reason,omitempty"`
	Message        string          `json:"message,omitempty"`
}

// Restore is how far the restore of a new group is.
type Restore struct {
	// From is the group that the backup was taken from, as namespace/name.
	From string `json:"from"`
	// Ready is what the condition RestoreReady says; nil while there is none.
	Ready      *bool           `json:"ready,omitempty"`
	Phase      string          `json:"phase,omitempty"`
	Site       string          `json:"site,omitempty"`
	Backup     string          `json:"backup,omitempty"`
	Location   string          `json:"location,omitempty"`
	Method     string          `json:"method,omitempty"`
	StartedAt  *time.Time      `json:"startedAt,omitempty"`
	FinishedAt *time.Time      `json:"finishedAt,omitempty"`
	Progress   int32           `json:"progress"`
	Reason     v1alpha1.Reason `json:"reason,omitempty"`
	Message    string          `json:"message,omitempty"`
}

// Over is true once the restore is completed.
func (r Restore) Over() bool { return r.Phase == string(v1alpha1.RestoreCompleted) }

// Last is when the newest backup of any profile was completed, and Proven when the last verification passed; nil if there was none.
func (b Backups) Last() (last, proven *time.Time) {
	later := func(a, b *time.Time) *time.Time {
		if a == nil || b != nil && b.After(*a) {
			return b
		}
		return a
	}
	for _, p := range b.Profiles {
		last, proven = later(last, p.LastSuccess), later(proven, p.VerifiedAt)
	}
	return last, proven
}

// Bad is true if a condition says that something is wrong.
func (b Backups) Bad() bool { return b.Ready != nil && !*b.Ready || b.Verified != nil && !*b.Verified }

// BackupsOf returns what the custom resource says of backups; nil in groups without a profile.
func BackupsOf(cr *v1alpha1.MysqlFailoverGroup) *Backups {
	known := map[string]v1alpha1.BackupProfileStatus{}
	if cr.Status.Backup != nil {
		for _, p := range cr.Status.Backup.Profiles {
			known[p.Name] = p
		}
	}
	b := &Backups{Profiles: []BackupProfile{}}
	if cr.Spec.Backup != nil {
		for _, p := range cr.Spec.Backup.Profiles {
			b.Profiles = append(b.Profiles, profileOf(p, known[p.Name]))
			delete(known, p.Name)
		}
	}
	for _, p := range known {
		if p.Backups > 0 || p.Running != "" {
			gone := BackupProfile{Name: p.Name, Removed: true}
			gone.take(p)
			b.Profiles = append(b.Profiles, gone)
		}
	}
	if len(b.Profiles) == 0 {
		return nil
	}
	slices.SortStableFunc(b.Profiles, func(x, y BackupProfile) int {
		if x.Removed && y.Removed {
			return cmp.Compare(x.Name, y.Name)
		}
		return 0
	})
	b.Ready, b.Reason, b.Message = said(cr, v1alpha1.ConditionBackupReady)
	b.Verified, b.VerifiedReason, b.VerifiedMessage = said(cr, v1alpha1.ConditionBackupVerified)
	return b
}

// said returns what a condition says; nil while it says nothing.
func said(cr *v1alpha1.MysqlFailoverGroup, kind string) (*bool, v1alpha1.Reason, string) {
	c := meta.FindStatusCondition(cr.Status.Conditions, kind)
	if c == nil || c.Status == metav1.ConditionUnknown {
		return nil, "", ""
	}
	is := c.Status == metav1.ConditionTrue
	return &is, v1alpha1.Reason(c.Reason), c.Message
}

func profileOf(p v1alpha1.BackupProfile, at v1alpha1.BackupProfileStatus) BackupProfile {
	out := BackupProfile{
		Name: p.Name, Method: cmp.Or(string(p.Method), string(v1alpha1.BackupLogical)), Storage: StorageWords(p.Storage), Encrypted: p.Encryption != nil,
	}
	if s := p.Schedule; s != nil {
		out.Cron, out.TimeZone, out.Suspended = s.Cron, s.TimeZone, s.Suspend
	}
	out.take(at)
	return out
}

func (p *BackupProfile) take(at v1alpha1.BackupProfileStatus) {
	p.Backups, p.Bytes, p.Running, p.LastBackup, p.LastVerified = at.Backups, at.Bytes, at.Running, at.LastBackup, at.LastVerified
	p.LastSuccess, p.LastAttempt, p.Next, p.VerifiedAt = timeOf(at.LastSuccess), timeOf(at.LastAttempt), timeOf(at.Next), timeOf(at.VerifiedAt)
	p.RestoreSeconds, p.Reason, p.Message = at.RestoreSeconds, at.Reason, at.Message
}

// StorageWords names a place for backups: kind, bucket and prefix, or the claim of the volume.
func StorageWords(s v1alpha1.BackupStorage) string {
	join := func(words ...string) string {
		return strings.Join(slices.DeleteFunc(words, func(w string) bool { return w == "" }), "/")
	}
	switch {
	case s.S3 != nil:
		return "s3://" + join(s.S3.Bucket, s.S3.Prefix)
	case s.GCS != nil:
		return "gs://" + join(s.GCS.Bucket, s.GCS.Prefix)
	case s.Azure != nil:
		return "azure://" + join(s.Azure.Container, s.Azure.Prefix)
	case s.Volume != nil:
		return "volume:" + join(s.Volume.ClaimName, s.Volume.SubPath)
	}
	return ""
}

// RestoreOf returns what the custom resource says of its restore; nil in groups that were not made from a backup.
func RestoreOf(cr *v1alpha1.MysqlFailoverGroup) *Restore {
	init, at := cr.Spec.InitFromBackup, cr.Status.Restore
	if init == nil {
		return nil
	}
	namespace, group := cr.Namespace, cr.Name
	if f := init.From; f != nil {
		namespace, group = cmp.Or(f.Namespace, namespace), cmp.Or(f.Group, group)
	}
	r := &Restore{From: namespace + "/" + group, Backup: init.Backup}
	r.Ready, r.Reason, r.Message = said(cr, v1alpha1.ConditionRestoreReady)
	if at == nil {
		return r
	}
	r.Phase, r.Site, r.Location, r.Method = string(at.Phase), at.Site, at.Location, string(at.Method)
	r.Backup, r.StartedAt, r.FinishedAt, r.Progress = cmp.Or(at.Backup, r.Backup), timeOf(at.StartedAt), timeOf(at.FinishedAt), at.Progress
	if at.Reason != "" || at.Message != "" {
		r.Reason, r.Message = at.Reason, at.Message
	}
	return r
}

// backupProblems count against health, but prevent no failover.
func backupProblems(r MysqlFailoverGroupReport) []Problem {
	return matching(r.Conditions, []badCondition{
		{v1alpha1.ConditionBackupReady, metav1.ConditionFalse},
		{v1alpha1.ConditionBackupVerified, metav1.ConditionFalse},
		{v1alpha1.ConditionRestoreReady, metav1.ConditionFalse},
	})
}

// backupHints returns the next steps for a problem with backups or with a restore.
func (r MysqlFailoverGroupReport) backupHints(p Problem) ([]Hint, bool) {
	switch {
	case r.says(v1alpha1.ConditionBackupReady, metav1.ConditionFalse, p.Reason), r.says(v1alpha1.ConditionBackupVerified, metav1.ConditionFalse, p.Reason):
		return []Hint{{"see which backups there are, and why the last one failed", r.verb("backup list", "")},
			{"see what is wrong around them: profiles, Secrets, schedules", r.verb("doctor", "")}}, true
	case r.says(v1alpha1.ConditionPITRReady, metav1.ConditionFalse, p.Reason):
		return []Hint{{"see from when to when the group can be brought back, and what is missing", r.verb("backup timeline", "")},
			{"see what is wrong around it: profile, Secrets, backups to begin with", r.verb("doctor", "")}}, true
	case r.says(v1alpha1.ConditionRestoreReady, metav1.ConditionFalse, p.Reason):
		return []Hint{{"see what the restore waits for", r.verb("events", "") + " --warnings"}}, true
	}
	return nil, false
}
