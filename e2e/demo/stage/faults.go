// SPDX-License-Identifier: Apache-2.0

package stage

import (
	"context"
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/mysql-mfg/mfg/e2e/lab/cluster"
	"github.com/mysql-mfg/mfg/e2e/writer/load"
)

// Fault breaks one site of a group, and takes that back.
type Fault struct {
	// Name is that of the benchmark's case.
	Name string
	// Moves is true if the active site must have changed afterwards; MayMove if it may.
	Moves, MayMove bool
	Break          func(ctx context.Context, g *Group, site string) error
	// Repair is nil where the site comes back by itself.
	Repair func(ctx context.Context, g *Group, site string) error
}

// Faults are the cases of the benchmark.
func Faults() []Fault {
	return []Fault{
		{Name: "node-kill", Moves: true, MayMove: true, Break: killNode, Repair: startNode},
		{Name: "node-cut", Moves: true, MayMove: true, Break: cutSite, Repair: healSite},
		{Name: "pod-force-delete", MayMove: true, Break: forceDelete},
		{Name: "mysqld-kill", Break: killMysqld},
	}
}

// FaultNamed finds a fault.
func FaultNamed(name string) (Fault, error) {
	var names []string
	for _, f := range Faults() {
		if f.Name == name {
			return f, nil
		}
		names = append(names, f.Name)
	}
	return Fault{}, fmt.Errorf("%q is none of %s", name, strings.Join(names, ", "))
}

func killNode(ctx context.Context, g *Group, site string) error {
	return g.Lab.KillNode(ctx, site)
}

func startNode(ctx context.Context, g *Group, site string) error {
	if err := g.Lab.StartNode(ctx, site); err != nil {
		return err
	}
	return g.Lab.AwaitReady(ctx, 2*time.Minute, site)
}

// cutSite cuts a site's node off from every other node and from the control plane, silently, while clients still reach
// it: the case for which fences exist.
func cutSite(ctx context.Context, g *Group, site string) error {
	for _, other := range append([]string{cluster.HostName, cluster.HubName}, Sites...) {
		if other == site {
			continue
		}
		if err := g.Lab.CutNet(ctx, site, other, false); err != nil {
			return err
		}
	}
	return nil
}

func healSite(ctx context.Context, g *Group, site string) error {
	if err := g.Lab.HealAllNet(ctx); err != nil {
		return err
	}
	return g.Lab.AwaitReady(ctx, 2*time.Minute, site)
}

func forceDelete(ctx context.Context, g *Group, site string) error {
	pod, err := g.Pod(ctx, site)
	if err != nil {
		return err
	}
	if err := g.Kube.Delete(ctx, pod, client.GracePeriodSeconds(0)); err != nil {
		return fmt.Errorf("force-delete pod of %s: %w", site, err)
	}
	return nil
}

// DeletePod deletes a pod as kubectl does it, with its grace period.
func DeletePod(ctx context.Context, g *Group, site string) error {
	pod, err := g.Pod(ctx, site)
	if err != nil {
		return err
	}
	if err := g.Kube.Delete(ctx, pod); err != nil {
		return fmt.Errorf("delete pod of %s: %w", site, err)
	}
	return nil
}

func killMysqld(ctx context.Context, g *Group, site string) error {
	return KillProcess(ctx, g, site, Mysqld)
}

// Program is one process of a pod: what it is called, and the container in which it runs. The name alone does not tell: the
// supervisor of mysqld and the sidecar beside it are the same program.
type Program struct{ Container, Name string }

// The programs of a site's pod: the server, the supervisor that starts it, and the agent beside both.
var (
	Mysqld     = Program{"mysql", "mysqld"}
	Supervisor = Program{"mysql", "sidecar"}
	Sidecar    = Program{"sidecar", "sidecar"}
)

func (p Program) String() string { return p.Name + " (container " + p.Container + ")" }

// KillProcess sends SIGKILL to a program of a site's pod from outside, as an OOM killer would.
func KillProcess(ctx context.Context, g *Group, site string, p Program) error {
	pod, err := g.Pod(ctx, site)
	if err != nil {
		return err
	}
	return KillIn(pod, p)
}

// KillIn sends SIGKILL to a program of a pod, from outside.
func KillIn(pod *corev1.Pod, p Program) error {
	pid, err := FindIn(pod, p)
	if err != nil {
		return err
	}
	if err := syscall.Kill(pid, syscall.SIGKILL); err != nil {
		return fmt.Errorf("kill %s in %s: %w", p, pod.Name, err)
	}
	return nil
}

// FindProcess finds the machine's number of a program of a site's pod.
func FindProcess(ctx context.Context, g *Group, site string, p Program) (int, error) {
	pod, err := g.Pod(ctx, site)
	if err != nil {
		return 0, err
	}
	return FindIn(pod, p)
}

// FindIn finds the machine's number of a program of a pod. It goes by the container in the name of the process's control
// group, so that it can never hit anything else on this machine.
func FindIn(pod *corev1.Pod, p Program) (int, error) {
	id, err := containerID(pod, p.Container)
	if err != nil {
		return 0, err
	}
	entries, err := os.ReadDir("/proc")
	if err != nil {
		return 0, fmt.Errorf("list processes: %w", err)
	}
	for _, e := range entries {
		pid, err := strconv.Atoi(e.Name())
		if err != nil {
			continue
		}
		if isProgram(pid, p.Name) && inContainer(pid, id) {
			return pid, nil
		}
	}
	return 0, fmt.Errorf("find %s in %s: no such process", p, pod.Name)
}

func isProgram(pid int, name string) bool {
	comm, err := os.ReadFile(fmt.Sprintf("/proc/%d/comm", pid))
	return err == nil && strings.TrimSpace(string(comm)) == name
}

// containerID is how the container runtime calls a pod's container.
func containerID(pod *corev1.Pod, name string) (string, error) {
	for _, c := range slices.Concat(pod.Status.ContainerStatuses, pod.Status.InitContainerStatuses) {
		if _, id, ok := strings.Cut(c.ContainerID, "://"); ok && id != "" && c.Name == name {
			return id, nil
		}
	}
	return "", fmt.Errorf("container %s of %s was never started", name, pod.Name)
}

func inContainer(pid int, id string) bool {
	groups, err := os.ReadFile(fmt.Sprintf("/proc/%d/cgroup", pid))
	return err == nil && strings.Contains(string(groups), id)
}

// Break makes a fault on a site and tells when, on the machine's monotonic clock.
func (g *Group) Break(ctx context.Context, f Fault, site string) (time.Duration, error) {
	at := load.Now()
	if err := f.Break(ctx, g, site); err != nil {
		return at, fmt.Errorf("%s of %s: %w", f.Name, site, err)
	}
	return at, nil
}

// Undo takes a fault back.
func (g *Group) Undo(ctx context.Context, f Fault, site string) error {
	if f.Repair == nil {
		return nil
	}
	if err := f.Repair(ctx, g, site); err != nil {
		return fmt.Errorf("take back %s of %s: %w", f.Name, site, err)
	}
	return nil
}
