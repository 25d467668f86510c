// SPDX-License-Identifier: Apache-2.0

package stage

import (
	"context"
	"fmt"
	"syscall"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/mysql-mfg/mfg/api/v1alpha1"
)

// Process is a program of a pod, as a process of this machine.
type Process struct {
	pid     int
	program string
}

// What runs in a pod that makes a backup: the program, and the server that it starts for a physical one. LoadProgram is that program in the
// pod of a site, as it loads a backup.
var (
	BackupProgram = Program{"backup", "backup"}
	BackupMysqld  = Program{"backup", "mysqld"}
	LoadProgram   = Program{v1alpha1.ContainerLoad, "backup"}
)

// BackupProcess finds a program in the pod that makes a backup.
func (g *Group) BackupProcess(ctx context.Context, backup string, program Program) (*Process, error) {
	var pods corev1.PodList
	if err := g.Kube.List(ctx, &pods, client.InNamespace(g.Namespace), client.MatchingLabels{
		v1alpha1.LabelBackup: backup, v1alpha1.LabelBackupTask: v1alpha1.TaskBackup,
	}); err != nil {
		return nil, fmt.Errorf("list the pods of backup %s: %w", backup, err)
	}
	for i := range pods.Items {
		if pid, err := FindIn(&pods.Items[i], program); err == nil {
			return &Process{pid: pid, program: program.Name}, nil
		}
	}
	return nil, fmt.Errorf("find %s of backup %s: none of %d pods has it", program, backup, len(pods.Items))
}

// Freeze stops the process where it is; Thaw has it go on.
func (p *Process) Freeze() error { return p.signal(syscall.SIGSTOP) }

// Thaw takes Freeze back. Of one that is gone it says nothing.
func (p *Process) Thaw() error {
	if !isProgram(p.pid, p.program) {
		return nil
	}
	return p.signal(syscall.SIGCONT)
}

// Kill sends SIGKILL.
func (p *Process) Kill() error { return p.signal(syscall.SIGKILL) }

func (p *Process) signal(signal syscall.Signal) error {
	if err := syscall.Kill(p.pid, signal); err != nil {
		return fmt.Errorf("send %s to %s: %w", signal, p.program, err)
	}
	return nil
}
