// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"
)

// Options say what lab to build.
type Options struct {
	Dir   string   // "" for DefaultDir
	Cache string   // "" for DefaultCache
	Repo  string   // "" to look for the checkout
	Sites []string // the site nodes, nil for DefaultSites
	NoHub bool     // leave out the extra node
	// NoImages leaves out the project's own images.
	NoImages bool
	Out      io.Writer // progress goes here
}

// DefaultSites are the site nodes of a lab that nobody asked for others.
func DefaultSites() []string { return []string{"east", "west", "south"} }

// Up builds a lab and returns once every node is ready. What it does can be undone by Down at
// any point, whatever happened in between.
func Up(ctx context.Context, o Options) (*Cluster, error) {
	if err := checkMachine(); err != nil {
		return nil, err
	}
	if o.Sites == nil {
		o.Sites = DefaultSites()
	}
	nodes, err := planNodes(o.Sites, !o.NoHub)
	if err != nil {
		return nil, err
	}
	if o.Repo == "" {
		if o.Repo, err = FindRepo(); err != nil {
			return nil, err
		}
	}
	c, err := attach(o.Dir, cmp.Or(o.Out, io.Discard))
	if err != nil {
		return nil, err
	}
	cache, err := filepath.Abs(cmp.Or(o.Cache, DefaultCache()))
	if err != nil {
		return nil, fmt.Errorf("find cache: %w", err)
	}
	unlock, err := c.claim(ctx)
	if err != nil {
		return nil, err
	}
	defer unlock()
	s := newState()
	s.Nodes, s.Repo, s.Cache, s.Started = nodes, o.Repo, cache, time.Now()
	if err := writeState(c.dir, s); err != nil {
		return nil, err
	}
	if err := c.up(ctx, s, o); err != nil {
		return nil, fmt.Errorf("%w\n(logs are in %s; `lab down` cleans up)", err, filepath.Join(c.dir, "logs"))
	}
	return c, nil
}

// claim makes sure that no other lab is there or in the making, and holds that until unlocked.
func (c *Cluster) claim(ctx context.Context) (func(), error) {
	// A unix socket's path has room for 107 characters, and nodes' names and files follow.
	if len(c.dir) > 48 {
		return nil, fmt.Errorf("the lab directory %s is too long for the sockets in it: 48 characters at most", c.dir)
	}
	if err := os.MkdirAll(c.dir, 0o755); err != nil {
		return nil, fmt.Errorf("make lab directory: %w", err)
	}
	unlock, err := lock(c.dir, "up", false)
	if err != nil {
		return nil, fmt.Errorf("another `lab up` or `lab down` is at work in %s (%w)", c.dir, err)
	}
	if err := c.checkFree(ctx); err != nil {
		unlock()
		return nil, err
	}
	return unlock, nil
}

func (c *Cluster) checkFree(ctx context.Context) error {
	if owner, ok := bridgeOwner(); ok && owner != c.dir {
		return fmt.Errorf("another lab runs on this machine, in %s: end it with `MFG_LAB_DIR=%s lab down`", owner, owner)
	}
	s, err := readState(c.dir)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		// Even without a state there may be leftovers, if somebody removed the directory.
		if _, ok := bridgeOwner(); !ok && !exists(c.cgroups.path("")) {
			return nil
		}
	case err != nil:
		return err
	case s.over():
		c.say("cleaning up after a lab of which no program is left (was the machine restarted?)")
		return c.clean(ctx)
	case s.Phase == phaseRunning:
		return fmt.Errorf("a lab already runs in %s: use it, or end it with `lab down`", c.dir)
	}
	c.say("cleaning up after a lab that was not finished")
	return c.clean(ctx)
}

func (c *Cluster) up(ctx context.Context, s *state, o Options) error {
	for _, dir := range []string{"bin", "tools", "pki", "logs", "images", "nodes", "etcd"} {
		// etcd insists that nobody else can read its directory.
		if err := os.MkdirAll(filepath.Join(c.dir, dir), 0o700); err != nil {
			return fmt.Errorf("make lab directory: %w", err)
		}
	}
	if err := os.MkdirAll(s.Cache, 0o755); err != nil {
		return fmt.Errorf("make cache: %w", err)
	}
	seed, err := c.provide(ctx, s)
	if err != nil {
		return err
	}
	c.say("starting the control plane")
	if err := c.makeNetwork(ctx, s); err != nil {
		return err
	}
	if err := c.makeCredentials(s.Nodes); err != nil {
		return err
	}
	if err := together(
		func() error { return c.startControlPlane(ctx) },
		func() error { return c.prepareNodes(ctx, s.Nodes, seed) },
	); err != nil {
		return err
	}
	c.say("starting the nodes %s", strings.Join(nodeNames(s.Nodes), ", "))
	if err := c.startNodes(ctx, s, o); err != nil {
		return err
	}
	return c.update(func(s *state) error {
		s.Phase = phaseRunning
		return nil
	})
}

// provide makes, or finds in the cache, all that a lab is made of: binaries and images. It
// returns the containerd root that nodes start with.
func (c *Cluster) provide(ctx context.Context, s *state) (string, error) {
	// Compiling keeps the processors busy, Debian's packages the network. Where one cannot be had, nobody waits for the other.
	ctx, fail := context.WithCancelCause(ctx)
	defer fail(nil)
	or := func(err error) error {
		if err != nil {
			fail(err)
		}
		return err
	}
	if together(
		func() error { return or(c.ensureBuilds(ctx, s.Repo, s.Cache)) },
		func() error { return or(c.fetchPackages(ctx, s.Cache)) },
	) != nil {
		return "", context.Cause(ctx)
	}
	tars, err := c.baseImages(ctx, s.Repo, s.Cache)
	if err != nil {
		return "", err
	}
	seed, err := c.ensureSeed(ctx, s.Cache, tars)
	if err != nil {
		return "", err
	}
	return seed, pruneCache(s.Cache, time.Now().AddDate(0, 0, -30))
}

// fetchPackages installs the Debian packages that are missing, and fetches those that images are made of.
func (c *Cluster) fetchPackages(ctx context.Context, cache string) error {
	if err := c.ensurePackages(ctx); err != nil {
		return err
	}
	// What a package has made is not the lab's to remove.
	if err := c.noteTraces(); err != nil {
		return err
	}
	if _, err := c.mysqlImage(ctx, cache); err != nil {
		return err
	}
	_, err := c.valkeyRootfs(ctx, cache)
	return err
}

func (c *Cluster) prepareNodes(ctx context.Context, nodes []Endpoint, seed string) error {
	for _, n := range nodes {
		if err := c.seedNode(ctx, n, seed); err != nil {
			return err
		}
		if err := c.prepareNode(n); err != nil {
			return err
		}
	}
	return nil
}

// startNodes starts all nodes and what runs on them.
func (c *Cluster) startNodes(ctx context.Context, s *state, o Options) error {
	var starts []func() error
	for _, n := range s.Nodes {
		starts = append(starts, func() error { return c.startNode(ctx, n) })
	}
	starts = append(starts, func() error {
		dns, err := render("coredns.yaml", map[string]string{"DNS": dnsIP})
		if err != nil {
			return err
		}
		return errors.Join(c.Apply(ctx, dns), c.makeStorage(ctx, s.Nodes))
	})
	if err := together(starts...); err != nil {
		return err
	}
	if !o.NoImages {
		if _, err := c.BuildImages(ctx, ""); err != nil {
			return err
		}
	}
	if err := c.AwaitReady(ctx, 3*time.Minute); err != nil {
		return err
	}
	c.say("nodes are ready, waiting for DNS")
	_, err := c.Kubectl(ctx, "-n", "kube-system", "rollout", "status", "daemonset/coredns", "--timeout=120s")
	return err
}

func nodeNames(nodes []Endpoint) []string {
	var names []string
	for _, n := range nodes {
		names = append(names, n.Name)
	}
	return names
}

// together runs functions at the same time and returns all their errors.
func together(fns ...func() error) error {
	errs := make(chan error, len(fns))
	for _, fn := range fns {
		go func() { errs <- fn() }()
	}
	var all []error
	for range fns {
		all = append(all, <-errs)
	}
	return errors.Join(all...)
}
