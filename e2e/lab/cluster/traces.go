// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
)

const runNetns = "/run/netns"

// traces are directories outside the lab's own that container software makes; where they are
// cannot be told to it. Inner ones come first.
var traces = []string{
	"/var/log/containers", "/var/log/pods", "/var/lib/cni/results", "/var/lib/cni",
	"/var/lib/kubelet/device-plugins", "/var/lib/kubelet", "/run/containerd/s", "/run/containerd/fifo", "/run/containerd", runNetns,
}

// noteTraces remembers which of them were there before the lab.
func (c *Cluster) noteTraces() error {
	return c.update(func(s *state) error {
		s.Existing = nil
		for _, dir := range traces {
			if exists(dir) {
				s.Existing = append(s.Existing, dir)
			}
		}
		return nil
	})
}

// removeTraces deletes what container software left in them for this lab.
func (c *Cluster) removeTraces(s *state) error {
	var errs []error
	// kubelet links every container's log here, whatever its own directories are.
	links, _ := filepath.Glob("/var/log/containers/*")
	for _, link := range links {
		if to, err := os.Readlink(link); err == nil && strings.HasPrefix(to, c.dir+"/") {
			errs = append(errs, os.Remove(link))
		}
	}
	// CNI remembers results by network and container; "loopback" is everybody's network.
	results, _ := filepath.Glob("/var/lib/cni/results/mfg-lab-*-eth0")
	for _, file := range results {
		id := strings.Split(strings.TrimSuffix(file, "-eth0"), "-")
		_ = os.Remove("/var/lib/cni/results/cni-loopback-" + id[len(id)-1] + "-lo")
		errs = append(errs, os.Remove(file))
	}
	if socket := "/var/lib/kubelet/device-plugins/kubelet.sock"; !slices.Contains(s.Existing, filepath.Dir(socket)) {
		_ = os.Remove(socket) // each kubelet listens here, wherever its own directory is
	}
	for _, dir := range traces {
		if left, err := os.ReadDir(dir); err != nil || len(left) > 0 || slices.Contains(s.Existing, dir) {
			continue
		}
		if dir == runNetns {
			// `ip netns add` mounts it onto itself.
			_ = syscall.Unmount(dir, syscall.MNT_DETACH)
		}
		errs = append(errs, os.Remove(dir))
	}
	return errors.Join(append(errs, allowServices())...)
}
