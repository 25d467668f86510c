// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	apiclient "github.com/mysql-mfg/mfg/api/client"
	"github.com/mysql-mfg/mfg/api/v1alpha1"
	"github.com/mysql-mfg/mfg/api/wire"
)

const (
	// backupLasts is how long the pod of a backup runs, and scheduledIn how soon the minute comes that all schedules name.
	backupLasts = 5 * time.Second
	scheduledIn = 90 * time.Second
	// backupsLimit bounds the time from that minute until the last backup is there: a tenth of the hour between two, and a queue of them.
	backupsLimit = 30 * time.Minute
	profileName  = "hourly"
)

// backupFigures are what came of schedules that all name the same minute.
type backupFigures struct {
	AtOnce int `json:"atOnce"`
	// MostAtOnce is the most that were being made at one look.
	MostAtOnce int `json:"mostAtOnce"`
	Completed  int `json:"completed"`
	Failed     int `json:"failed"`
	// SpreadSeconds is from the first one that was ordered to the last, MostInAMinute the most that were ordered within one, WaitP99Seconds how
	// long they waited for their turn, and AllSeconds the time from the minute of the schedules until the last was there.
	SpreadSeconds  float64 `json:"spreadSeconds"`
	MostInAMinute  int     `json:"mostInAMinute"`
	WaitP99Seconds float64 `json:"waitP99Seconds"`
	AllSeconds     float64 `json:"allSeconds"`
	// The age of decisions before it, while nothing was made.
	AgeP99BeforeSeconds float64 `json:"ageP99BeforeSeconds"`
}

// runJob plays the controller of Jobs and the kubelet for a Job of a backup: its pod runs for a while, and leaves that all is well.
func (k *kubelet) runJob(ctx context.Context, job *batchv1.Job) error {
	if job.Status.CompletionTime != nil {
		return nil
	}
	began := metav1.Now()
	pod := &corev1.Pod{ObjectMeta: *job.Spec.Template.ObjectMeta.DeepCopy(), Spec: *job.Spec.Template.Spec.DeepCopy()}
	pod.Name, pod.Namespace = job.Name, job.Namespace
	pod.OwnerReferences = []metav1.OwnerReference{*metav1.NewControllerRef(job, batchv1.SchemeGroupVersion.WithKind("Job"))}
	pod.Spec.NodeName = nodeName(siteName(0))
	pods := k.core.CoreV1().Pods(job.Namespace)
	made, err := pods.Create(ctx, pod, metav1.CreateOptions{})
	if apierrors.IsAlreadyExists(err) {
		made, err = pods.Get(ctx, pod.Name, metav1.GetOptions{})
	}
	if err != nil {
		return fmt.Errorf("create pod of job %s: %w", job.Name, err)
	}
	if err := wait(ctx, backupLasts); err != nil {
		return err
	}
	now := metav1.Now()
	said := wire.BackupResult{
		Reason: wire.BackupSucceeded, Backup: job.Labels[v1alpha1.LabelBackup], Method: string(v1alpha1.BackupLogical), MySQLVersion: serverVersion,
		StoredBytes: 1 << 20, Bytes: 4 << 20, Seconds: backupLasts.Seconds(), ManifestRead: true,
	}
	message, err := json.Marshal(said)
	if err != nil {
		return fmt.Errorf("encode the outcome: %w", err)
	}
	made.Status = corev1.PodStatus{Phase: corev1.PodSucceeded, StartTime: &began}
	for _, c := range pod.Spec.Containers {
		made.Status.ContainerStatuses = append(made.Status.ContainerStatuses, corev1.ContainerStatus{
			Name: c.Name, Image: c.Image, ImageID: c.Image, State: corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{
				Reason: "Completed", StartedAt: began, FinishedAt: now, Message: string(message),
			}},
		})
	}
	if _, err := pods.UpdateStatus(ctx, made, metav1.UpdateOptions{}); err != nil && !apierrors.IsNotFound(err) {
		return fmt.Errorf("end pod of job %s: %w", job.Name, err)
	}
	current, err := k.core.BatchV1().Jobs(job.Namespace).Get(ctx, job.Name, metav1.GetOptions{})
	if err != nil {
		return ignoreGone(err)
	}
	current.Status = batchv1.JobStatus{StartTime: &began, CompletionTime: &now, Succeeded: 1, UncountedTerminatedPods: &batchv1.UncountedTerminatedPods{}}
	for _, kind := range []batchv1.JobConditionType{batchv1.JobSuccessCriteriaMet, batchv1.JobComplete} {
		current.Status.Conditions = append(current.Status.Conditions, batchv1.JobCondition{
			Type: kind, Status: corev1.ConditionTrue, LastProbeTime: now, LastTransitionTime: now, Reason: "CompletionsReached",
		})
	}
	_, err = k.core.BatchV1().Jobs(job.Namespace).UpdateStatus(ctx, current, metav1.UpdateOptions{})
	return ignoreGone(err)
}

func ignoreGone(err error) error {
	if apierrors.IsNotFound(err) {
		return nil
	}
	return err
}

// backups has every group make a backup by schedules that name the same minute, and watches until all are there.
func (f *field) backups(ctx context.Context, before []float64, p *point) error {
	at := time.Now().Add(scheduledIn).Truncate(time.Minute).Add(time.Minute).UTC()
	f.say("every group is to be backed up at %s", at.Format("15:04"))
	patch := fmt.Appendf(nil, `{"spec":{"backup":{"profiles":[{"name":%q,"storage":{"volume":{"claimName":"backups"}},"schedule":{"cron":"%d * * * *","timeZone":"UTC"}}]}}}`,
		profileName, at.Minute())
	done := map[string]bool{}
	for _, s := range f.world.all {
		if done[s.group] {
			continue
		}
		done[s.group] = true
		g := &v1alpha1.MysqlFailoverGroup{ObjectMeta: metav1.ObjectMeta{Namespace: groupNamespace, Name: s.group}}
		if err := f.kube.Patch(ctx, g, client.RawPatch(types.MergePatchType, patch)); err != nil {
			return fmt.Errorf("give %s a profile: %w", s.group, err)
		}
	}
	if now := time.Now(); now.After(at) {
		return errors.New("the groups were given their schedules too late: the machine is too slow for so many")
	}
	b := &backupFigures{AtOnce: f.options.atOnce, AgeP99BeforeSeconds: round(percentile(before, 99))}
	p.Backups = b
	var o observations
	var all v1alpha1.MysqlBackupList
	for end := at.Add(backupsLimit); b.Completed+b.Failed < f.size.groups; {
		if time.Now().After(end) {
			return fmt.Errorf("%d of %d backups were made within %s", b.Completed, f.size.groups, backupsLimit)
		}
		if err := wait(ctx, time.Second+rand.N(500*time.Millisecond)); err != nil {
			return err
		}
		list, err := (&apiclient.Client{}).Status(ctx, f.statusURL)
		if err != nil {
			return err
		}
		used, err := usageOf(f.operator.cmd.Process.Pid)
		if err != nil {
			return err
		}
		o.take(list, used)
		if err := f.kube.List(ctx, &all, client.InNamespace(groupNamespace)); err != nil {
			return err
		}
		b.count(all.Items)
	}
	b.sumUp(all.Items, at)
	p.DecisionAgeP99Seconds, p.DecisionAgeMaxSeconds, p.RSSMiB = round(percentile(o.ages, 99)), round(percentile(o.ages, 100)), round(o.rssMiB)
	p.judgeBackups(f.size.groups)
	if o.unwhole > 0 {
		return fmt.Errorf("groups were not whole %d times while they were backed up", o.unwhole)
	}
	return nil
}

// count takes in one look at all backups.
func (b *backupFigures) count(all []v1alpha1.MysqlBackup) {
	running := 0
	b.Completed, b.Failed = 0, 0
	for _, mb := range all {
		switch mb.Status.Phase { //nolint:exhaustive // the others wait
		case v1alpha1.BackupRunning:
			running++
		case v1alpha1.BackupCompleted:
			b.Completed++
		case v1alpha1.BackupFailed:
			b.Failed++
		}
	}
	b.MostAtOnce = max(b.MostAtOnce, running)
}

func (b *backupFigures) sumUp(all []v1alpha1.MysqlBackup, at time.Time) {
	var ordered []time.Time
	var waited []float64
	last := at
	for _, mb := range all {
		ordered = append(ordered, mb.CreationTimestamp.Time)
		if mb.Status.StartedAt != nil {
			waited = append(waited, mb.Status.StartedAt.Sub(mb.CreationTimestamp.Time).Seconds())
		}
		if mb.Status.FinishedAt != nil && mb.Status.FinishedAt.After(last) {
			last = mb.Status.FinishedAt.Time
		}
	}
	slices.SortFunc(ordered, time.Time.Compare)
	for i, from := range ordered {
		n := 0
		for _, t := range ordered[i:] {
			if t.Sub(from) < time.Minute {
				n++
			}
		}
		b.MostInAMinute = max(b.MostInAMinute, n)
	}
	if len(ordered) > 0 {
		b.SpreadSeconds = round(ordered[len(ordered)-1].Sub(ordered[0]).Seconds())
	}
	b.WaitP99Seconds, b.AllSeconds = round(percentile(waited, 99)), round(last.Sub(at).Seconds())
}

// judgeBackups: never more at a time than may be, all of them there, and decisions as young as without them.
func (p *point) judgeBackups(groups int) {
	b := p.Backups
	p.Targets = []target{
		{Figure: "decisionAgeP99Seconds", Limit: wantAge, Got: p.DecisionAgeP99Seconds},
		{Figure: "decisionAgeP99Seconds above that without backups", Limit: 0.5, Got: round(p.DecisionAgeP99Seconds - b.AgeP99BeforeSeconds)},
		{Figure: "mostAtOnce", Limit: float64(b.AtOnce), Got: float64(b.MostAtOnce)},
		{Figure: "not completed", Limit: 0, Got: float64(groups - b.Completed)},
		{Figure: "rssMiB", Limit: wantRSS, Got: p.RSSMiB},
	}
	for i := range p.Targets {
		p.Targets[i].Met = p.Targets[i].Got <= p.Targets[i].Limit
	}
}
