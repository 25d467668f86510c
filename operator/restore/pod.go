// SPDX-License-Identifier: Apache-2.0

package restore

import (
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/mysql-mfg/mfg/api/v1alpha1"
	"github.com/mysql-mfg/mfg/api/wire"
)

// Pod is the pod of the site that is restored, as far as its init containers tell.
type Pod struct {
	Load, Bootstrap Container
	// Trouble is what keeps the pod from starting, for people; empty normally.
	Trouble string
}

// Container is one init container.
type Container struct {
	// Running is true while it runs, since Since. Succeeded is true once it succeeded, at Until.
	Running, Succeeded bool
	Since, Until       time.Time
	// Failed is its message from its last failure, and Exit its exit code. Failed is empty if it never failed.
	Failed string
	Exit   int32
	// failedAt is when that was.
	failedAt time.Time
	// message is what it left when it succeeded.
	message string
}

// PodOf reads the init containers of a pod.
func PodOf(pod *corev1.Pod, trouble string) *Pod {
	if pod == nil {
		return nil
	}
	out := &Pod{Trouble: trouble}
	for _, c := range pod.Status.InitContainerStatuses {
		switch c.Name {
		case v1alpha1.ContainerLoad:
			out.Load = containerOf(c)
		case v1alpha1.ContainerBootstrap:
			out.Bootstrap = containerOf(c)
		}
	}
	return out
}

func containerOf(c corev1.ContainerStatus) Container {
	var out Container
	for _, ended := range []*corev1.ContainerStateTerminated{c.State.Terminated, c.LastTerminationState.Terminated} {
		if ended != nil && ended.ExitCode != 0 && out.Failed == "" {
			out.Exit, out.Failed, out.failedAt = ended.ExitCode, ended.Message, ended.FinishedAt.Time
			if out.Failed == "" {
				out.Failed = strings.TrimSpace("it left no message: " + ended.Reason)
			}
		}
	}
	if run := c.State.Running; run != nil {
		out.Running, out.Since = true, run.StartedAt.Time
	}
	if ended := c.State.Terminated; ended != nil && ended.ExitCode == 0 {
		out.Succeeded, out.Until, out.message = true, ended.FinishedAt.Time, ended.Message
	}
	return out
}

// DataLost is true if the loaded data went with the memory of an earlier pod: this one has noticed, and does not load it again. A node that
// restarts runs the containers of the same pod again: what bootstrap said before that says nothing of what was loaded since.
func (p *Pod) DataLost() bool {
	return p.Load.Succeeded && !p.Bootstrap.Succeeded && !p.Bootstrap.failedAt.Before(p.Load.Until) &&
		strings.Contains(p.Bootstrap.Failed, wire.MarkRestoreLost)
}

// loadsAgain is true if the pod of a site that had its data has lost it, loads it again, or fails to. A pod that starts again and finds its
// data needs no such time for that.
func (p *Pod) loadsAgain(now time.Time) bool {
	switch {
	case p == nil:
		return false
	case p.Load.Running:
		return now.Sub(p.Load.Since) >= quietly
	}
	return p.DataLost() || p.Load.Failed != "" && !p.Load.Succeeded
}

// result returns what the program says of its success.
func (c Container) result() (wire.BackupResult, bool) {
	r, _ := wire.ParseBackupResult(c.message) // a text that is no result has no reason
	return r, r.Reason == wire.BackupSucceeded
}

// shortMax is how much to show of a container's message that is not the program's own outcome, in bytes.
const shortMax = 400

// short returns a container's text on one line, of bounded length.
func short(text string) string {
	text = strings.Join(strings.Fields(strings.ToValidUTF8(text, "?")), " ")
	if len(text) > shortMax {
		text = strings.ToValidUTF8(text[:shortMax], "") + "..."
	}
	return text
}

// hints say what to do where the message of the program does not.
var hints = map[v1alpha1.Reason]string{
	v1alpha1.ReasonVolumeTooSmall:     "raise storage.size of the site in spec.sites",
	v1alpha1.ReasonVersionTooOld:      "set spec.image to that version or a later one",
	v1alpha1.ReasonTimedOut:           "look at what was slow in the log of the container load",
	v1alpha1.ReasonServerFailed:       "look at the log of the container load; settings of spec.mysqlConf may be what mysqld does not start with",
	v1alpha1.ReasonLoadFailed:         "look at the log of the container load",
	v1alpha1.ReasonDiffers:            "take another backup in initFromBackup.backup",
	v1alpha1.ReasonNotFound:           "correct initFromBackup, or name a backup that is there",
	v1alpha1.ReasonTargetBeforeBackup: "name an earlier backup in initFromBackup.backup, or a later point",
	v1alpha1.ReasonTargetNotArchived:  "kubectl mfg backup timeline shows which points there are",
	v1alpha1.ReasonTargetInGap:        "choose a point before the gap, or a backup after it",
	v1alpha1.ReasonTransactionLost:    "kubectl mfg backup lost shows what the failover lost",
	v1alpha1.ReasonBackupDiverged:     "take another backup in initFromBackup.backup",
	v1alpha1.ReasonReplayFailed:       "look at the log of the container load, and choose a point before that transaction",
	v1alpha1.ReasonFailed:             "look at the log of the container load",
	v1alpha1.ReasonRestoreFailed:      "look at the log of the container load",
	v1alpha1.ReasonStalled:            "look at the volume of the site and at the storage: mysqld, the disk or the network stands still",
}

// failure is why a try failed, and what to do about it. The container's message is bounded, and a word that is not one of the program's
// is not passed on as a reason.
func failure(message string, exit int32) (v1alpha1.Reason, string) {
	reason, text := v1alpha1.ReasonRestoreFailed, ""
	r, _ := wire.ParseBackupResult(message) // a text that is no result has no reason
	if known, ok := v1alpha1.ReasonOfBackup(r.Reason); ok {
		reason, text = known, r.Message
	}
	if text == "" {
		text = "the container load ended, and what it left does not say why"
		if exit == killedForMemory {
			text = "the container load was killed, perhaps because its memory is too small: raise resources of the site"
		}
	}
	if hint := hints[reason]; hint != "" {
		text += "; " + hint
	}
	return reason, text
}

// killedForMemory is the exit code of a container that the kernel killed.
const killedForMemory = 137
