// SPDX-License-Identifier: Apache-2.0

package backups

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"
	_ "time/tzdata" // the image of the operator has no files of time zones, and schedule.timeZone names one

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/mysql-mfg/mfg/api/v1alpha1"
	"github.com/mysql-mfg/mfg/operator/backup"
	"github.com/mysql-mfg/mfg/operator/backupjob"
)

// groupLook is a group with its backups.
type groupLook struct {
	group *v1alpha1.MysqlFailoverGroup
	key   types.NamespacedName
	now   time.Time
	// of are the MysqlBackups by profile.
	of map[string][]v1alpha1.MysqlBackup
	// verifying are the UIDs of those that a Job verifies now.
	verifying map[types.UID]bool
	// profiles are the new status of the profiles, by name.
	profiles []v1alpha1.BackupProfileStatus
	ready    []named
	verified []named
	again    time.Duration
}

// named is the State of a profile.
type named struct {
	profile string
	state   backup.State
}

// ReconcileGroup acts on the schedules and rules of one group: it makes and verifies what is due, and removes what no rule keeps.
func (b *Backups) ReconcileGroup(ctx context.Context, req reconcile.Request) (reconcile.Result, error) {
	group := &v1alpha1.MysqlFailoverGroup{}
	if err := b.Client.Get(ctx, req.NamespacedName, group); err != nil {
		if apierrors.IsNotFound(err) {
			b.hide(req.NamespacedName, nil)
			return reconcile.Result{}, nil
		}
		return reconcile.Result{}, fmt.Errorf("read group: %w", err)
	}
	if group.DeletionTimestamp != nil || group.Spec.Backup == nil && group.Status.Backup == nil {
		return reconcile.Result{}, nil
	}
	if !b.mine(group) {
		b.hide(req.NamespacedName, nil)
		return reconcile.Result{}, nil
	}
	g := &groupLook{group: group, key: req.NamespacedName, now: b.Now(), again: whenSettled}
	if err := b.gatherGroup(ctx, g); err != nil {
		return reconcile.Result{}, err
	}
	var profiles []v1alpha1.BackupProfile
	if group.Spec.Backup != nil {
		profiles = group.Spec.Backup.Profiles
	}
	var failed []error
	for i := range profiles {
		// What fails for one profile keeps nothing from the others, and no status from being written: a time that is dealt with must not be lost.
		if err := b.profile(ctx, g, &profiles[i]); err != nil {
			failed = append(failed, fmt.Errorf("profile %s: %w", profiles[i].Name, err))
		}
	}
	g.withoutProfile(profiles)
	err := b.writeGroup(ctx, g)
	switch {
	case err == nil:
		b.show(g)
	case apierrors.IsConflict(err) && len(failed) == 0:
		return reconcile.Result{RequeueAfter: whenOvertaken}, nil
	}
	if err := errors.Join(append(failed, err)...); err != nil {
		return reconcile.Result{}, err
	}
	return reconcile.Result{RequeueAfter: max(g.again, time.Second)}, nil
}

func (b *Backups) gatherGroup(ctx context.Context, g *groupLook) error {
	var all v1alpha1.MysqlBackupList
	if err := b.Client.List(ctx, &all, client.InNamespace(g.key.Namespace), client.MatchingFields{indexGroup: g.key.Name}); err != nil {
		return fmt.Errorf("list backups: %w", err)
	}
	g.of = map[string][]v1alpha1.MysqlBackup{}
	for _, mb := range all.Items {
		g.of[mb.Spec.Profile] = append(g.of[mb.Spec.Profile], mb)
	}
	var err error
	g.verifying, err = verifying(ctx, b.Client, g.key, g.now)
	return err
}

// before returns what status says of a profile.
func (g *groupLook) before(profile string) v1alpha1.BackupProfileStatus {
	if g.group.Status.Backup != nil {
		for _, p := range g.group.Status.Backup.Profiles {
			if p.Name == profile {
				return p
			}
		}
	}
	return v1alpha1.BackupProfileStatus{}
}

func (g *groupLook) soon(at time.Time) {
	if !at.IsZero() {
		g.again = min(g.again, at.Sub(g.now))
	}
}

// profile does what is due for one profile, and sums it up. A step that fails keeps no other from being taken.
func (b *Backups) profile(ctx context.Context, g *groupLook, p *v1alpha1.BackupProfile) error {
	st := g.before(p.Name)
	out := g.summary(p.Name)
	made, tried := recurrence{st.Schedule, st.ScheduleSince, st.LastScheduled}, recurrence{st.VerificationSchedule, st.VerificationSince, st.VerificationScheduled}
	made, tried = made.by(schedulesOf(p).made, deadlineOf(p), g.now), tried.by(schedulesOf(p).tried, 0, g.now)
	out.Schedule, out.ScheduleSince, out.LastScheduled = made.schedule, made.since, made.last
	out.VerificationSchedule, out.VerificationSince, out.VerificationScheduled = tried.schedule, tried.since, tried.last
	h, trouble := g.health(p, out.LastScheduled)
	h.HeldSince, h.VerificationSince = timeIn(made.since), timeIn(tried.since)
	// By the schedule of now: what another one missed is not missing any more.
	h.Missed = st.LastScheduled != nil && made.since.Equal(st.ScheduleSince) && (st.Reason == v1alpha1.ReasonNoBackupYet || st.Reason == v1alpha1.ReasonBackupOverdue)
	var failed []error
	if trouble == nil {
		failed = append(failed, b.schedule(ctx, g, p, h, &out), b.scheduleVerification(ctx, g, h, &out))
	}
	held, err := b.expire(ctx, g, p, h.All)
	failed = append(failed, err, b.sweep(ctx, g, p, out.LastAttempt))
	ready := h.Ready(g.now)
	switch {
	case b.Install.BackupImage == "":
		ready = backup.State{Reason: v1alpha1.ReasonBackupImageMissing, Message: "the operator was installed without the image that makes backups: set backupImage of the chart, or --backup-image"}
	case trouble != nil:
		ready = backup.State{Reason: v1alpha1.ReasonBackupScheduleUnusable, Message: trouble.Error()}
	}
	switch {
	case !ready.OK && !ready.Awaited:
		out.Reason, out.Message = ready.Reason, clip(ready.Message)
	case held != "":
		out.Reason, out.Message = v1alpha1.ReasonRetentionHeld, clip(held)
	}
	g.ready = append(g.ready, named{p.Name, ready})
	if p.Verification != nil {
		g.verified = append(g.verified, named{p.Name, h.Verified(g.now)})
	}
	g.profiles = append(g.profiles, out)
	return errors.Join(failed...)
}

// health gathers what is known of the profile's backups.
func (g *groupLook) health(p *v1alpha1.BackupProfile, since *metav1.Time) (backup.Health, error) {
	h := backup.Health{All: g.artifacts(p), Timeout: backupjob.Job{Profile: *p}.Timeout()}
	if since != nil {
		h.Since = since.Time
	}
	for _, mb := range g.of[p.Name] {
		st := mb.Status
		h.Running = h.Running || mb.DeletionTimestamp == nil && st.Phase != v1alpha1.BackupFailed && st.Phase != v1alpha1.BackupCompleted
		if st.Phase == v1alpha1.BackupFailed && st.FinishedAt != nil && st.FinishedAt.After(h.FailedAt) && !st.FinishedAt.After(g.now) {
			h.FailedAt, h.FailedName, h.FailedMessage = st.FinishedAt.Time, mb.Name, cmp.Or(st.Message, string(st.Reason))
		}
	}
	g.verifications(p.Name, &h)
	who, zone := g.key.String()+"/"+p.Name, time.UTC
	if s := p.Schedule; s != nil {
		var err error
		if zone, err = time.LoadLocation(cmp.Or(s.TimeZone, "UTC")); err != nil {
			return h, fmt.Errorf("schedule.timeZone %q is not known: use a name such as Europe/Berlin", s.TimeZone)
		}
		cron, err := backup.ParseCron(s.Cron, zone)
		if err != nil {
			return h, fmt.Errorf("schedule.cron: %w", err)
		}
		h.HasSchedule = true
		h.Schedule = backup.Schedule{Cron: cron, Suspend: s.Suspend, Deadline: deadlineOf(p), Who: who}
	}
	if v := p.Verification; v != nil {
		h.HasVerification, h.Verification = true, backup.Verification{AfterEvery: int(v.AfterEvery), Who: who + "/verify"}
		if v.Cron != "" {
			cron, err := backup.ParseCron(v.Cron, zone)
			if err != nil {
				return h, fmt.Errorf("verification.cron: %w", err)
			}
			h.Verification.Cron, h.Verification.HasCron = cron, true
		}
	}
	return h, nil
}

// verifications finds the last verifications, and the newest that waits.
func (g *groupLook) verifications(profile string, h *backup.Health) {
	var last, waits time.Time
	for _, mb := range g.of[profile] {
		if w, at := mb.Status.VerificationWaits, mb.CreationTimestamp.Time; w != nil && (h.Waits == "" || at.After(waits)) {
			waits, h.Waits = at, fmt.Sprintf("that of %s is tried again: %s", mb.Name, w.Message)
		}
		v := mb.Status.Verified
		if v == nil || v.At == nil || mb.Status.Phase != v1alpha1.BackupCompleted {
			continue
		}
		if v.Outcome == v1alpha1.BackupPassed && v.At.After(h.VerifiedAt) {
			h.VerifiedAt = v.At.Time
		}
		if v.At.After(last) {
			last, h.NotRestorable, h.NotRestorableMessage = v.At.Time, "", ""
			if v.Outcome != v1alpha1.BackupPassed {
				h.NotRestorable, h.NotRestorableMessage = mb.Name, v.Message
			}
		}
	}
}

// artifacts returns the completed backups of a profile.
func (g *groupLook) artifacts(p *v1alpha1.BackupProfile) []backup.Artifact {
	var out []backup.Artifact
	place := placeOf(p, g.key.Namespace, g.key.Name)
	for _, mb := range g.of[p.Name] {
		st := mb.Status
		if st.Phase != v1alpha1.BackupCompleted || st.FinishedAt == nil || mb.DeletionTimestamp != nil {
			continue
		}
		out = append(out, backup.Artifact{
			Name: mb.Name, FinishedAt: st.FinishedAt.Time, Tried: st.Verified != nil, Verified: st.Verified != nil && st.Verified.Outcome == v1alpha1.BackupPassed,
			Verifying: g.verifying[mb.UID],
			// A verification that waits may wait for good, and then the backup must not stay for good. One that runs reads it.
			InUse:     g.verifying[mb.UID] || mb.Annotations[v1alpha1.AnnotationVerifyBackup] != "" && st.VerificationWaits == nil,
			Elsewhere: isElsewhere(&st, place),
		})
	}
	base := g.base(p.Name, out)
	for i := range out {
		out[i].InUse = out[i].InUse || out[i].Name == base
	}
	return out
}

// base returns the backup that the archive of binary logs builds upon, if it is of this profile.
func (g *groupLook) base(profile string, all []backup.Artifact) string {
	spec, status := g.group.Spec.Backup, g.group.Status.Backup
	if spec == nil || spec.PITR == nil || !spec.PITR.Enabled || spec.PITR.Profile != profile || status == nil || status.PITR == nil || status.PITR.Latest == nil {
		return ""
	}
	return backup.Base(all, status.PITR.Latest.Time)
}

// schedule makes the backup that is due. Its name follows from its time, so that a second try makes no second backup.
func (b *Backups) schedule(ctx context.Context, g *groupLook, p *v1alpha1.BackupProfile, h backup.Health, out *v1alpha1.BackupProfileStatus) error {
	if !h.HasSchedule || b.Install.BackupImage == "" {
		return nil // no Job could make it; the condition says so
	}
	due := h.Schedule.Decide(out.LastScheduled.Time, g.now)
	if !due.Next.IsZero() && !h.Schedule.Suspend {
		out.Next = timeOf(due.Next)
		g.soon(due.Next)
	}
	if !due.At.IsZero() {
		if err := b.makeScheduled(ctx, g, p.Name, due.At); err != nil {
			return err
		}
	}
	if !due.Missed.IsZero() {
		b.Recorder.Emit(g.group, nil, eventMissed, "The backup of profile %s that was due at %s was not made: no operator ran to start it before its startingDeadline",
			p.Name, due.Missed.UTC().Format(time.RFC3339))
	}
	out.LastScheduled = timeOf(due.Seen)
	return nil
}

// makeScheduled makes the MysqlBackup for a time of a schedule. An existing one will do, unless it belongs to another group or profile: then this one
// gets its other name.
func (b *Backups) makeScheduled(ctx context.Context, g *groupLook, profile string, at time.Time) error {
	names := []string{v1alpha1.ScheduledBackup(g.key.Name, profile, at), v1alpha1.ScheduledBackupApart(g.key.Name, profile, at)}
	for _, name := range names {
		mb := &v1alpha1.MysqlBackup{
			ObjectMeta: metav1.ObjectMeta{
				Namespace: g.key.Namespace, Name: name,
				Labels: map[string]string{
					v1alpha1.LabelName: v1alpha1.NameBackup, v1alpha1.LabelManagedBy: v1alpha1.ManagedByOperator, v1alpha1.LabelGroup: g.key.Name,
					v1alpha1.LabelBackupProfile: profile,
				},
				Annotations: map[string]string{v1alpha1.AnnotationScheduledAt: at.UTC().Format(time.RFC3339)},
			},
			Spec: v1alpha1.MysqlBackupSpec{Group: g.key.Name, Profile: profile},
		}
		err := b.Client.Create(ctx, mb, client.FieldOwner(v1alpha1.ManagerBackup))
		if err == nil {
			return nil
		}
		if !apierrors.IsAlreadyExists(err) {
			return fmt.Errorf("make backup %s: %w", name, err)
		}
		stands := &v1alpha1.MysqlBackup{}
		if err := b.Live.Get(ctx, client.ObjectKeyFromObject(mb), stands); err != nil {
			return fmt.Errorf("read backup %s: %w", name, err)
		}
		if stands.Spec.Group == g.key.Name && stands.Spec.Profile == profile {
			return nil
		}
	}
	return fmt.Errorf("make backup %s: others have its names: remove them", names[0])
}
