// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	cri "k8s.io/cri-api/pkg/apis/runtime/v1"
)

// nodePrograms run on every node, named after it.
var nodePrograms = []string{"containerd", "kubelet", "kube-proxy"}

func sysGroup(node string) string { return "sys/" + node }

// prepareNode writes a node's configuration. Its container images are laid in by seedNode.
func (c *Cluster) prepareNode(n Endpoint) error {
	conf := c.nodeConfig(n)
	for _, dir := range []string{"cni", "kubelet", "podlogs", "volumes"} {
		if err := os.MkdirAll(filepath.Join(conf.Dir, dir), 0o755); err != nil {
			return fmt.Errorf("make node directory: %w", err)
		}
	}
	files := map[string]string{
		"containerd.toml": "containerd.toml", "cni.conflist": "cni/10-mfg-lab.conflist",
		"kubelet.yaml": "kubelet.yaml", "proxy.yaml": "proxy.yaml",
	}
	for name, dst := range files {
		text, err := render(name, conf)
		if err != nil {
			return err
		}
		if err := os.WriteFile(filepath.Join(conf.Dir, dst), []byte(text), 0o600); err != nil {
			return fmt.Errorf("write node configuration: %w", err)
		}
	}
	// Pods that inherit the node's resolver get one that answers nothing.
	if err := os.WriteFile(filepath.Join(conf.Dir, "resolv.conf"), []byte("nameserver 127.0.0.1\n"), 0o600); err != nil {
		return fmt.Errorf("write node configuration: %w", err)
	}
	return nil
}

// startNode starts a prepared node's programs in its namespace.
func (c *Cluster) startNode(ctx context.Context, n Endpoint) error {
	conf := c.nodeConfig(n)
	if err := os.MkdirAll(conf.Run, 0o700); err != nil {
		return fmt.Errorf("make run directory: %w", err)
	}
	if err := c.cgroups.makeNode(n.Name); err != nil {
		return err
	}
	if err := c.start(nodeProgram(n, "containerd", "containerd", "-c", conf.Dir+"/containerd.toml", "-l", "warn")); err != nil {
		return err
	}
	if err := awaitSocket(ctx, conf.Run+"/containerd.sock"); err != nil {
		return err
	}
	if err := awaitRuntime(ctx, conf.Run+"/containerd.sock"); err != nil {
		return err
	}
	return c.startAgents(n)
}

// startAgents starts what talks to the API server on a node.
func (c *Cluster) startAgents(n Endpoint) error {
	conf := c.nodeConfig(n)
	bin := func(name string) string { return filepath.Join(c.dir, "bin", name) }
	if err := c.start(nodeProgram(n, "kubelet", bin("kubelet"),
		"--config="+conf.Dir+"/kubelet.yaml", "--kubeconfig="+conf.PKI+"/node-"+n.Name+".conf",
		"--hostname-override="+n.Name, "--node-ip="+n.IP, "--root-dir="+conf.Dir+"/kubelet",
		"--node-labels="+nodeLabels(n))); err != nil {
		return err
	}
	return c.start(nodeProgram(n, "kube-proxy", bin("kube-proxy"), "--config="+conf.Dir+"/proxy.yaml"))
}

func nodeProgram(n Endpoint, name string, argv ...string) program {
	return program{name: name + "-" + n.Name, netns: n.Netns(), cgroup: sysGroup(n.Name), argv: argv}
}

func nodeLabels(n Endpoint) string {
	labels := "topology.kubernetes.io/zone=" + n.Name
	role := "site"
	if n.Name == HubName {
		role = "hub"
	}
	return labels + ",mysql-mfg.io/lab-role=" + role
}

// awaitSocket waits until containerd answers and not only until its socket file is there.
func awaitSocket(ctx context.Context, path string) error {
	return poll(ctx, 60*time.Second, path, func() error {
		conn, err := new(net.Dialer).DialContext(ctx, "unix", path)
		if err != nil {
			return err
		}
		_ = conn.Close()
		_, err = output(ctx, "ctr", "-a", path, "version")
		return err
	})
}

// awaitRuntime waits until containerd serves kubelets. Its own API answers earlier: the kubelet
// interface refuses every call until it has recovered its state, and a kubelet that is refused at
// its start ends for good.
func awaitRuntime(ctx context.Context, path string) error {
	conn, err := grpc.NewClient("unix://"+path, grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		return fmt.Errorf("dial container runtime: %w", err)
	}
	defer func() { _ = conn.Close() }()
	client := cri.NewRuntimeServiceClient(conn)
	return poll(ctx, 60*time.Second, "the container runtime on "+path, func() error {
		_, err := client.Version(ctx, &cri.VersionRequest{})
		return err
	})
}

// clearRuntime removes what a reboot would not leave: mounts, sockets and network namespaces
// of containers that are no more.
func (c *Cluster) clearRuntime(node string) error {
	run := filepath.Join(c.nodeDir(node), "run")
	removeShimSockets(run)
	return errors.Join(unmountBelow(c.nodeDir(node)), os.RemoveAll(run))
}

// removeShimSockets deletes the sockets of the node's containers. containerd puts them into a
// directory of its own choice, /run/containerd/s, and tells which in each container's bundle.
func removeShimSockets(run string) {
	files, _ := filepath.Glob(filepath.Join(run, "containerd", "io.containerd.runtime.v2.task", "*", "*", "address"))
	for _, file := range files {
		raw, err := os.ReadFile(file)
		if err != nil {
			continue
		}
		const scheme = "unix://"
		if address := string(raw); len(address) > len(scheme) && address[:len(scheme)] == scheme {
			_ = os.Remove(address[len(scheme):])
		}
	}
}
