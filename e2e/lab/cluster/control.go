// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"context"
	"path/filepath"
	"strings"
	"time"
)

// etcd listens where nobody else does: another etcd may run on this machine.
const (
	etcdClient = "http://127.0.0.1:12379"
	etcdPeer   = "http://127.0.0.1:12380"
)

// idleControllers do work in the background for objects that no lab has.
var idleControllers = []string{
	"certificatesigningrequest-approving-controller", "certificatesigningrequest-cleaner-controller",
	"certificatesigningrequest-signing-controller", "horizontal-pod-autoscaler-controller",
	"persistentvolume-attach-detach-controller", "persistentvolume-expander-controller",
}

// controlPlane lists its programs in the order in which they start.
func (c *Cluster) controlPlane() []program {
	pki := func(name string) string { return filepath.Join(c.dir, "pki", name) }
	bin := func(name string) string { return filepath.Join(c.dir, "bin", name) }
	return []program{
		{name: "etcd", argv: []string{
			bin("etcd"), "--data-dir=" + filepath.Join(c.dir, "etcd"), "--unsafe-no-fsync", "--log-level=warn",
			"--listen-client-urls=" + etcdClient, "--advertise-client-urls=" + etcdClient,
			"--listen-peer-urls=" + etcdPeer, "--initial-advertise-peer-urls=" + etcdPeer,
			"--initial-cluster=default=" + etcdPeer,
		}},
		{name: "kube-apiserver", argv: []string{
			bin("kube-apiserver"), "--etcd-servers=" + etcdClient,
			"--bind-address=" + hostIP, "--advertise-address=" + hostIP,
			"--service-cluster-ip-range=" + serviceNet, "--authorization-mode=Node,RBAC", "--allow-privileged",
			"--client-ca-file=" + pki("ca.crt"),
			"--tls-cert-file=" + pki("apiserver.crt"), "--tls-private-key-file=" + pki("apiserver.key"),
			"--kubelet-client-certificate=" + pki("apiserver-kubelet.crt"),
			"--kubelet-client-key=" + pki("apiserver-kubelet.key"),
			"--kubelet-certificate-authority=" + pki("ca.crt"),
			"--kubelet-preferred-address-types=InternalIP",
			"--service-account-key-file=" + pki("sa.pub"), "--service-account-signing-key-file=" + pki("sa.key"),
			"--service-account-issuer=https://kubernetes.default.svc.cluster.local",
			// No kube-proxy runs on the host: webhooks are reached by their pods' addresses.
			"--enable-aggregator-routing",
			// Nobody competes for this API server, and fairness is not free when idle.
			"--enable-priority-and-fairness=false", "--profiling=false",
		}},
		{name: "kube-controller-manager", argv: []string{
			bin("kube-controller-manager"), "--kubeconfig=" + pki("controller-manager.conf"),
			"--use-service-account-credentials", "--service-account-private-key-file=" + pki("sa.key"),
			"--root-ca-file=" + pki("ca.crt"), "--leader-elect=false", "--secure-port=0", "--profiling=false",
			"--controllers=*,-" + strings.Join(idleControllers, ",-"),
		}},
		{name: "kube-scheduler", argv: []string{
			bin("kube-scheduler"), "--kubeconfig=" + pki("scheduler.conf"),
			"--leader-elect=false", "--secure-port=0", "--profiling=false",
		}},
	}
}

// startControlPlane returns once the API server is ready.
func (c *Cluster) startControlPlane(ctx context.Context) error {
	for _, p := range c.controlPlane() {
		p.cgroup = "sys/control"
		if p.name == "kube-controller-manager" {
			if err := c.awaitAPI(ctx); err != nil {
				return err
			}
		}
		if err := c.start(p); err != nil {
			return err
		}
	}
	return nil
}

func (c *Cluster) awaitAPI(ctx context.Context) error {
	return poll(ctx, 90*time.Second, "the API server", func() error {
		_, err := c.Kubectl(ctx, "get", "--raw", "/readyz")
		return err
	})
}
