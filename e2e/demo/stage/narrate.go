// SPDX-License-Identifier: Apache-2.0

package stage

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	eventsv1 "k8s.io/api/events/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/mysql-mfg/mfg/api/wire"
)

// Narrate prints what the operator thinks of the group whenever that changes, as its /status says it, until the
// returned function is called.
func (g *Group) Narrate(ctx context.Context) (stop func()) {
	ctx, cancel := context.WithCancel(ctx)
	done := make(chan struct{})
	go func() {
		defer close(done)
		said := ""
		for ctx.Err() == nil {
			list, err := g.Status(ctx)
			if err == nil {
				if line := thought(list, g.Namespace, g.Name); line != said && line != "" {
					g.Say("  operator: %s", line)
					said = line
				}
			}
			select {
			case <-ctx.Done():
			case <-time.After(interval):
			}
		}
	}()
	return func() {
		cancel()
		<-done
	}
}

// thought is the last decision about a group in one line.
func thought(list wire.StatusList, namespace, name string) string {
	for _, g := range list.Groups {
		if g.Namespace != namespace || g.Group != name {
			continue
		}
		line := g.Verdict
		if g.Reason != "" {
			line += " (" + g.Reason + ")"
		}
		if g.Message != "" {
			line += ": " + g.Message
		}
		return line
	}
	return ""
}

// Events are the events about the group, oldest first, one line each.
func (g *Group) Events(ctx context.Context) ([]string, error) { return g.EventsSince(ctx, time.Time{}) }

// EventsSince are those that happened at a time or after it, perhaps again: Kubernetes counts an event that comes again within minutes at the
// first one.
func (g *Group) EventsSince(ctx context.Context, since time.Time) ([]string, error) {
	var list eventsv1.EventList
	if err := g.Kube.List(ctx, &list, client.InNamespace(g.Namespace)); err != nil {
		return nil, fmt.Errorf("list events: %w", err)
	}
	var lines []string
	for _, e := range list.Items {
		if e.Regarding.Kind == "MysqlFailoverGroup" && e.Regarding.Name == g.Name && !lastSeen(e).Before(since) {
			lines = append(lines, fmt.Sprintf("%s %s: %s", e.EventTime.Format(time.TimeOnly), e.Reason, e.Note))
		}
	}
	return lines, nil
}

// lastSeen is when an event happened last.
func lastSeen(e eventsv1.Event) time.Time {
	if e.Series != nil && e.Series.LastObservedTime.After(e.EventTime.Time) {
		return e.Series.LastObservedTime.Time
	}
	return e.EventTime.Time
}

// Diagnose writes all that helps to find out what went wrong into a folder below out/, and says where.
func (g *Group) Diagnose(ctx context.Context, name string) {
	dir := filepath.Join(g.Repo, "out", "diagnosis", name)
	if err := errors.Join(os.RemoveAll(dir), os.MkdirAll(dir, 0o755)); err != nil {
		g.Say("no diagnosis: %v", err)
		return
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), time.Minute)
	defer cancel()
	keep := func(file, text string, err error) {
		if err != nil {
			text += "\nerror: " + err.Error() + "\n"
		}
		_ = os.WriteFile(filepath.Join(dir, file), []byte(text), 0o600)
	}
	kubectl := func(file string, args ...string) {
		text, err := g.Lab.Kubectl(ctx, args...)
		keep(file, text, err)
	}
	kubectl("group.yaml", "-n", g.Namespace, "get", "mfg", g.Name, "-o", "yaml", "--show-managed-fields")
	kubectl("objects.txt", "-n", g.Namespace, "get", "all,pvc,secret,configmap,pdb,endpointslices", "-o", "wide", "--show-labels")
	kubectl("pods.yaml", "-n", g.Namespace, "get", "pods", "-o", "yaml")
	kubectl("describe.txt", "-n", g.Namespace, "describe", "pods")
	kubectl("events.txt", "get", "events", "-A", "--sort-by=.metadata.creationTimestamp")
	kubectl("nodes.txt", "get", "nodes,pv", "-o", "wide")
	log, err := g.OperatorLog(ctx)
	keep("operator.log", log, err)
	keep("pod-logs.txt", "The logs of all containers are in the folder of their node.", g.copyLogs(dir))
	g.Say("what may help to understand it is in %s", strings.TrimPrefix(dir, g.Repo+"/"))
}

// copyLogs copies the logs of the group's containers, of earlier runs, too. It reads the nodes' disks: a node that is cut off or whose
// kubelet stands still has no other way to give them.
func (g *Group) copyLogs(dir string) error {
	pods, err := filepath.Glob(filepath.Join(g.Lab.Dir(), "nodes", "*", "podlogs", g.Namespace+"_*"))
	for _, pod := range pods {
		node := filepath.Base(filepath.Dir(filepath.Dir(pod)))
		err = errors.Join(err, os.CopyFS(filepath.Join(dir, node, filepath.Base(pod)), os.DirFS(pod)))
	}
	return err
}
