// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/mysql-mfg/mfg/api/v1alpha1"
	"github.com/mysql-mfg/mfg/e2e/demo/stage"
)

// requestMove asks for a planned failover to the other candidate, as a person does: by the annotation.
func requestMove(ctx context.Context, g *stage.Group, site string) error {
	group, err := g.Get(ctx)
	if err != nil {
		return err
	}
	to, err := otherCandidate(group, site)
	if err != nil {
		return err
	}
	return annotate(ctx, g, v1alpha1.AnnotationPlannedFailover, to)
}

// annotate asks the operator for something by an annotation of the group.
func annotate(ctx context.Context, g *stage.Group, key, value string) error {
	group, err := g.Get(ctx)
	if err != nil {
		return err
	}
	patch, err := json.Marshal(map[string]any{"metadata": map[string]any{"annotations": map[string]string{key: value}}})
	if err != nil {
		return fmt.Errorf("encode annotation: %w", err)
	}
	if err := g.Kube.Patch(ctx, group, client.RawPatch("application/merge-patch+json", patch)); err != nil {
		return fmt.Errorf("annotate %s=%s: %w", key, value, err)
	}
	return nil
}

func otherCandidate(group *v1alpha1.MysqlFailoverGroup, site string) (string, error) {
	for _, s := range group.Spec.Sites {
		if s.Name != site && s.Role == v1alpha1.PrimaryCandidate {
			return s.Name, nil
		}
	}
	return "", fmt.Errorf("group %s has no candidate beside %s", group.Name, site)
}

// awaitMove waits for the outcome of the planned failover that was asked for.
func awaitMove(ctx context.Context, g *stage.Group, before *v1alpha1.MysqlFailoverGroup) error {
	var outcome error
	_, err := g.Await(ctx, recovery, "the planned failover", func(group *v1alpha1.MysqlFailoverGroup) error {
		var ended bool
		ended, outcome = moveEnded(before, group)
		if !ended {
			return errors.New(stage.Describe(group))
		}
		return nil
	})
	return errors.Join(err, outcome)
}

// moveEnded tells whether a planned failover that was asked for since ended, and with an error if it did not succeed.
func moveEnded(before, now *v1alpha1.MysqlFailoverGroup) (bool, error) {
	p, old := now.Status.PlannedFailover, before.Status.PlannedFailover
	if p == nil || p.FinishedAt == nil || old != nil && old.FinishedAt != nil && old.FinishedAt.Equal(p.FinishedAt) {
		return false, nil
	}
	if p.Phase != v1alpha1.PlannedSucceeded {
		return true, fmt.Errorf("the planned failover to %s ended as %s (%s): %s", p.To, p.Phase, p.Reason, p.Message)
	}
	return now.Status.ActiveSite == p.To && now.Status.Transition == nil, nil
}

// deletePod deletes a pod with its grace period, as `kubectl delete pod` does: it waits until the pod is gone. The role
// moves while the pod ends.
func deletePod(ctx context.Context, g *stage.Group, site string) error {
	pod, err := g.Pod(ctx, site)
	if err != nil {
		return err
	}
	if err := stage.DeletePod(ctx, g, site); err != nil {
		return err
	}
	return stage.Poll(ctx, drainLimit, "the end of pod "+pod.Name, func(ctx context.Context) error {
		now := &corev1.Pod{}
		err := g.Kube.Get(ctx, client.ObjectKeyFromObject(pod), now)
		if apierrors.IsNotFound(err) || err == nil && now.UID != pod.UID {
			return nil
		}
		return errors.Join(err, errors.New("it is still there"))
	})
}

// drainLimit is how long kubectl may take to drain a node: it tries an eviction that was refused again every 5 s.
const drainLimit = 2 * time.Minute

// drainNode does what people do before they service a node. Only the group's pod is there to be moved.
func drainNode(ctx context.Context, g *stage.Group, site string) error {
	_, err := g.Lab.Kubectl(ctx, "drain", site, "--ignore-daemonsets", "--delete-emptydir-data",
		"--pod-selector="+v1alpha1.LabelGroup+"="+g.Name, "--timeout="+drainLimit.String())
	return err
}

func uncordonNode(ctx context.Context, g *stage.Group, site string) error {
	_, err := g.Lab.Kubectl(ctx, "uncordon", site)
	return err
}

// systemTablespace is the file without which mysqld does not start.
const systemTablespace = "ibdata1"

// ruinMysqld kills mysqld after it took from it the right to write the system tablespace: it starts again and again and
// ends at once, while the pod and its sidecar live. Nothing is damaged.
func ruinMysqld(ctx context.Context, g *stage.Group, site string) error {
	if err := setMode(ctx, g, site, 0o440); err != nil {
		return err
	}
	return stage.KillProcess(ctx, g, site, stage.Mysqld)
}

// mendMysqld gives the right back and replaces the pod: the kubelet would wait for minutes before it starts a container
// again that crashed so often.
func mendMysqld(ctx context.Context, g *stage.Group, site string) error {
	if err := setMode(ctx, g, site, 0o640); err != nil {
		return err
	}
	return stage.DeletePod(ctx, g, site)
}

// setMode changes the rights of the system tablespace, by way of the sidecar, which sees the volume too and runs while
// mysqld does not.
func setMode(ctx context.Context, g *stage.Group, site string, mode os.FileMode) error {
	return stage.Poll(ctx, 30*time.Second, "the volume of "+site, func(ctx context.Context) error {
		pid, err := stage.FindProcess(ctx, g, site, stage.Sidecar)
		if err != nil {
			return err
		}
		file := filepath.Join("/proc", strconv.Itoa(pid), "root", "var/lib/mysql/data", systemTablespace)
		if err := os.Chmod(file, mode); err != nil {
			return fmt.Errorf("change rights of %s of %s: %w", systemTablespace, site, err)
		}
		return nil
	})
}
