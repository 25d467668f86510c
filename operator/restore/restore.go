// SPDX-License-Identifier: Apache-2.0

// Package restore decides how far a new group is that begins with a backup (spec.initFromBackup), and which of its sites may have a pod
// meanwhile. It is pure. Until the first site has all of the data, no other site is made and nothing opens (I25). If that fails, status
// tells the way out, and the restore is tried again.
package restore

import (
	"fmt"
	"slices"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/mysql-mfg/mfg/api/v1alpha1"
	"github.com/mysql-mfg/mfg/operator/report/conditions"
)

// Look is the input of a decision.
type Look struct {
	Now   time.Time
	Group *v1alpha1.MysqlFailoverGroup
	// Proven are the features that this version supports: a restore to a point in time does not run without its own.
	Proven v1alpha1.Proven
	// Image is true if the operator knows the image of the program that loads backups.
	Image bool
	// Location is where to look for the backup; empty if the specification names no place.
	Location string
	// Paused says until when a person keeps the operator from replacing pods; normally empty.
	Paused string
	// Old is what an earlier group of the name has left, by kind and name: volume claims, keyrings.
	Old []string
	// Pod is the pod of the site that is restored; nil if there is none, or not yet the one that its Deployment wants.
	Pod *Pod
	// OtherOrder is true if that pod was made to load something else than the specification names now.
	OtherOrder bool
}

// Decision is what Decide answers.
type Decision struct {
	// Status is the new status.restore; nil for a group that was not restored.
	Status *v1alpha1.RestoreStatus
	// Condition is RestoreReady; empty without a restore.
	Condition conditions.Condition
	// Pending is true while the restore is not done: then only Site may have a pod, and no site if it is empty.
	Pending bool
	Site    string
	// Replace is true if the site's pod can no longer get the data: only a new one loads it again.
	Replace bool
	// Held is true if only the end of a pause brings the restore further.
	Held bool
}

// MayRun says whether a site may have a pod.
func (d Decision) MayRun(site string) bool { return !d.Pending || d.Site == site }

// Decide answers what to do about a group.
func Decide(l Look) Decision {
	g := l.Group
	before := g.Status.Restore.DeepCopy()
	switch {
	case g.IsNew() && g.Spec.InitFromBackup == nil:
		return Decision{} // withdrawn, or never asked for
	case !g.AwaitsRestore() && !(g.IsNew() && (l.OtherOrder || l.Pod.loadsAgain(l.Now))):
		return settled(before)
	}
	d := Decision{Pending: true, Status: before}
	if d.Status == nil {
		d.Status = &v1alpha1.RestoreStatus{}
	}
	st := d.Status
	if st.Phase == v1alpha1.RestoreCompleted {
		st.Progress = 0 // all of it is done again
	}
	if l.OtherOrder || st.Location != "" && st.Location != l.Location {
		st.Backup, st.Method, st.GTIDExecuted, st.Replayed, st.ReplayedTo = "", "", "", 0, nil // all of that was of the former order
	}
	st.Location, st.FinishedAt, st.Target = l.Location, nil, g.Spec.InitFromBackup.PointInTime.String()
	if want := g.Spec.InitFromBackup.Backup; want != "" {
		st.Backup = want
	}
	switch site := siteOf(g, st.Site); {
	case site == "":
		return d.fail(v1alpha1.ReasonRestoreNoSite, "no site may be the first one that is open: make one a primary-candidate in spec.sites")
	case len(l.Proven.MustNotRun(&g.Spec)) > 0:
		return d.fail(v1alpha1.ReasonNotBuilt, "this version does not stand for a restore to a point in time yet: remove initFromBackup.pointInTime to have the backup alone")
	case len(l.Old) > 0:
		return d.fail(v1alpha1.ReasonRestoreVolumeNotNew, fmt.Sprintf("nothing is restored over data that may be alive, and an earlier group of this name has left: %s; "+
			"to go on with that data, remove initFromBackup from the group; to restore the backup instead, delete all of that, and it is gone for good", strings.Join(l.Old[:min(oldMax, len(l.Old))], ", ")))
	case !l.Image:
		return d.fail(v1alpha1.ReasonRestoreImageMissing, "the operator was installed without the image that loads backups: set --backup-image, which its chart does")
	case l.Location == "":
		return d.fail(v1alpha1.ReasonBackupProfileMissing, "initFromBackup names a profile that is not in spec.backup.profiles: correct its name")
	case before == nil || before.Site != site || before.StartedAt == nil:
		// Durable before anything is built on it.
		st.Site = site
		if st.StartedAt == nil {
			st.StartedAt = &metav1.Time{Time: l.Now.UTC().Truncate(time.Second)}
		}
		return d.say(v1alpha1.RestorePending, v1alpha1.ReasonRestorePending, fmt.Sprintf("site %s is to be given a backup from %s", site, l.Location))
	}
	d.Site = st.Site
	return d.follow(l)
}

// settled is the decision for a group that continues as a new one, or has been open.
func settled(before *v1alpha1.RestoreStatus) Decision {
	if before == nil {
		return Decision{}
	}
	d := Decision{Status: before, Site: before.Site}
	if before.Phase != v1alpha1.RestoreCompleted {
		return Decision{} // its outcome is unknown: status was edited, or was itself restored
	}
	d.Condition = conditions.True(v1alpha1.ConditionRestoreReady, v1alpha1.ReasonRestoreCompleted, before.Message)
	return d
}

// siteOf returns the site to restore: the chosen one, while it may be opened first, or else the first that may.
func siteOf(g *v1alpha1.MysqlFailoverGroup, chosen string) string {
	first := ""
	for _, site := range g.Spec.Sites {
		switch {
		case site.Role != v1alpha1.PrimaryCandidate:
		case site.Name == chosen:
			return chosen
		case first == "":
			first = site.Name
		}
	}
	return first
}

// fail says what keeps the restore from beginning or continuing.
func (d Decision) fail(reason v1alpha1.Reason, message string) Decision {
	return d.say(v1alpha1.RestoreFailed, reason, message)
}

func (d Decision) say(phase v1alpha1.RestorePhase, reason v1alpha1.Reason, message string) Decision {
	d.Status.Phase, d.Status.Reason, d.Status.Message = phase, reason, message
	if phase == v1alpha1.RestorePending || phase == v1alpha1.RestoreFailed {
		d.Status.Progress = 0
	}
	d.Condition = conditions.False(v1alpha1.ConditionRestoreReady, reason, message)
	return d
}

// oldMax is how many leftovers are named.
const oldMax = 10

// quietly is how long after the start of a new try status still says why the last one failed: most fail again at once.
const quietly = time.Minute

// follow reads from the pod how far the restore is.
func (d Decision) follow(l Look) Decision {
	st, pod := d.Status, l.Pod
	what := "the newest backup"
	switch {
	case st.Backup != "":
		what = "backup " + st.Backup
	case st.Target != "":
		what = "the newest backup before that point"
	}
	if st.Target != "" {
		what += " with the archive of binary logs " + st.Target
	}
	switch {
	case pod == nil:
		return d.say(v1alpha1.RestorePending, v1alpha1.ReasonRestorePending, fmt.Sprintf("the pod of site %s is made, which loads %s from %s", st.Site, what, st.Location))
	case pod.DataLost():
		d.Replace = true
		return d.say(v1alpha1.RestorePending, v1alpha1.ReasonRestoreAgain, "the keyring of what was loaded went with an earlier pod: it is loaded again")
	case pod.Load.Succeeded && pod.Bootstrap.Succeeded:
		if l.OtherOrder {
			// Status names the order of now: it must not call the data of another one complete (I25).
			d.Held = l.Paused != ""
			return d.say(v1alpha1.RestorePending, v1alpha1.ReasonRestorePending, fmt.Sprintf("site %s has what was ordered before; %s", st.Site, next(l, what+" from "+st.Location)))
		}
		return d.complete(l)
	case pod.Load.Succeeded && pod.Bootstrap.Failed != "":
		return d.fail(v1alpha1.ReasonRestoreFailed, fmt.Sprintf("the data of %s is on the volume of site %s, and is not taken: %s", what, st.Site, short(pod.Bootstrap.Failed)))
	case pod.Load.Succeeded:
		st.Progress = 99
		return d.say(v1alpha1.RestoreLoading, v1alpha1.ReasonRestoreLoading, fmt.Sprintf("%s is on the volume of site %s, which starts with it", what, st.Site))
	case pod.Load.Failed != "" && !(pod.Load.Running && l.Now.Sub(pod.Load.Since) >= quietly):
		reason, message := failure(pod.Load.Failed, pod.Load.Exit)
		message += "; nothing opens, and it is tried again"
		if l.Paused != "" {
			message += fmt.Sprintf("; the group is paused until %s: what you change in its specification meanwhile reaches the pod only then", l.Paused)
		}
		return d.fail(reason, message)
	case pod.Load.Running && l.OtherOrder:
		return d.say(v1alpha1.RestoreLoading, v1alpha1.ReasonRestoreLoading,
			fmt.Sprintf("what was ordered before is being loaded onto site %s; %s", st.Site, next(l, what+" from "+st.Location)))
	case pod.Load.Running:
		// The log of the container tells how much is done: the operator may read no logs.
		return d.say(v1alpha1.RestoreLoading, v1alpha1.ReasonRestoreLoading, fmt.Sprintf("%s from %s is being loaded onto site %s", what, st.Location, st.Site))
	}
	trouble := ""
	if pod.Trouble != "" {
		trouble = ": " + pod.Trouble
	}
	return d.say(v1alpha1.RestorePending, v1alpha1.ReasonRestorePending, fmt.Sprintf("the pod of site %s, which loads %s from %s, starts%s", st.Site, what, st.Location, trouble))
}

// next says what follows once a pod has loaded, or loads, what was ordered before.
func next(l Look, what string) string {
	if l.Paused != "" {
		return fmt.Sprintf("the group is paused until %s: only then is its pod replaced by one that is to load %s", l.Paused, what)
	}
	return "its pod is replaced by one that is to load " + what
}

// complete ends the restore: the site has the data, and the others may be made.
func (d Decision) complete(l Look) Decision {
	st := d.Status
	if r, ok := l.Pod.Load.result(); ok {
		if r.Backup != "" {
			st.Backup = r.Backup
		}
		st.GTIDExecuted = r.GTIDExecuted
		st.Replayed, st.ReplayedTo = r.Replayed, nil
		if r.ReplayedTo != nil {
			at := metav1.NewMicroTime(r.ReplayedTo.UTC().Truncate(time.Microsecond))
			st.ReplayedTo = &at
		}
		if m := v1alpha1.BackupMethod(r.Method); slices.Contains([]v1alpha1.BackupMethod{v1alpha1.BackupLogical, v1alpha1.BackupPhysical}, m) {
			st.Method = m
		}
	}
	finished := metav1.Time{Time: l.Now.UTC().Truncate(time.Second)}
	if at := l.Pod.Load.Until; st.StartedAt != nil && at.After(st.StartedAt.Time) {
		finished = metav1.Time{Time: at.UTC().Truncate(time.Second)}
	}
	message := fmt.Sprintf("site %s has the data of backup %s from %s", st.Site, st.Backup, st.Location)
	if st.Target != "" {
		message += fmt.Sprintf(" and, %s, %d transactions of the archive", st.Target, st.Replayed)
	}
	st.Phase, st.Reason, st.Message = v1alpha1.RestoreCompleted, v1alpha1.ReasonRestoreCompleted, message
	st.Progress, st.FinishedAt = 100, &finished
	d.Condition = conditions.True(v1alpha1.ConditionRestoreReady, v1alpha1.ReasonRestoreCompleted, message)
	// The others are made, and anything opens, only once this is durable.
	return d
}

// Seconds returns how long the restore took, or has taken until now.
func Seconds(st *v1alpha1.RestoreStatus, now time.Time) float64 {
	if st == nil || st.StartedAt == nil {
		return 0
	}
	until := now
	if st.FinishedAt != nil {
		until = st.FinishedAt.Time
	}
	return max(0, until.Sub(st.StartedAt.Time).Seconds())
}
