// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/mysql-mfg/mfg/api/v1alpha1"
	"github.com/mysql-mfg/mfg/e2e/demo/stage"
	"github.com/mysql-mfg/mfg/e2e/lab/cluster"
)

// leadLimit is how long it may take until the operator leads from a node.
const leadLimit = 2 * time.Minute

// afterStandby is the target of a lost node that took the operator along while another one stood by.
func afterStandby(spec v1alpha1.MysqlFailoverGroupSpec) []target {
	return []target{{Figure: figureMax, Limit: (leaseOf(spec) + 8*time.Second).Seconds()}}
}

// leadFrom runs two operators, on a site's node and on the hub, and has the one on the site's node lead.
func leadFrom(ctx context.Context, g *stage.Group, site string) error {
	values, err := g.OperatorValues()
	if err != nil {
		return err
	}
	values["replicas"] = 2
	values["nodeSelector"] = nil
	values["affinity"] = map[string]any{"nodeAffinity": map[string]any{"requiredDuringSchedulingIgnoredDuringExecution": map[string]any{
		"nodeSelectorTerms": []any{map[string]any{"matchExpressions": []any{
			map[string]any{"key": corev1.LabelHostname, "operator": "In", "values": []string{cluster.HubName, site}},
		}}},
	}}}
	if _, err := g.Helm(ctx, values, "upgrade", "--install", stage.OperatorRelease, g.Chart("mfg"), "--namespace", stage.OperatorNamespace, "--timeout", "2m"); err != nil {
		return err
	}
	if err := g.AwaitOperator(ctx, leadLimit); err != nil {
		return err
	}
	if _, err := g.AwaitReady(ctx, bringUp); err != nil {
		return err
	}
	return stage.Poll(ctx, leadLimit, "the operator on "+site+" to lead", func(ctx context.Context) error { return handLead(ctx, g, site) })
}

// handLead is nil if the operator on a node leads and the other one stands by. One that leads elsewhere is deleted, as a person would do.
func handLead(ctx context.Context, g *stage.Group, node string) error {
	holder, err := g.Lab.Kubectl(ctx, "-n", stage.OperatorNamespace, "get", "lease", "mfg-operator", "-o", "jsonpath={.spec.holderIdentity}")
	if err != nil {
		return err
	}
	pods, err := g.OperatorPods(ctx)
	if err != nil {
		return err
	}
	if len(pods) != 2 {
		return fmt.Errorf("%d operators run, want 2", len(pods))
	}
	for _, pod := range pods {
		if pod.DeletionTimestamp != nil || !podReady(&pod) {
			return fmt.Errorf("pod %s is not ready", pod.Name)
		}
	}
	for i := range pods {
		pod := &pods[i]
		switch leads := strings.HasPrefix(strings.TrimSpace(holder), pod.Name+"_"); {
		case leads && pod.Spec.NodeName == node && pod.Labels[v1alpha1.LabelLeader] == v1alpha1.Leads:
			return nil
		case leads && pod.Spec.NodeName != node:
			return errors.Join(g.Kube.Delete(ctx, pod, client.GracePeriodSeconds(5)), fmt.Errorf("the one on %s leads", pod.Spec.NodeName))
		}
	}
	return fmt.Errorf("%q leads, and is not labelled yet or is none of the pods", strings.TrimSpace(holder))
}

func podReady(pod *corev1.Pod) bool {
	for _, c := range pod.Status.Conditions {
		if c.Type == corev1.PodReady {
			return c.Status == corev1.ConditionTrue
		}
	}
	return false
}

// endStandby gives the node back and leaves the lab with the one operator that every other case expects.
func endStandby(ctx context.Context, g *stage.Group, site string) error {
	err := g.Lab.StartNode(ctx, site)
	if err == nil {
		err = g.Lab.AwaitReady(ctx, 2*time.Minute, site)
	}
	return errors.Join(err, g.InstallOperator(ctx))
}

// killNode is loss of power.
func killNode(ctx context.Context, g *stage.Group, site string) error {
	return g.Lab.KillNode(ctx, site)
}
