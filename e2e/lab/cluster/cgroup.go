// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// cgroupRoot is the lab's part of every hierarchy. Below it every node has a group that its
// containers run in, and "sys" holds the lab's own programs. Nothing else ever enters it, so
// its members are exactly the processes that the lab may end.
const cgroupRoot = "mfg-lab"

// cgroups knows the machine's control groups, of either version.
type cgroups struct {
	v2 bool
	// control is the hierarchy that lists and freezes processes.
	control string
	// all are the mount points of every hierarchy in which runc makes groups.
	all []string
}

// parseCgroups reads /proc/mounts. Where both versions are mounted the older one counts,
// because then that is where the controllers are.
func parseCgroups(mounts string) (cgroups, error) {
	var v1 []string
	var freezer, unified string
	for line := range strings.Lines(mounts) {
		f := strings.Fields(line)
		if len(f) < 4 {
			continue
		}
		switch f[2] {
		case "cgroup":
			v1 = append(v1, f[1])
			if slices.Contains(strings.Split(f[3], ","), "freezer") {
				freezer = f[1]
			}
		case "cgroup2":
			unified = f[1]
		}
	}
	switch {
	case freezer != "":
		if unified != "" {
			v1 = append(v1, unified)
		}
		return cgroups{control: freezer, all: v1}, nil
	case unified != "":
		return cgroups{v2: true, control: unified, all: []string{unified}}, nil
	}
	return cgroups{}, errors.New("find cgroups: neither a v1 freezer nor a v2 hierarchy is mounted")
}

func findCgroups() (cgroups, error) {
	raw, err := os.ReadFile("/proc/mounts")
	if err != nil {
		return cgroups{}, fmt.Errorf("find cgroups: %w", err)
	}
	return parseCgroups(string(raw))
}

// path is a group's folder in the hierarchy that lists processes.
func (g cgroups) path(group string) string {
	return filepath.Join(g.control, cgroupRoot, group)
}

// join makes a group and returns the file that takes new members.
func (g cgroups) join(group string) (string, error) {
	if err := os.MkdirAll(g.path(group), 0o755); err != nil {
		return "", fmt.Errorf("make cgroup: %w", err)
	}
	return filepath.Join(g.path(group), "cgroup.procs"), nil
}

// makeNode makes the group of a node's containers, as kubelet wants to find it: in every
// hierarchy, and with every controller.
func (g cgroups) makeNode(node string) error {
	for _, mount := range g.all {
		if err := os.MkdirAll(filepath.Join(mount, cgroupRoot, node), 0o755); err != nil {
			return fmt.Errorf("make cgroup: %w", err)
		}
	}
	if !g.v2 {
		return nil
	}
	// In v2 a group has the controllers that its parent hands down.
	raw, err := os.ReadFile(filepath.Join(g.control, "cgroup.controllers"))
	if err != nil {
		return fmt.Errorf("list controllers: %w", err)
	}
	for _, parent := range []string{g.control, g.path("")} {
		for name := range strings.FieldsSeq(string(raw)) {
			if err := os.WriteFile(filepath.Join(parent, "cgroup.subtree_control"), []byte("+"+name), 0o644); err != nil {
				return fmt.Errorf("enable controller %s in %s: %w", name, parent, err)
			}
		}
	}
	return nil
}

// members lists the processes of a group and of all groups below it.
func (g cgroups) members(group string) ([]int, error) {
	var pids []int
	err := filepath.WalkDir(g.path(group), func(path string, d fs.DirEntry, err error) error {
		if errors.Is(err, fs.ErrNotExist) {
			return nil // a container went away meanwhile
		}
		if err != nil || d.IsDir() || d.Name() != "cgroup.procs" {
			return err
		}
		raw, err := os.ReadFile(path)
		if err != nil {
			if errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.ENODEV) {
				return nil
			}
			return err
		}
		for word := range strings.FieldsSeq(string(raw)) {
			pid, err := strconv.Atoi(word)
			if err != nil {
				return err
			}
			// 0 stands for a process of another pid namespace; to kill 0 is to kill ourselves.
			if pid > 0 {
				pids = append(pids, pid)
			}
		}
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("list cgroup %s: %w", group, err)
	}
	return pids, nil
}

// freeze stops a group at once with everything below it, or lets it go on.
func (g cgroups) freeze(group string, on bool) error {
	file, value := "freezer.state", "THAWED"
	if on {
		value = "FROZEN"
	}
	if g.v2 {
		file, value = "cgroup.freeze", strconv.Itoa(map[bool]int{true: 1, false: 0}[on])
	}
	err := os.WriteFile(filepath.Join(g.path(group), file), []byte(value), 0o644)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("freeze cgroup %s: %w", group, err)
	}
	return nil
}

// kill ends every member of the groups as if the power went: all are frozen first, so that
// none can notice the others' end.
func (g cgroups) kill(groups ...string) error {
	// A process may be on its way in while we look, hence more than one round.
	for deadline := time.Now().Add(20 * time.Second); ; time.Sleep(20 * time.Millisecond) {
		left, err := g.strike(groups)
		if err != nil {
			return fmt.Errorf("kill cgroups %v: %w", groups, err)
		}
		if len(left) == 0 {
			return nil
		}
		if time.Now().After(deadline) {
			return fmt.Errorf("kill cgroups %v: processes %v do not die", groups, left)
		}
	}
}

// strike freezes the groups, sends every member SIGKILL and lets them go: a frozen process of
// v1 dies only then. It returns whom it found.
func (g cgroups) strike(groups []string) ([]int, error) {
	var errs []error
	for _, group := range groups {
		errs = append(errs, g.freeze(group, true))
	}
	var found []int
	for _, group := range groups {
		pids, err := g.members(group)
		errs = append(errs, err)
		for _, pid := range pids {
			_ = syscall.Kill(pid, syscall.SIGKILL)
		}
		found = append(found, pids...)
	}
	for _, group := range groups {
		errs = append(errs, g.freeze(group, false))
	}
	return found, errors.Join(errs...)
}

// remove deletes a group and all groups below it, in every hierarchy.
func (g cgroups) remove(group string) error {
	var errs []error
	for _, mount := range g.all {
		var dirs []string
		_ = filepath.WalkDir(filepath.Join(mount, cgroupRoot, group), func(path string, d fs.DirEntry, err error) error {
			if err == nil && d.IsDir() {
				dirs = append(dirs, path)
			}
			return nil
		})
		slices.Reverse(dirs) // the innermost first
		for _, dir := range dirs {
			// The kernel may take a moment to forget the dead.
			var err error
			for range 50 {
				if err = os.Remove(dir); err == nil || errors.Is(err, fs.ErrNotExist) {
					err = nil
					break
				}
				time.Sleep(20 * time.Millisecond)
			}
			errs = append(errs, err)
		}
	}
	return errors.Join(errs...)
}
