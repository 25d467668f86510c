// SPDX-License-Identifier: Apache-2.0

// Package cluster builds and drives the lab: a real Kubernetes of several nodes on one Linux
// machine, in which a node can be cut off, paused or killed for real. docs/internals/lab.md tells how
// it is made.
package cluster

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"
)

// Cluster is a lab, running or on its way up or down. Its methods may be called from several
// processes at the same time: what they remember is in the state file.
type Cluster struct {
	dir     string
	cgroups cgroups
	say     func(format string, args ...any)
	// building is held while an image is built: two builds of the same one would share its files.
	building sync.Mutex
	// recycling is held while volumes are emptied: another one would take those away that this one has just offered again.
	recycling sync.Mutex
}

// DefaultDir is where a lab keeps its state: $MFG_LAB_DIR or /var/lib/mfg-lab.
func DefaultDir() string { return cmp.Or(os.Getenv("MFG_LAB_DIR"), "/var/lib/mfg-lab") }

// DefaultCache is where build products stay between labs: $MFG_CACHE or ~/.cache/mfg.
func DefaultCache() string {
	if dir := os.Getenv("MFG_CACHE"); dir != "" {
		return dir
	}
	home, err := os.UserHomeDir()
	if err != nil {
		home = "/root"
	}
	return filepath.Join(home, ".cache", "mfg")
}

// Open attaches to the lab in dir ("" for the default place).
func Open(dir string) (*Cluster, error) {
	c, err := attach(dir, io.Discard)
	if err != nil {
		return nil, err
	}
	if _, err := c.state(); err != nil {
		return nil, err
	}
	return c, nil
}

func attach(dir string, out io.Writer) (*Cluster, error) {
	dir, err := filepath.Abs(cmp.Or(dir, DefaultDir()))
	if err != nil {
		return nil, fmt.Errorf("find lab directory: %w", err)
	}
	groups, err := findCgroups()
	if err != nil {
		return nil, err
	}
	return &Cluster{dir: dir, cgroups: groups, say: progress(out)}, nil
}

// progress prints lines with the time since the start.
func progress(out io.Writer) func(string, ...any) {
	start := time.Now()
	return func(format string, args ...any) {
		_, _ = fmt.Fprintf(out, "[%6.1fs] %s\n", time.Since(start).Seconds(), fmt.Sprintf(format, args...))
	}
}

// Dir is the lab's directory.
func (c *Cluster) Dir() string { return c.dir }

// Kubeconfig is the path of the administrator's kubeconfig.
func (c *Cluster) Kubeconfig() string { return filepath.Join(c.dir, "pki", "admin.conf") }

// Tools is the directory that holds kubectl and helm of the right versions.
func (c *Cluster) Tools() string { return filepath.Join(c.dir, "tools") }

// Nodes are the lab's nodes, the hub first.
func (c *Cluster) Nodes() ([]Endpoint, error) {
	s, err := c.state()
	if err != nil {
		return nil, err
	}
	return s.Nodes, nil
}

// endpoints are all places on the network: the host, the nodes, the client namespace.
func (s *state) endpoints() []Endpoint {
	return slices.Concat([]Endpoint{hostEndpoint()}, s.Nodes, []Endpoint{clientEndpoint()})
}

// namespaces are the endpoints with a network namespace of their own.
func (s *state) namespaces() []Endpoint { return s.endpoints()[1:] }

func find(list []Endpoint, name string) (Endpoint, error) {
	i := slices.IndexFunc(list, func(e Endpoint) bool { return e.Name == name })
	if i < 0 {
		var known []string
		for _, e := range list {
			known = append(known, e.Name)
		}
		return Endpoint{}, fmt.Errorf("%q is none of %s", name, strings.Join(known, ", "))
	}
	return list[i], nil
}

func (c *Cluster) nodeDir(name string) string { return filepath.Join(c.dir, "nodes", name) }

// Environ is this process's environment with KUBECONFIG and PATH set for the lab.
func (c *Cluster) Environ() []string {
	return append(os.Environ(),
		"KUBECONFIG="+c.Kubeconfig(),
		"PATH="+c.Tools()+string(os.PathListSeparator)+os.Getenv("PATH"))
}

// Kubectl runs kubectl as the administrator and returns what it printed.
func (c *Cluster) Kubectl(ctx context.Context, args ...string) (string, error) {
	return c.tool(ctx, nil, "kubectl", args)
}

// Apply creates or updates what the manifests describe.
func (c *Cluster) Apply(ctx context.Context, manifests string) error {
	_, err := c.tool(ctx, strings.NewReader(manifests), "kubectl", []string{"apply", "-f", "-"})
	return err
}

// Helm runs helm as the administrator and returns what it printed.
func (c *Cluster) Helm(ctx context.Context, args ...string) (string, error) {
	return c.tool(ctx, nil, "helm", args)
}

// toolLimit is for commands whose caller sets none. The end of a command in a pod can get lost between containerd and the kubelet, which
// closes the connection after four hours.
const toolLimit = 10 * time.Minute

func (c *Cluster) tool(ctx context.Context, stdin io.Reader, name string, args []string) (string, error) {
	if _, limited := ctx.Deadline(); !limited {
		limit, cancel := context.WithTimeout(ctx, toolLimit)
		defer cancel()
		ctx = limit
	}
	cmd := exec.CommandContext(ctx, filepath.Join(c.Tools(), name), args...)
	cmd.Env, cmd.Stdin = c.Environ(), stdin
	out, err := outputOf(cmd)
	if err != nil && ctx.Err() != nil {
		err = fmt.Errorf("%w: %w", ctx.Err(), err) // otherwise it says no more than "killed"
	}
	return out, err
}

// Command prepares a command that runs at an endpoint: in the network namespace of a node or
// of the client, or simply here for the host. It sees this machine's files.
func (c *Cluster) Command(ctx context.Context, name string, argv ...string) (*exec.Cmd, error) {
	s, err := c.state()
	if err != nil {
		return nil, err
	}
	at, err := find(s.endpoints(), name)
	if err != nil {
		return nil, err
	}
	if len(argv) == 0 {
		return nil, fmt.Errorf("no command given")
	}
	if ns := at.Netns(); ns != "" {
		argv = slices.Concat([]string{"nsenter", "--net=" + netnsPath(ns), "--"}, argv)
	}
	cmd := exec.CommandContext(ctx, argv[0], argv[1:]...)
	cmd.Env = c.Environ()
	return cmd, nil
}

// Exec runs a command at an endpoint and returns what it printed.
func (c *Cluster) Exec(ctx context.Context, name string, argv ...string) (string, error) {
	cmd, err := c.Command(ctx, name, argv...)
	if err != nil {
		return "", err
	}
	return outputOf(cmd)
}

// Progress makes long steps report to out.
func (c *Cluster) Progress(out io.Writer) { c.say = progress(out) }
