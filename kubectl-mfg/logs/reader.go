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
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/client-go/kubernetes"

	"github.com/mysql-mfg/mfg/api/v1alpha1"
	"github.com/mysql-mfg/mfg/kubectl-mfg/cli"
	"github.com/mysql-mfg/mfg/kubectl-mfg/escape"
)

// lineBytes is how much of a line is shown.
const lineBytes = 16 << 10

// reader reads many logs at a time and shows them as one.
type reader struct {
	op     *Op
	env    cli.Environment
	kube   kubernetes.Interface
	level  Level
	colour bool
	order  order

	silence, rescan time.Duration

	events chan event
	wait   sync.WaitGroup
	known  map[string]*stream
	byID   map[int]*stream
	widest int
	opened int
	// failed is true if some log could not be read; full if there are more logs than it reads.
	failed, full bool
}

// stream is the log of one container, over its restarts.
type stream struct {
	id             int
	pod, container string
	label          string
	open           bool
	// run is the newest one when the log was opened: one that crashes at once may never be seen running.
	run run
	// told is the last remark about it, which is not repeated at each look.
	told string
	// last is the time of the newest line that was shown.
	last time.Time
	// next asks for another line.
	next chan struct{}
}

// run tells one run of a container from the next.
type run struct {
	restarts int32
	id       string
}

func runOf(s corev1.ContainerStatus) run { return run{s.RestartCount, s.ContainerID} }

// event is a line of a stream, or its end.
type event struct {
	id   int
	line *Line
	err  error
}

func (r *reader) run(ctx context.Context) (int, error) {
	if err := r.look(ctx); err != nil {
		return cli.ExitError, err
	}
	if len(r.known) == 0 && !r.op.Follow {
		return cli.ExitError, fmt.Errorf("no container of %[1]s has a log to show%[3]s\n  see how its sites are: kubectl mfg status %[1]s -n %[2]s", r.op.Group, r.op.Namespace, r.chosen())
	}
	again := time.NewTicker(r.rescan)
	defer again.Stop()
	for ctx.Err() == nil && (r.op.Follow || len(r.order.streams) > 0) {
		id, line, wait, found := r.order.take(time.Now())
		if found {
			if err := r.show(r.byID[id], line); err != nil {
				return cli.ExitError, err
			}
			select {
			case r.byID[id].next <- struct{}{}:
			case <-ctx.Done(): // its reader has gone
			}
			continue
		}
		if wait == 0 {
			wait = r.silence
		}
		if err := r.pause(ctx, wait, again.C); err != nil {
			return cli.ExitError, err
		}
	}
	if r.failed {
		return cli.ExitDegraded, nil
	}
	return cli.ExitHealthy, nil
}

// pause waits for something to happen.
func (r *reader) pause(ctx context.Context, wait time.Duration, again <-chan time.Time) error {
	timer := time.NewTimer(wait)
	defer timer.Stop()
	select {
	case <-ctx.Done():
	case e := <-r.events:
		r.take(e)
	case <-again:
		if r.op.Follow {
			if err := r.look(ctx); err != nil && ctx.Err() == nil {
				fmt.Fprintf(r.env.ErrOut, "warning: %s (trying again)\n", cli.FirstLine(err))
			}
		}
	case <-timer.C:
		if !r.op.Follow {
			return r.giveUp()
		}
	}
	return nil
}

// giveUp ends logs that neither speak nor end: a hanging kubelet must not hold up the others for ever.
func (r *reader) giveUp() error {
	var silent []string
	for id, h := range r.order.streams {
		if h.line == nil {
			silent = append(silent, r.byID[id].label)
		}
	}
	for _, h := range r.order.streams {
		if h.line != nil {
			return nil // the others first
		}
	}
	slices.Sort(silent)
	return fmt.Errorf("nothing came for %s of %s: its node may not answer\n  leave it out with --site or --container", r.silence, strings.Join(silent, ", "))
}

func (r *reader) take(e event) {
	s := r.byID[e.id]
	if e.line != nil {
		r.order.put(e.id, *e.line)
		return
	}
	s.open = false
	r.order.end(e.id)
	if e.err != nil {
		r.failed = r.failed || !r.op.Follow
		if s.told == e.err.Error() {
			return
		}
		s.told = e.err.Error()
		fmt.Fprintf(r.env.ErrOut, "warning: the log of %s cannot be read: %s\n", s.label, cli.FirstLine(e.err))
	}
}

// show writes a line if it is important enough.
func (r *reader) show(s *stream, l Line) error {
	s.last = l.At
	if l.Level < r.level {
		return nil
	}
	word := fmt.Sprintf("%-5s", words[l.Level])
	if c := colours[l.Level]; c != "" && r.colour {
		word = c + word + reset
	}
	_, err := fmt.Fprintf(r.env.Out, "%s  %-*s  %s  %s\n", l.At.UTC().Format("2006-01-02T15:04:05.000Z"), r.widest, s.label, word, escape.Line(l.Text))
	if err != nil {
		return fmt.Errorf("write: %w", err)
	}
	return nil
}

func (r *reader) chosen() string {
	words := ""
	if r.op.Site != "" {
		words += " of site " + r.op.Site
	}
	if r.op.Container != "" {
		words += " in a container " + r.op.Container
	}
	return words
}

// look opens the logs of all started containers that are not being read.
func (r *reader) look(ctx context.Context) error {
	set := labels.Set{v1alpha1.LabelGroup: r.op.Group}
	if r.op.Site != "" {
		set[v1alpha1.LabelSite] = r.op.Site
	}
	list, err := r.kube.CoreV1().Pods(r.op.Namespace).List(ctx, metav1.ListOptions{LabelSelector: set.String()})
	if err != nil {
		return cli.RightsHint(err, "list", "pods", r.op.Namespace)
	}
	slices.SortFunc(list.Items, func(a, b corev1.Pod) int { return strings.Compare(a.Name, b.Name) })
	r.forget(list.Items)
	for i := range list.Items {
		r.containers(ctx, &list.Items[i])
	}
	return nil
}

// forget drops what is known of pods that have gone and whose logs have ended.
func (r *reader) forget(pods []corev1.Pod) {
	there := map[string]bool{}
	for i := range pods {
		there[pods[i].Name] = true
	}
	for key, s := range r.known {
		if !s.open && !there[s.pod] {
			delete(r.known, key)
			delete(r.byID, s.id)
		}
	}
}

func (r *reader) containers(ctx context.Context, p *corev1.Pod) {
	for _, all := range [][]corev1.ContainerStatus{p.Status.InitContainerStatuses, p.Status.ContainerStatuses} {
		for _, status := range all {
			if r.op.Container != "" && r.op.Container != status.Name || !hasLog(status) {
				continue
			}
			key := string(p.UID) + "/" + p.Name + "/" + status.Name
			s, last := r.known[key], runOf(status)
			if s != nil && (s.open || status.State.Running == nil && s.run == last) {
				continue
			}
			if len(r.order.streams) >= maxStreams {
				r.tellFull()
				return
			}
			if s == nil {
				s = &stream{id: r.opened, pod: p.Name, container: status.Name, label: label(p, status.Name)}
				r.known[key], r.byID[s.id] = s, s
				r.opened++
				r.widest = max(r.widest, len(s.label))
			}
			s.run = last
			r.open(ctx, s)
		}
	}
}

func (r *reader) tellFull() {
	if !r.full {
		fmt.Fprintf(r.env.ErrOut, "warning: only %d logs are shown at a time; choose with --site or --container\n", maxStreams)
	}
	r.full, r.failed = true, true
}

// label names a container by its site, as people know it.
func label(p *corev1.Pod, container string) string {
	if site := p.Labels[v1alpha1.LabelSite]; site != "" {
		return site + "/" + container
	}
	return p.Name + "/" + container
}

func (r *reader) open(ctx context.Context, s *stream) {
	options := &corev1.PodLogOptions{Container: s.container, Follow: r.op.Follow, Timestamps: true}
	switch {
	case !s.last.IsZero(): // it was read before: continue from there
		since := metav1.NewTime(s.last)
		options.SinceTime = &since
	case r.op.Since > 0:
		seconds := max(1, int64(r.op.Since/time.Second))
		options.SinceSeconds = &seconds
	}
	s.open, s.next = true, make(chan struct{})
	r.order.open(s.id, time.Now())
	after, next, id, pod := s.last, s.next, s.id, s.pod
	r.wait.Go(func() {
		err := r.read(ctx, pod, options, after, func(l Line) bool {
			return r.send(ctx, event{id: id, line: &l}) && wanted(ctx, next)
		})
		r.send(ctx, event{id: id, err: err})
	})
}

func (r *reader) send(ctx context.Context, e event) bool {
	select {
	case r.events <- e:
		return true
	case <-ctx.Done():
		return false
	}
}

func wanted(ctx context.Context, next <-chan struct{}) bool {
	select {
	case <-next:
		return true
	case <-ctx.Done():
		return false
	}
}

// read passes on each line that is newer than what was shown before.
func (r *reader) read(ctx context.Context, pod string, options *corev1.PodLogOptions, after time.Time, give func(Line) bool) error {
	body, err := r.kube.CoreV1().Pods(r.op.Namespace).GetLogs(pod, options).Stream(ctx)
	if apierrors.IsForbidden(err) {
		return cli.RightsHint(err, "get", "pods/log", r.op.Namespace)
	} else if err != nil {
		return err
	}
	defer func() { _ = body.Close() }()
	lines := bufio.NewReaderSize(body, lineBytes)
	for first := true; ; first = false {
		raw, err := readLine(lines)
		l := Parse(raw)
		if first && raw != "" && l.At.IsZero() {
			// Each line of a container has its time. The kubelet sends its own trouble as if it were the log, and the request succeeds.
			return fmt.Errorf("the kubelet says: %s", raw)
		}
		if raw != "" && l.At.After(after) && !give(l) {
			return nil
		}
		if errors.Is(err, io.EOF) || ctx.Err() != nil {
			return nil
		}
		if err != nil {
			return fmt.Errorf("read: %w", err)
		}
	}
}

// readLine reads a line, but returns no more than is shown.
func readLine(r *bufio.Reader) (string, error) {
	part, err := r.ReadSlice('\n')
	line := strings.TrimRight(string(part), "\r\n")
	if !errors.Is(err, bufio.ErrBufferFull) {
		return line, err
	}
	for errors.Is(err, bufio.ErrBufferFull) {
		_, err = r.ReadSlice('\n')
	}
	return line + "... (cut)", err
}
