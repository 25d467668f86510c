// SPDX-License-Identifier: Apache-2.0

package backups

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	applymetav1 "k8s.io/client-go/applyconfigurations/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/mysql-mfg/mfg/api/v1alpha1"
	applyv1alpha1 "github.com/mysql-mfg/mfg/api/v1alpha1/applyconfiguration/api/v1alpha1"
	"github.com/mysql-mfg/mfg/operator/report/conditions"
)

// summary sums up the MysqlBackups of a profile.
func (g *groupLook) summary(profile string) v1alpha1.BackupProfileStatus {
	out := v1alpha1.BackupProfileStatus{Name: profile}
	for i := range g.of[profile] {
		mb := &g.of[profile][i]
		st := mb.Status
		if st.StartedAt != nil && (out.LastAttempt == nil || st.StartedAt.After(out.LastAttempt.Time)) {
			out.LastAttempt = timeOf(st.StartedAt.Time)
		}
		if st.Phase == v1alpha1.BackupRunning {
			out.Running = mb.Name
		}
		if st.Phase != v1alpha1.BackupCompleted || st.FinishedAt == nil || mb.DeletionTimestamp != nil {
			continue
		}
		if !g.former(mb) {
			out.Backups++
			out.Bytes += st.Bytes
		}
		if out.LastSuccess == nil || st.FinishedAt.After(out.LastSuccess.Time) {
			out.LastSuccess, out.LastBackup = timeOf(st.FinishedAt.Time), mb.Name
		}
		v := st.Verified
		if v != nil && v.At != nil && v.Outcome == v1alpha1.BackupPassed && (out.VerifiedAt == nil || v.At.After(out.VerifiedAt.Time)) {
			out.VerifiedAt, out.LastVerified, out.RestoreSeconds = timeOf(v.At.Time), mb.Name, v.RestoreSeconds
		}
	}
	return out
}

// former is true for a backup that a group of the same name made before this one existed. Its place in the storage belongs to that group for
// good, known by its UID: this group can make none there, so it must be free to choose another.
func (g *groupLook) former(mb *v1alpha1.MysqlBackup) bool {
	began := mb.Status.StartedAt
	return began != nil && began.Time.Before(g.group.CreationTimestamp.Time)
}

// withoutProfile adds profiles that have left the specification: their backups stay, and get no more work.
func (g *groupLook) withoutProfile(profiles []v1alpha1.BackupProfile) {
	for name := range g.of {
		if !slices.ContainsFunc(profiles, func(p v1alpha1.BackupProfile) bool { return p.Name == name }) {
			g.profiles = append(g.profiles, g.summary(name))
		}
	}
	slices.SortFunc(g.profiles, func(a, b v1alpha1.BackupProfileStatus) int { return strings.Compare(a.Name, b.Name) })
	// Status holds no more; the ones beyond have left the specification.
	g.profiles = g.profiles[:min(len(g.profiles), statusProfilesMax)]
}

const statusProfilesMax = 64

// condition is that of all profiles together.
func condition(kind string, ok v1alpha1.Reason, all []named) conditions.Condition {
	// What is wrong comes before what is only awaited: one profile's schedule must not hide the failure of another.
	if reason, text := notOK(all, false); text != "" {
		return conditions.False(kind, reason, text)
	}
	if reason, text := notOK(all, true); text != "" {
		return conditions.Unknown(kind, reason, text)
	}
	return conditions.True(kind, ok, "so it is for every profile")
}

// notOK is what profiles say that are not as they should be, or whose first backup is awaited, with the reason of the first of them.
func notOK(all []named, awaited bool) (first v1alpha1.Reason, text string) {
	var texts []string
	for _, n := range all {
		if n.state.OK || n.state.Awaited != awaited {
			continue
		}
		first = cmp.Or(first, n.state.Reason)
		texts = append(texts, "profile "+n.profile+": "+n.state.Message)
	}
	return first, strings.Join(texts, "; ")
}

// writeGroup writes the part of the group's status about backups, if it has changed.
func (b *Backups) writeGroup(ctx context.Context, g *groupLook) error {
	var wanted []metav1.Condition
	current := g.group.Status.Conditions
	for _, c := range []struct {
		kind string
		ok   v1alpha1.Reason
		all  []named
	}{{v1alpha1.ConditionBackupReady, v1alpha1.ReasonBackupsMade, g.ready}, {v1alpha1.ConditionBackupVerified, v1alpha1.ReasonBackupVerified, g.verified}} {
		if len(c.all) > 0 {
			wanted = append(wanted, conditions.Stamp(current, condition(c.kind, c.ok, c.all), g.group.Generation, g.now))
		}
	}
	if g.same(wanted) {
		return nil
	}
	status := applyv1alpha1.MysqlFailoverGroupStatus()
	if len(g.profiles) > 0 {
		all := applyv1alpha1.BackupStatus()
		for i := range g.profiles {
			all.WithProfiles(profileApply(&g.profiles[i]))
		}
		status.WithBackup(all)
	}
	for _, c := range wanted {
		status.WithConditions(applymetav1.Condition().WithType(c.Type).WithStatus(c.Status).WithReason(c.Reason).WithMessage(c.Message).
			WithObservedGeneration(c.ObservedGeneration).WithLastTransitionTime(c.LastTransitionTime))
	}
	config := applyv1alpha1.MysqlFailoverGroup(g.key.Name, g.key.Namespace).WithUID(g.group.UID).WithStatus(status)
	err := b.Client.Status().Apply(ctx, config, client.FieldOwner(v1alpha1.ManagerBackupStatus), client.ForceOwnership)
	if err != nil && !apierrors.IsNotFound(err) {
		return fmt.Errorf("write status of backups: %w", err)
	}
	return nil
}

func (g *groupLook) same(wanted []metav1.Condition) bool {
	var before []v1alpha1.BackupProfileStatus
	if g.group.Status.Backup != nil {
		before = g.group.Status.Backup.Profiles
	}
	if !equality.Semantic.DeepEqual(before, g.profiles) {
		return false
	}
	current := g.group.Status.Conditions
	for _, kind := range []string{v1alpha1.ConditionBackupReady, v1alpha1.ConditionBackupVerified} {
		at := slices.IndexFunc(wanted, func(c metav1.Condition) bool { return c.Type == kind })
		stands := meta.FindStatusCondition(current, kind)
		if (at < 0) != (stands == nil) || at >= 0 && (conditions.Changed(current, wanted[at]) || stands.ObservedGeneration != wanted[at].ObservedGeneration) {
			return false
		}
	}
	return true
}

func profileApply(p *v1alpha1.BackupProfileStatus) *applyv1alpha1.BackupProfileStatusApplyConfiguration {
	out := applyv1alpha1.BackupProfileStatus().WithName(p.Name).WithBackups(p.Backups).WithBytes(p.Bytes)
	for _, t := range []struct {
		at  *metav1.Time
		set func(metav1.Time) *applyv1alpha1.BackupProfileStatusApplyConfiguration
	}{
		{p.LastSuccess, out.WithLastSuccess}, {p.LastAttempt, out.WithLastAttempt}, {p.LastScheduled, out.WithLastScheduled}, {p.Next, out.WithNext},
		{p.VerifiedAt, out.WithVerifiedAt}, {p.VerificationScheduled, out.WithVerificationScheduled}, {p.ScheduleSince, out.WithScheduleSince},
		{p.VerificationSince, out.WithVerificationSince},
	} {
		if t.at != nil {
			t.set(*t.at)
		}
	}
	for _, t := range []struct {
		text string
		set  func(string) *applyv1alpha1.BackupProfileStatusApplyConfiguration
	}{
		{p.Running, out.WithRunning}, {p.LastBackup, out.WithLastBackup}, {p.LastVerified, out.WithLastVerified}, {p.Message, out.WithMessage},
		{p.Schedule, out.WithSchedule}, {p.VerificationSchedule, out.WithVerificationSchedule},
	} {
		if t.text != "" {
			t.set(t.text)
		}
	}
	if p.Reason != "" {
		out.WithReason(p.Reason)
	}
	if p.RestoreSeconds > 0 {
		out.WithRestoreSeconds(p.RestoreSeconds)
	}
	return out
}

// show shows the metrics of the group's profiles.
func (b *Backups) show(g *groupLook) {
	var names []string
	ns, group := g.key.Namespace, g.key.Name
	for _, p := range g.profiles {
		names = append(names, p.Name)
		metricCount.WithLabelValues(ns, group, p.Name).Set(float64(p.Backups))
		metricRunning.WithLabelValues(ns, group, p.Name).Set(oneIf(p.Running != ""))
		if p.LastSuccess != nil {
			metricLastSuccess.WithLabelValues(ns, group, p.Name).Set(float64(p.LastSuccess.Unix()))
		}
		if p.VerifiedAt != nil {
			metricVerifiedAt.WithLabelValues(ns, group, p.Name).Set(float64(p.VerifiedAt.Unix()))
			metricRestoreSeconds.WithLabelValues(ns, group, p.Name).Set(float64(p.RestoreSeconds))
		}
		for _, mb := range g.of[p.Name] {
			if st := mb.Status; mb.Name == p.LastBackup && st.StartedAt != nil && st.FinishedAt != nil {
				metricDuration.WithLabelValues(ns, group, p.Name).Set(st.FinishedAt.Sub(st.StartedAt.Time).Seconds())
				metricBytes.WithLabelValues(ns, group, p.Name).Set(float64(st.Bytes))
			}
		}
	}
	for _, p := range names {
		// A profile that has left the specification, or lost its verification, must not alarm anybody with what it said last.
		if !slices.ContainsFunc(g.ready, func(n named) bool { return n.profile == p }) {
			metricReady.DeleteLabelValues(ns, group, p)
		}
		if !slices.ContainsFunc(g.verified, func(n named) bool { return n.profile == p }) {
			metricVerified.DeleteLabelValues(ns, group, p)
		}
	}
	for _, n := range g.ready {
		metricReady.WithLabelValues(ns, group, n.profile).Set(oneIf(n.state.OK || n.state.Awaited))
	}
	for _, n := range g.verified {
		metricVerified.WithLabelValues(ns, group, n.profile).Set(oneIf(n.state.OK))
	}
	b.hide(g.key, names)
}

func oneIf(yes bool) float64 {
	if yes {
		return 1
	}
	return 0
}

// hide deletes the metrics of profiles that are no longer shown.
func (b *Backups) hide(key types.NamespacedName, but []string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, profile := range b.shown[key] {
		if slices.Contains(but, profile) {
			continue
		}
		labels := prometheus.Labels{"mysql_namespace": key.Namespace, "failover_group": key.Name, "profile": profile}
		for _, m := range []interface{ DeletePartialMatch(prometheus.Labels) int }{
			metricReady, metricVerified, metricLastSuccess, metricVerifiedAt, metricRestoreSeconds, metricDuration, metricBytes, metricCount, metricRunning, metricFailures,
		} {
			m.DeletePartialMatch(labels)
		}
	}
	if b.shown[key] = but; len(but) == 0 {
		delete(b.shown, key)
	}
}
