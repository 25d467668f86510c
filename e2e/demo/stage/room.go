// SPDX-License-Identifier: Apache-2.0

package stage

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"
)

// SiteMiB is what is set aside for one site. Seen on 2026-11-26, of a MySQL 9.7 with its defaults a minute after its start: 553 MiB, and 26 of its
// supervisor and the sidecar.
const SiteMiB = 640

// spareMiB stays for what else runs: Kubernetes' own programs and the writers.
const spareMiB = 2048

// Room is an error if the machine has no room for that many more groups of three sites: memory for the servers, and a volume on the node of
// each site. Without one, pods would wait for a volume that does not come, or the kernel would end what is tested.
func (s *Stage) Room(ctx context.Context, groups int) error {
	raw, err := os.ReadFile("/proc/meminfo")
	if err != nil {
		return fmt.Errorf("see how much memory is free: %w", err)
	}
	free, err := availableMiB(string(raw))
	if err != nil {
		return err
	}
	var volumes corev1.PersistentVolumeList
	if err := s.Kube.List(ctx, &volumes); err != nil {
		return fmt.Errorf("list volumes: %w", err)
	}
	return room(groups, free, volumes.Items)
}

func room(groups, freeMiB int, volumes []corev1.PersistentVolume) error {
	var errs []error
	if need := groups*len(Sites)*SiteMiB + spareMiB; need > freeMiB {
		errs = append(errs, fmt.Errorf("%d groups need some %d MiB of memory, and %d are free: choose %d groups or fewer",
			groups, need, freeMiB, max(0, (freeMiB-spareMiB)/(len(Sites)*SiteMiB))))
	}
	free := map[string]int{}
	for _, v := range volumes {
		if v.Status.Phase == corev1.VolumeAvailable {
			free[v.Labels[corev1.LabelHostname]]++
		}
	}
	for _, site := range Sites {
		if free[site] < groups {
			errs = append(errs, fmt.Errorf("%d groups need as many volumes on each node, and %s has %d: remove other groups, or end the lab (bin/lab down) and start it again", groups, site, free[site]))
		}
	}
	return errors.Join(errs...)
}

// availableMiB is what the kernel says that new programs can have.
func availableMiB(meminfo string) (int, error) {
	for line := range strings.Lines(meminfo) {
		if rest, ok := strings.CutPrefix(line, "MemAvailable:"); ok {
			kib, err := strconv.Atoi(strings.TrimSpace(strings.TrimSuffix(strings.TrimSpace(rest), "kB")))
			if err != nil {
				return 0, fmt.Errorf("read how much memory is free: %w", err)
			}
			return kib / 1024, nil
		}
	}
	return 0, errors.New("read how much memory is free: the kernel does not tell it")
}
