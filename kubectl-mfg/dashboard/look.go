// SPDX-License-Identifier: Apache-2.0

package dashboard

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/util/duration"

	"github.com/mysql-mfg/mfg/api/v1alpha1"
	"github.com/mysql-mfg/mfg/kubectl-mfg/cli"
	"github.com/mysql-mfg/mfg/kubectl-mfg/escape"
	"github.com/mysql-mfg/mfg/kubectl-mfg/logs"
	"github.com/mysql-mfg/mfg/tui"
	"github.com/mysql-mfg/mfg/tui/drill"
)

const (
	// lookTimeout bounds how long a key waits: by then a hanging node has used up the time of its own log several times.
	lookTimeout = 15 * time.Second
	// linesShown is how many lines of logs are on the page, podsShown how many pods.
	linesShown = 400
	podsShown  = 50
)

// figures adds what the sidecars of a group have measured.
func (op *Op) figures(ctx context.Context, c Cluster, h tui.Answer) tui.Answer {
	ctx, cancel := context.WithTimeout(ctx, lookTimeout)
	defer cancel()
	all, err := c.Figures(ctx, h.Namespace, h.Group)
	h.Figures = all
	if err != nil {
		h.Error = cli.FirstLine(err)
	}
	return h
}

// look answers a question of the drill page.
func look(ctx context.Context, env cli.Environment, c Cluster, q drill.Question) drill.Answer {
	ctx, cancel := context.WithTimeout(ctx, lookTimeout)
	defer cancel()
	a := drill.Answer{Question: q}
	var err error
	switch q.Kind {
	case drill.Pods:
		a.Pods, err = podsOf(ctx, env, c, q)
	case drill.Logs:
		var lines []logs.Tailed
		lines, a.Note, err = logs.Tail{Namespace: q.Namespace, Group: q.Group, Site: q.Site, Container: q.Container, Lines: linesShown}.Read(ctx, c.Kube())
		for _, l := range lines {
			a.Lines = append(a.Lines, drill.Line{At: l.At, Source: l.Source, Level: l.Word, Text: l.Text})
		}
	}
	if err != nil {
		a.Error = cli.FirstLine(err)
	}
	return a
}

func podsOf(ctx context.Context, env cli.Environment, c Cluster, q drill.Question) ([]drill.Pod, error) {
	set := labels.Set{v1alpha1.LabelGroup: q.Group}
	if q.Site != "" {
		set[v1alpha1.LabelSite] = q.Site
	}
	list, err := c.Kube().CoreV1().Pods(q.Namespace).List(ctx, metav1.ListOptions{LabelSelector: set.String(), Limit: podsShown})
	if err != nil {
		return nil, cli.RightsHint(err, "list", "pods", q.Namespace)
	}
	out := make([]drill.Pod, 0, len(list.Items))
	for i := range list.Items {
		out = append(out, podOf(&list.Items[i], env.Now()))
	}
	slices.SortFunc(out, func(a, b drill.Pod) int { return strings.Compare(a.Name, b.Name) })
	return out, nil
}

func podOf(p *corev1.Pod, now time.Time) drill.Pod {
	out := drill.Pod{Name: p.Name, Phase: string(p.Status.Phase), Node: p.Spec.NodeName, Started: p.CreationTimestamp.Time}
	if p.DeletionTimestamp != nil {
		out.Phase = "Terminating"
	}
	if p.Status.Reason != "" || p.Status.Message != "" {
		out.Trouble = append(out.Trouble, said(p.Status.Reason, p.Status.Message))
	}
	for _, c := range p.Status.Conditions {
		if c.Status == corev1.ConditionFalse && p.Status.Phase != corev1.PodSucceeded {
			out.Trouble = append(out.Trouble, "not "+string(c.Type)+": "+said(c.Reason, c.Message))
		}
	}
	for _, all := range [][]corev1.ContainerStatus{p.Status.InitContainerStatuses, p.Status.ContainerStatuses} {
		for _, s := range all {
			out.Containers = append(out.Containers, drill.Container{
				Name: s.Name, Ready: s.Ready, Restarts: s.RestartCount, State: stateOf(s.State, now), Last: ended(s.LastTerminationState.Terminated, now),
			})
		}
	}
	return out
}

// said returns a reason with its message, in one line that cannot steer the terminal.
func said(reason, message string) string {
	words := reason
	if message != "" {
		words = strings.TrimPrefix(reason+": "+message, ": ")
	}
	return escape.Line(words)
}

func stateOf(s corev1.ContainerState, now time.Time) string {
	switch {
	case s.Running != nil:
		return "running for " + duration.HumanDuration(now.Sub(s.Running.StartedAt.Time))
	case s.Terminated != nil:
		return ended(s.Terminated, now)
	case s.Waiting != nil:
		return "waits: " + said(s.Waiting.Reason, s.Waiting.Message)
	}
	return "not known"
}

// ended says how a container ended; empty if it did not.
func ended(t *corev1.ContainerStateTerminated, now time.Time) string {
	if t == nil {
		return ""
	}
	words := fmt.Sprintf("ended %s ago with exit code %d", duration.HumanDuration(now.Sub(t.FinishedAt.Time)), t.ExitCode)
	if t.Reason != "" || t.Message != "" {
		words += ", " + said(t.Reason, t.Message)
	}
	return words
}
