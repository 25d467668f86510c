// SPDX-License-Identifier: Apache-2.0

package stage

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"
)

// ResidentMiB is how much memory the operator and the sidecar of each site hold, in MiB, as the kernel counts it.
func (g *Group) ResidentMiB(ctx context.Context) (map[string]float64, error) {
	held := map[string]float64{}
	var errs []error
	pods, err := g.OperatorPods(ctx)
	errs = append(errs, err)
	for i := range pods {
		mib, err := residentIn(&pods[i], operatorProgram)
		held["operator"] += mib
		errs = append(errs, err)
	}
	for _, site := range Sites {
		pod, err := g.Pod(ctx, site)
		if err != nil {
			errs = append(errs, err)
			continue
		}
		mib, err := residentIn(pod, Sidecar)
		if err == nil {
			held["sidecar "+site] = mib
		}
		errs = append(errs, err)
	}
	return held, errors.Join(errs...)
}

// residentIn reads the memory of a program of a pod.
func residentIn(pod *corev1.Pod, p Program) (float64, error) {
	pid, err := FindIn(pod, p)
	if err != nil {
		return 0, err
	}
	return residentOf(pid, p.Name)
}

// residentOf reads the memory of a process, which is a program's, in MiB.
func residentOf(pid int, program string) (float64, error) {
	raw, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		return 0, fmt.Errorf("read memory of %s: %w", program, err)
	}
	for line := range strings.Lines(string(raw)) {
		if rest, ok := strings.CutPrefix(line, "VmRSS:"); ok {
			kib, err := strconv.ParseFloat(strings.TrimSpace(strings.TrimSuffix(strings.TrimSpace(rest), "kB")), 64)
			if err != nil {
				return 0, fmt.Errorf("read memory of %s: %w", program, err)
			}
			return kib / 1024, nil
		}
	}
	return 0, fmt.Errorf("read memory of %s: the kernel does not tell it", program)
}

// Restarts counts how often containers of the operator and of the group's pods were started again.
func (g *Group) Restarts(ctx context.Context) (sum int32, err error) {
	pods, err := g.OperatorPods(ctx)
	if err != nil {
		return 0, err
	}
	for _, site := range Sites {
		pod, err := g.Pod(ctx, site)
		if err != nil {
			return 0, err
		}
		pods = append(pods, *pod)
	}
	for i := range pods {
		for _, c := range append(pods[i].Status.ContainerStatuses, pods[i].Status.InitContainerStatuses...) {
			sum += c.RestartCount
		}
	}
	return sum, nil
}

// SitesMiB is how much memory all processes in the pod of each site hold together, in MiB. Pages that several of them share count for each.
func (g *Group) SitesMiB(ctx context.Context) (map[string]float64, error) {
	entries, err := os.ReadDir("/proc")
	if err != nil {
		return nil, fmt.Errorf("list processes: %w", err)
	}
	held := map[string]float64{}
	for _, site := range Sites {
		pod, err := g.Pod(ctx, site)
		if err != nil {
			return nil, err
		}
		var containers []string
		for _, c := range slices.Concat(pod.Status.ContainerStatuses, pod.Status.InitContainerStatuses) {
			if id, err := containerID(pod, c.Name); err == nil { // one that was never started holds nothing
				containers = append(containers, id)
			}
		}
		for _, e := range entries {
			pid, err := strconv.Atoi(e.Name())
			if err != nil || !slices.ContainsFunc(containers, func(id string) bool { return inContainer(pid, id) }) {
				continue
			}
			if mib, err := residentOf(pid, e.Name()); err == nil { // one that has ended holds nothing
				held[site] += mib
			}
		}
	}
	return held, nil
}
