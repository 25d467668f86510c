// SPDX-License-Identifier: Apache-2.0

package logs

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/client-go/kubernetes"

	"github.com/mysql-mfg/mfg/api/v1alpha1"
	"github.com/mysql-mfg/mfg/kubectl-mfg/cli"
	"github.com/mysql-mfg/mfg/kubectl-mfg/escape"
)

const (
	// tailBytes bounds how much of one log is kept, and tailTimeout how long reading it may take: a hanging node costs only its own lines.
	tailBytes   = 128 << 10
	tailTimeout = 2 * time.Second
	// tailAtOnce is how many logs are read at a time, tailMost how many in all.
	tailAtOnce = 4
	tailMost   = 24
)

// Tail is the end of the logs of a group, or of one site or container, for a screen that looks at them again and again.
type Tail struct {
	Namespace, Group, Site, Container string
	// Lines is how many are wanted, from each log and in total.
	Lines int
}

// Tailed is a line of it.
type Tailed struct {
	Line
	// Source is the container, by its site.
	Source string
	// Word is the level as shown.
	Word string
}

// Read reads them, in the order of their times. The note names what cannot be read.
func (t Tail) Read(ctx context.Context, kube kubernetes.Interface) (lines []Tailed, note string, err error) {
	set := labels.Set{v1alpha1.LabelGroup: t.Group}
	if t.Site != "" {
		set[v1alpha1.LabelSite] = t.Site
	}
	list, err := kube.CoreV1().Pods(t.Namespace).List(ctx, metav1.ListOptions{LabelSelector: set.String()})
	if err != nil {
		return nil, "", cli.RightsHint(err, "list", "pods", t.Namespace)
	}
	var (
		mu     sync.Mutex
		read   sync.WaitGroup
		turns  = make(chan struct{}, tailAtOnce)
		failed []string
	)
	all := t.containers(list.Items)
	if len(all) > tailMost {
		failed = append(failed, fmt.Sprintf("%d logs more are not shown: choose a site or a container", len(all)-tailMost))
		all = all[:tailMost]
	}
	for _, c := range all {
		read.Go(func() {
			turns <- struct{}{}
			defer func() { <-turns }()
			part, err := t.one(ctx, kube, c.pod, c.name)
			mu.Lock()
			defer mu.Unlock()
			for _, l := range part {
				lines = append(lines, Tailed{Line: l, Source: c.label, Word: words[l.Level]})
			}
			if err != nil {
				failed = append(failed, "the log of "+c.label+" cannot be read: "+cli.FirstLine(err))
			}
		})
	}
	read.Wait()
	slices.SortStableFunc(lines, func(a, b Tailed) int { return a.At.Compare(b.At) })
	slices.Sort(failed)
	return lines[max(0, len(lines)-t.Lines):], strings.Join(failed, "; "), nil
}

// source is one container that has a log.
type source struct{ pod, name, label string }

func (t Tail) containers(all []corev1.Pod) (out []source) {
	for i := range all {
		p := &all[i]
		for _, statuses := range [][]corev1.ContainerStatus{p.Status.InitContainerStatuses, p.Status.ContainerStatuses} {
			for _, s := range statuses {
				if t.Container != "" && t.Container != s.Name || !hasLog(s) {
					continue
				}
				out = append(out, source{p.Name, s.Name, label(p, s.Name)})
			}
		}
	}
	slices.SortFunc(out, func(a, b source) int { return strings.Compare(a.label+" "+a.pod, b.label+" "+b.pod) })
	return out
}

// hasLog is true for a container that runs or has run: while the next run of one that crashes has to wait, the kubelet shows the log of the last.
func hasLog(s corev1.ContainerStatus) bool {
	return s.State.Running != nil || s.State.Terminated != nil || s.LastTerminationState.Terminated != nil
}

// one reads the end of one log. If it breaks off, the lines before that are shown. It asks for no limit of bytes: the kubelet goes back as many
// lines as it is told, writes from there, and would stop at the limit, before the newest.
func (t Tail) one(ctx context.Context, kube kubernetes.Interface, pod, container string) ([]Line, error) {
	ctx, cancel := context.WithTimeout(ctx, tailTimeout)
	defer cancel()
	most := int64(t.Lines)
	body, err := kube.CoreV1().Pods(t.Namespace).GetLogs(pod, &corev1.PodLogOptions{Container: container, Timestamps: true, TailLines: &most}).Stream(ctx)
	if err != nil {
		return nil, err
	}
	defer func() { _ = body.Close() }()
	end := ending{lines: t.Lines, level: Info}
	for lines := bufio.NewReaderSize(body, lineBytes); ; {
		raw, err := readLine(lines)
		if raw != "" {
			end.add(Parse(raw))
		}
		switch {
		case errors.Is(err, io.EOF):
			return end.kept, nil
		case err != nil:
			return end.kept, fmt.Errorf("read: %w", err)
		}
	}
}

// ending keeps the newest lines of a log, at most so many and of at most tailBytes.
type ending struct {
	lines, bytes int
	kept         []Line
	level        Level
}

func (e *ending) add(l Line) {
	if l.Level == unlevelled {
		l.Level = e.level // what follows an error, such as a stack trace, belongs to it
	}
	e.level, l.Text = l.Level, escape.Line(l.Text)
	e.kept, e.bytes = append(e.kept, l), e.bytes+len(l.Text)
	for len(e.kept) > 1 && (len(e.kept) > e.lines || e.bytes > tailBytes) {
		e.bytes -= len(e.kept[0].Text)
		e.kept[0] = Line{} // its text must not stay in memory
		e.kept = e.kept[1:]
	}
}
