// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
)

// Down ends the lab in dir ("" for the default place) and removes all traces of it but the
// cache. It may be called at any time, also for a lab that is half built or not there.
func Down(ctx context.Context, dir string, out io.Writer) error {
	if os.Geteuid() != 0 {
		return errors.New("the lab belongs to root: run lab down with sudo")
	}
	c, err := attach(dir, out)
	if err != nil {
		return err
	}
	if owner, ok := bridgeOwner(); ok && owner != c.dir {
		return fmt.Errorf("the lab that runs is in %s: end it with `MFG_LAB_DIR=%s lab down`", owner, owner)
	}
	if !exists(c.dir) {
		if _, ok := bridgeOwner(); !ok && !exists(c.cgroups.path("")) {
			c.say("no lab runs in %s", c.dir)
			return restoreHugePages()
		}
		if err := os.MkdirAll(c.dir, 0o755); err != nil {
			return fmt.Errorf("make lab directory: %w", err)
		}
	}
	unlock, err := lock(c.dir, "up", false)
	if err != nil {
		return fmt.Errorf("`lab up` or another `lab down` is at work in %s: end it first (%w)", c.dir, err)
	}
	defer unlock()
	if err := c.clean(ctx); err != nil {
		return fmt.Errorf("end the lab: %w (try again; nothing is lost by that)", err)
	}
	if err := os.RemoveAll(c.dir); err != nil {
		return fmt.Errorf("remove lab directory: %w", err)
	}
	c.say("the lab is down; the cache in %s stays", DefaultCache())
	return nil
}

// clean undoes everything but the lab directory and its locks.
func (c *Cluster) clean(ctx context.Context) error {
	s, err := readState(c.dir)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		s = leftoverState()
	case err != nil:
		c.say("the state cannot be read (%v); going by names instead", err)
		s = leftoverState()
	}
	c.say("ending processes")
	if err := c.cgroups.kill(""); err != nil {
		return err
	}
	c.say("removing mounts, network and control groups")
	for _, n := range s.Nodes {
		removeShimSockets(filepath.Join(c.nodeDir(n.Name), "run"))
	}
	removeShimSockets(filepath.Join(c.dir, "seed"))
	if err := errors.Join(
		unmountBelow(c.dir),
		c.removeNetwork(ctx, s),
		c.cgroups.remove(""),
		c.removeTraces(s),
		restoreHugePages(),
	); err != nil {
		return err
	}
	entries, err := os.ReadDir(c.dir)
	if err != nil {
		return fmt.Errorf("read lab directory: %w", err)
	}
	for _, e := range entries {
		if strings.HasSuffix(e.Name(), ".lock") {
			continue
		}
		if err := os.RemoveAll(filepath.Join(c.dir, e.Name())); err != nil {
			return fmt.Errorf("empty lab directory: %w", err)
		}
	}
	return nil
}

// leftoverState stands in for a state file that is lost: the namespaces tell the nodes.
func leftoverState() *state {
	s := newState()
	s.Existing = traces // to be on the safe side
	found, _ := filepath.Glob("/run/netns/mfg-*")
	for i, path := range found {
		if name := strings.TrimPrefix(filepath.Base(path), "mfg-"); name != ClientName {
			// The number is a guess; a cable goes with its namespace anyway.
			s.Nodes = append(s.Nodes, endpoint(name, firstNode+i, true))
		}
	}
	return s
}
