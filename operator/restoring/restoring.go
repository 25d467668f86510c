// SPDX-License-Identifier: Apache-2.0

// Package restoring makes a new group begin with its backup: it gathers the input of operator/restore, and carries out its decision.
package restoring

import (
	"context"
	"fmt"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"

	"github.com/mysql-mfg/mfg/api/v1alpha1"
	applyv1alpha1 "github.com/mysql-mfg/mfg/api/v1alpha1/applyconfiguration/api/v1alpha1"
	"github.com/mysql-mfg/mfg/operator/keyring"
	"github.com/mysql-mfg/mfg/operator/render"
	"github.com/mysql-mfg/mfg/operator/report/events"
	"github.com/mysql-mfg/mfg/operator/report/metrics"
	"github.com/mysql-mfg/mfg/operator/restore"
	"github.com/mysql-mfg/mfg/operator/scope"
)

var (
	eventRestoreStarted   = events.Normal(v1alpha1.ReasonRestoreStarted, "Restore")
	eventRestoreCompleted = events.Normal(v1alpha1.ReasonRestoreCompleted, "Restore")
	eventRestoreFailed    = events.Warning(v1alpha1.ReasonRestoreFailed, "Retry")
	eventRestoreAgain     = events.Warning(v1alpha1.ReasonRestoreAgain, "Replace")
)

// restoreSeconds is how long restores take.
var restoreSeconds = metrics.Gauge(metrics.Group, "operator_restore_seconds",
	"Seconds from when the restore of a new group began until its first site had all of the data, or until now.")

// restorePending is 1 until a new group has its backup.
var restorePending = metrics.Gauge(metrics.Group, "operator_restore_pending",
	"1 while a new group waits for the data of its backup and nothing opens, 0 once it has it.")

// restoreOutcomes counts restores by outcome.
var restoreOutcomes = metrics.Counter(metrics.Operator, "operator_restores_total",
	"Restores of new groups, by outcome: completed, or failed for a try that ended without the data.", "outcome")

const (
	restoreCompleted = "completed"
	restoreFailed    = "failed"
)

// Options is what New makes Restores from.
type Options struct {
	// Image is true if the operator knows the image of the program that loads backups.
	Image func() bool
	// Proven are the features that this version supports.
	Proven func() v1alpha1.Proven
	// Versions are the keyrings in escrow for a site; none without an escrow listener.
	Versions func(ctx context.Context, namespace, group, site string) ([]keyring.Version, error)
	// Trouble is what keeps a pod from starting, for people; empty normally.
	Trouble func(*corev1.Pod) string
	// Paused says until when a person keeps the operator from replacing pods; empty without a pause.
	Paused func(*scope.Scope) string
	// EndPod deletes a pod, if it still has that UID.
	EndPod func(ctx context.Context, namespace, name string, uid types.UID) error
}

// Restores makes new groups begin with their backups.
type Restores struct {
	*scope.Base
	Options
}

// New makes Restores.
func New(base *scope.Base, o Options) *Restores { return &Restores{Base: base, Options: o} }

// Begin is the phase: it gives the data to the first site, and until that has all of it no other site is made and nothing opens.
func (r *Restores) Begin(ctx context.Context, s *scope.Scope) error {
	look, err := r.look(ctx, s)
	if err != nil {
		return err
	}
	d := restore.Decide(look)
	s.Restore, s.RestorePending, s.RestoreSite = d.Status, d.Pending, d.Site
	if d.Status == nil {
		// Nothing is to be restored, or no longer: a gauge that stayed would alarm for a withdrawn initFromBackup.
		restorePending.DeleteLabelValues(s.Key.Namespace, s.Key.Name)
		restoreSeconds.DeleteLabelValues(s.Key.Namespace, s.Key.Name)
		return nil
	}
	s.Condition(d.Condition)
	if s.Group.IsNew() {
		s.In.Restore = input(s.Group, d.Site)
	}
	r.tell(s, d)
	if !d.Replace {
		return nil
	}
	pod := s.Pods[d.Site]
	r.Recorder.Emit(s.Group, pod, eventRestoreAgain, "The pod of site %s is replaced: the keyring of what was restored went with an earlier one, and a new pod loads it again", d.Site)
	return r.EndPod(ctx, pod.Namespace, pod.Name, pod.UID)
}

// look gathers the input of the decision.
func (r *Restores) look(ctx context.Context, s *scope.Scope) (l restore.Look, err error) {
	l = restore.Look{Now: s.Now, Group: s.Group, Image: r.Image(), Proven: r.Proven(), Location: s.Group.RestoreLocation(), Paused: r.Paused(s)}
	if st := s.Group.Status.Restore; st != nil && scope.IsCurrent(s, st.Site) {
		l.Pod, l.OtherOrder = restore.PodOf(s.Pods[st.Site], r.Trouble(s.Pods[st.Site])), isOtherOrder(s, st.Site)
	}
	if !s.Group.AwaitsRestore() || len(s.Deployments) > 0 {
		return l, nil
	}
	l.Old, err = r.leftBefore(ctx, s)
	return l, err
}

// leftBefore names what an earlier group of the name has left, and the sites of this one would start with: volume claims older than the
// group, and keyrings in escrow.
func (r *Restores) leftBefore(ctx context.Context, s *scope.Scope) (old []string, err error) {
	for _, site := range s.Group.Spec.Sites {
		claim := &corev1.PersistentVolumeClaim{}
		name := v1alpha1.DataVolumeName(s.Key.Name, site.Name)
		// Live: the cache knows only those that have our label.
		err := r.Live.Get(ctx, types.NamespacedName{Namespace: s.Key.Namespace, Name: name}, claim)
		switch {
		case apierrors.IsNotFound(err):
		case err != nil:
			return nil, fmt.Errorf("look at volume claim %s: %w", name, err)
		case !claim.CreationTimestamp.IsZero() && claim.CreationTimestamp.Time.Before(s.Group.CreationTimestamp.Time):
			old = append(old, "volume claim "+name)
		}
		if !scope.Encrypted(s.Group) {
			continue
		}
		versions, err := r.Versions(ctx, s.Key.Namespace, s.Key.Name, site.Name)
		if err != nil {
			return nil, fmt.Errorf("look for keyrings of %s: %w", site.Name, err)
		}
		for _, v := range versions {
			old = append(old, "escrow Secret "+v.Name)
		}
	}
	return old, nil
}

// tell reports how far it is.
func (r *Restores) tell(s *scope.Scope, d restore.Decision) {
	before, st := s.Group.Status.Restore, d.Status
	restoreSeconds.WithLabelValues(s.Key.Namespace, s.Key.Name).Set(restore.Seconds(st, s.Now))
	done := st.Phase == v1alpha1.RestoreCompleted
	pending := 1.0
	if done {
		pending = 0
	}
	restorePending.WithLabelValues(s.Key.Namespace, s.Key.Name).Set(pending)
	failed := ""
	if st.Phase == v1alpha1.RestoreFailed {
		failed = fmt.Sprintf("The restore fails (%s): %s", st.Reason, st.Message)
		if before == nil || before.Phase != v1alpha1.RestoreFailed {
			restoreOutcomes.WithLabelValues(restoreFailed).Inc()
		}
	}
	r.Say(s, "", eventRestoreFailed, failed)
	switch {
	case !d.Pending:
		return
	case done:
		restoreOutcomes.WithLabelValues(restoreCompleted).Inc()
		r.Recorder.Emit(s.Group, r.Related(s, st.Site), eventRestoreCompleted, "Restored in %.0f s: %s", restore.Seconds(st, s.Now), st.Message)
		s.Progress(scope.Moving(st.Reason, st.Message), scope.WhenOvertaken)
	case st.Phase == v1alpha1.RestoreFailed:
		s.Progress(scope.Stuck(st.Reason, st.Message), scope.WhenWaiting)
	case d.Held:
		s.Progress(scope.Stuck(v1alpha1.ReasonPaused, st.Message), scope.WhenWaiting)
	case d.Site == "":
		r.Recorder.Emit(s.Group, nil, eventRestoreStarted, "The group begins with a backup: %s", st.Message)
		s.Progress(scope.Moving(st.Reason, st.Message), scope.WhenOvertaken)
	default:
		s.Progress(scope.Moving(st.Reason, st.Message), scope.WhenMoving)
	}
}

// input returns how to make the pod of a site that begins with the specification's backup; nil if that names no place, or there is
// no such site.
func input(group *v1alpha1.MysqlFailoverGroup, site string) *render.Restore {
	storage, identity, ok := group.Spec.RestoreStorage()
	if !ok {
		return nil
	}
	namespace, name := group.RestoreSource()
	return &render.Restore{Site: site, Backup: group.Spec.InitFromBackup.Backup, PointInTime: group.Spec.InitFromBackup.PointInTime, From: render.BackupAccess{
		Storage: storage, Namespace: namespace, Group: name, IdentitySecret: identity, ReadOnly: true,
	}}
}

// Deployment returns a site's Deployment as it should be. The active site keeps its way to the backup while nothing else about its pod
// changes: removing it would move the role for nothing. What it mounts for that must be certain to exist, and a volume is not.
func Deployment(s *scope.Scope, in render.Input, site v1alpha1.Site) *appsv1.Deployment {
	want, current := render.Deployment(in, site), s.Deployments[site.Name]
	noteOrder(want, in.Restore)
	restored := input(s.Group, site.Name)
	if in.Restore != nil || current == nil || restored == nil || restored.From.Storage.Volume != nil || s.RestoreSite != site.Name || !isOrBecomesActive(s, site.Name) {
		return want
	}
	in.Restore = restored
	if as := render.Deployment(in, site); scope.SpecHash(as) == scope.SpecHash(current) {
		return as
	}
	return want
}

func isOrBecomesActive(s *scope.Scope, site string) bool {
	t := s.Group.Status.Transition
	return site == s.ActiveSite() || t != nil && t.To == site
}

// Apply returns what status says of a restore, ready to be written.
func Apply(st *v1alpha1.RestoreStatus) *applyv1alpha1.RestoreStatusApplyConfiguration {
	out := applyv1alpha1.RestoreStatus().WithPhase(st.Phase).WithReason(st.Reason).WithMessage(st.Message)
	if st.Site != "" {
		out.WithSite(st.Site)
	}
	if st.Location != "" {
		out.WithLocation(st.Location)
	}
	if st.GTIDExecuted != "" {
		out.WithGTIDExecuted(st.GTIDExecuted)
	}
	if st.Backup != "" {
		out.WithBackup(st.Backup)
	}
	if st.Target != "" {
		out.WithTarget(st.Target)
	}
	if st.ReplayedTo != nil {
		out.WithReplayedTo(*st.ReplayedTo)
	}
	if st.Replayed != 0 {
		out.WithReplayed(st.Replayed)
	}
	if st.Method != "" {
		out.WithMethod(st.Method)
	}
	if st.Progress != 0 {
		out.WithProgress(st.Progress)
	}
	if st.StartedAt != nil {
		out.WithStartedAt(*st.StartedAt)
	}
	if st.FinishedAt != nil {
		out.WithFinishedAt(*st.FinishedAt)
	}
	return out
}
