// SPDX-License-Identifier: Apache-2.0

package backups

import (
	"context"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/mysql-mfg/mfg/api/v1alpha1"
	"github.com/mysql-mfg/mfg/operator/backup"
	"github.com/mysql-mfg/mfg/operator/backupjob"
	"github.com/mysql-mfg/mfg/operator/render"
	"github.com/mysql-mfg/mfg/operator/scope"
)

// look is one MysqlBackup and what gather found out about it.
type look struct {
	mb      *v1alpha1.MysqlBackup
	group   *v1alpha1.MysqlFailoverGroup
	profile *v1alpha1.BackupProfile
	seen    scope.GroupFacts
	now     time.Time

	facts backup.Facts
	// made is the Job that makes it, verify and removal the others.
	made, verify, removal attempt
	choice                backup.Choice
	// kept is why the stored backup stays although the MysqlBackup goes; yields why the backup gives way, waits why it does not start.
	kept, yields, waits string
	// leftover is true while a Job of an earlier attempt must be removed.
	leftover bool
}

func (k *look) key() types.NamespacedName { return client.ObjectKeyFromObject(k.mb) }

// defaultDeadline is how long after its creation a backup without a schedule may be started, or tried again.
const defaultDeadline = time.Hour

// gather finds out what the decision needs.
func (b *Backups) gather(ctx context.Context, mb *v1alpha1.MysqlBackup) (*look, error) {
	k := &look{mb: mb, now: b.Now()}
	group := &v1alpha1.MysqlFailoverGroup{}
	err := b.Client.Get(ctx, types.NamespacedName{Namespace: mb.Namespace, Name: mb.Spec.Group}, group)
	switch {
	case err == nil:
		k.group, k.profile = group, profileOf(group, mb.Spec.Profile)
	case !apierrors.IsNotFound(err):
		return nil, fmt.Errorf("read group: %w", err)
	}
	if err := b.jobs(ctx, k); err != nil {
		return nil, err
	}
	f := &k.facts
	f.Phase, f.Deleted, f.Profile = mb.Status.Phase, mb.DeletionTimestamp != nil, k.profile != nil
	f.Job, f.Stored = k.made.job, k.made.stored(mb.Name)
	f.Retry = k.made.class().Passes()
	if f.Deleted {
		b.gatherRemoval(k)
		return k, nil
	}
	f.Late = k.now.After(k.deadline())
	if k.profile == nil {
		b.turns.cannot(k.key())
		return k, nil
	}
	// Another attempt would be stored elsewhere, and what the one before may have stored would be named by nothing any more.
	f.Moved = mb.Status.Attempts > 0 && k.elsewhere()
	f.Expired = mb.Status.StartedAt != nil && k.now.After(mb.Status.StartedAt.Add(k.job(b.Install).Timeout()+overdue))
	f.Stuck = mb.Status.StartedAt != nil && !k.made.started && k.now.After(mb.Status.StartedAt.Add(overdue))
	seen, known := b.Facts.Sites(mb.Namespace, mb.Spec.Group)
	k.seen = seen
	if known {
		if f.Phase == v1alpha1.BackupRunning {
			reason, why := backup.Yield(groupFacts(group, seen), mb.Status.Site, prefer(k.profile))
			f.Yield, k.yields = reason != "", why
		}
		k.choice = backup.Choose(groupFacts(group, seen), k.source())
	} else {
		k.choice = backup.Choice{Reason: v1alpha1.ReasonNoBackupSource, Message: "the operator has not looked at the sites of the group yet"}
	}
	return k, b.gatherTurn(ctx, k)
}

// overdue is how long after its timeout an attempt is stopped: the Job ends it earlier. It is also how long its pod may take to start.
const overdue = 12 * time.Minute

// gatherTurn says whether it may start now. A backup that cannot start takes no turn from others.
func (b *Backups) gatherTurn(ctx context.Context, k *look) (err error) {
	f := &k.facts
	if f.Phase != "" && f.Phase != v1alpha1.BackupPending {
		return nil
	}
	st := k.mb.Status
	started := time.Time{}
	if st.StartedAt != nil {
		started = st.StartedAt.Time
	}
	last := backup.ClassLost
	if st.Reason == v1alpha1.ReasonBackupYielded || st.Reason == v1alpha1.ReasonBackupWaitsForFailover {
		last = backup.ClassYielded
	}
	again := backup.NotBefore(started, st.Attempts, last)
	k.leftover = k.made.job == backup.JobSucceeded || k.made.job == backup.JobFailed
	switch {
	case k.leftover:
		k.waits = "the Job of the attempt before is being removed"
	case b.Install.BackupImage == "":
		k.waits = "the operator was installed without the image that makes backups: set backupImage of the chart, or --backup-image"
	case st.Attempts > 0 && k.now.Before(again):
		k.waits = st.Message // people want to read what ended the previous attempt
	case k.choice.Site == "":
		b.turns.cannot(k.key())
		f.Turn = true // the table says that there is no site
		return nil
	}
	if k.waits != "" {
		b.turns.cannot(k.key())
		return nil
	}
	f.Site = k.choice.Site
	if f.Late || f.Moved {
		return nil
	}
	f.Turn, err = b.turn(ctx, k.mb)
	k.waits = "it waits for its turn: as many backups are made as are allowed at once"
	return err
}

// gatherRemoval says whether anything is left in the storage, and whether to remove it.
func (b *Backups) gatherRemoval(k *look) {
	f := &k.facts
	if k.verify.job == backup.JobRunning {
		f.Job = backup.JobRunning
	}
	f.Removed = k.mb.Status.Attempts == 0 && k.mb.Status.Phase != v1alpha1.BackupCompleted || k.removal.job == backup.JobSucceeded
	switch {
	case f.Removed:
	case k.mb.Annotations[v1alpha1.AnnotationKeepArtifact] == "true":
		k.kept = "the annotation " + v1alpha1.AnnotationKeepArtifact + " says so"
	case k.profile == nil:
		k.kept = "the profile that knows the storage is gone; remove it there by hand if it is not wanted"
	case k.elsewhere():
		// The storage that the profile names now has nothing of it, and finding nothing there would pass for a removal.
		k.kept = "the profile has another storage now; remove it there by hand if it is not wanted"
	case k.removal.result.Reason == string(v1alpha1.ReasonNoDeleteRight):
		k.kept = "the credentials of the storage may not delete; remove it there by hand, or by a rule of the bucket"
	}
	f.Keep = k.kept != ""
	if b.turns.waits(k.key()) {
		k.waits = "it waits for its turn: as many removals run as are allowed at once"
	}
}

// deadline is until when it may be started. Without its profile, and so without a startingDeadline, it is the default.
func (k *look) deadline() time.Time {
	at, after := k.mb.CreationTimestamp.Time, deadlineOf(k.profile)
	if t, err := time.Parse(time.RFC3339, k.mb.Annotations[v1alpha1.AnnotationScheduledAt]); err == nil {
		at = t
	}
	return at.Add(after)
}

// deadlineOf is how long after its time a backup of a profile may start.
func deadlineOf(p *v1alpha1.BackupProfile) time.Duration {
	if p != nil && p.Schedule != nil && p.Schedule.StartingDeadline.Duration > 0 {
		return p.Schedule.StartingDeadline.Duration
	}
	return defaultDeadline
}

func prefer(p *v1alpha1.BackupProfile) v1alpha1.BackupPrefer {
	if p.Source.Prefer == "" {
		return v1alpha1.BackupPreferDROnly
	}
	return p.Source.Prefer
}

const defaultMaxLag = 5 * time.Minute

func (k *look) source() backup.Source {
	s := backup.Source{Prefer: prefer(k.profile), MaxLag: k.profile.Source.MaxLag.Duration}
	if s.MaxLag <= 0 {
		s.MaxLag = defaultMaxLag
	}
	if k.mb.Status.Site != "" {
		s.Avoid = []string{k.mb.Status.Site}
	}
	return s
}

// job is what the Jobs of the backup depend on.
func (k *look) job(install render.Install) backupjob.Job {
	return backupjob.Job{Group: k.group, Profile: *k.profile, Install: install, Account: account, Backup: k.mb}
}

// groupFacts are the poll loop's facts in the words of operator/backup. Unknown is false: a site counts as what the loop shows.
func groupFacts(group *v1alpha1.MysqlFailoverGroup, seen scope.GroupFacts) backup.Group {
	out := backup.Group{Target: seen.Target, ActiveInDoubt: seen.InDoubt}
	provisioned := map[string]bool{}
	for _, st := range group.Status.Sites {
		provisioned[st.Name] = st.Provisioned
	}
	for _, site := range group.Spec.Sites {
		f := seen.Sites[site.Name]
		out.Sites = append(out.Sites, backup.Site{
			Name: site.Name, Candidate: site.Role == v1alpha1.PrimaryCandidate, Active: site.Name == seen.ActiveSite, Reachable: f.MysqlUp,
			Replicating: f.Following, Lag: f.Lag, LagKnown: f.LagKnown, HasData: provisioned[site.Name], Cloning: f.Cloning || f.Busy == busyClone,
			Rotating: f.Busy == busyRotation, Leaving: f.Leaving != "", Diverged: f.Diverged, PreparedXA: f.PreparedXA, Filtered: f.Filtered,
		})
	}
	return out
}

// Values of SiteFacts.Busy.
const (
	busyClone    = "Clone"
	busyRotation = "Rotation"
)

// siteOf returns a site of the specification; if it has left it, an empty one with its name.
func siteOf(group *v1alpha1.MysqlFailoverGroup, name string) v1alpha1.Site {
	for _, s := range group.Spec.Sites {
		if s.Name == name {
			return s
		}
	}
	return v1alpha1.Site{Name: name}
}

// terminated is how the working container ended; nil if it has not yet.
func terminated(pod *corev1.Pod) *corev1.ContainerStateTerminated {
	for _, c := range pod.Status.ContainerStatuses {
		if c.Name == backupjob.Container {
			return c.State.Terminated
		}
	}
	return nil
}
