// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"syscall"
)

func (c *Cluster) etcdDir() string { return filepath.Join(c.dir, "etcd") }

// BackUpEtcd copies what etcd holds at this moment, and returns where the copy is. etcd is stopped (SIGSTOP) meanwhile, so the copy is
// what a crash would leave.
func (c *Cluster) BackUpEtcd(ctx context.Context) (string, error) {
	s, err := c.state()
	if err != nil {
		return "", err
	}
	etcd, ok := s.Processes["etcd"]
	if !ok || !etcd.Alive() {
		return "", errors.New("back up etcd: it does not run")
	}
	backup := c.etcdDir() + "-backup"
	if err := os.RemoveAll(backup); err != nil {
		return "", fmt.Errorf("remove former backup of etcd: %w", err)
	}
	if err := syscall.Kill(etcd.PID, syscall.SIGSTOP); err != nil {
		return "", fmt.Errorf("stop etcd: %w", err)
	}
	_, err = output(ctx, "cp", "--archive", c.etcdDir(), backup)
	return backup, errors.Join(err, syscall.Kill(etcd.PID, syscall.SIGCONT))
}

// RestoreEtcd kills the control plane, whose API server would wait for its clients, and starts it with what a backup holds.
// Everything that talks to the API server on the nodes is restarted, as the runbooks of such a restore say: what it remembers is
// newer than what it will find. Containers run on. It cannot be broken off: half a restore leaves no cluster.
func (c *Cluster) RestoreEtcd(ctx context.Context, backup string) error {
	ctx = context.WithoutCancel(ctx)
	programs := c.controlPlane()
	slices.Reverse(programs)
	for _, p := range programs {
		if err := c.stop(ctx, p.name, syscall.SIGKILL); err != nil {
			return err
		}
	}
	nodes, err := c.Nodes()
	if err != nil {
		return err
	}
	for _, n := range nodes {
		for _, agent := range []string{"kubelet", "kube-proxy"} {
			if err := c.stop(ctx, agent+"-"+n.Name, syscall.SIGTERM); err != nil {
				return err
			}
		}
	}
	if err := os.RemoveAll(c.etcdDir()); err != nil {
		return fmt.Errorf("restore etcd: %w", err)
	}
	if err := os.Rename(backup, c.etcdDir()); err != nil {
		return fmt.Errorf("restore etcd: %w", err)
	}
	if err := c.startControlPlane(ctx); err != nil {
		return err
	}
	for _, n := range nodes {
		if err := c.startAgents(n); err != nil {
			return err
		}
	}
	return nil
}
