// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"context"
	"errors"
	"fmt"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// Identity names one process for good: numbers are reused, a number with its start time is
// not.
type Identity struct {
	PID   int    `json:"pid"`
	Start uint64 `json:"start"` // field 22 of /proc/PID/stat, in clock ticks since boot
}

// parseStart finds the start time in a line of /proc/PID/stat. The second field is the
// command's name in parentheses and may itself hold spaces and parentheses.
func parseStart(stat string) (uint64, error) {
	end := strings.LastIndexByte(stat, ')')
	if end < 0 {
		return 0, fmt.Errorf("parse stat: no command name in %q", stat)
	}
	fields := strings.Fields(stat[end+1:])
	const startField = 22 - 3 // the first field after the name is number 3
	if len(fields) <= startField {
		return 0, fmt.Errorf("parse stat: only %d fields after the name", len(fields))
	}
	return strconv.ParseUint(fields[startField], 10, 64)
}

func identify(pid int) (Identity, error) {
	raw, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return Identity{}, fmt.Errorf("identify process: %w", err)
	}
	start, err := parseStart(string(raw))
	return Identity{PID: pid, Start: start}, err
}

// Alive tells whether the very process still exists (a zombie does not count).
func (i Identity) Alive() bool {
	raw, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", i.PID))
	if err != nil {
		return false
	}
	start, err := parseStart(string(raw))
	if err != nil || start != i.Start {
		return false
	}
	end := strings.LastIndexByte(string(raw), ')')
	return !strings.HasPrefix(string(raw[end+1:]), " Z")
}

// program is a process that the lab starts and leaves running.
type program struct {
	name   string // for the state file and the log
	netns  string // "" for the host's
	cgroup string // below the lab's part of the hierarchy
	argv   []string
	env    []string
}

// work runs a helper to its end in a cgroup and a temporary directory of the lab, so that
// `lab down` also finds what a broken-off `lab up` left compiling.
func (c *Cluster) work(ctx context.Context, dir string, env []string, argv ...string) error {
	const group = "sys/work"
	procs, err := c.cgroups.join(group)
	if err != nil {
		return err
	}
	tmp := filepath.Join(c.dir, "tmp")
	if err := os.MkdirAll(tmp, 0o1777); err != nil {
		return fmt.Errorf("make temporary directory: %w", err)
	}
	cmd := exec.CommandContext(ctx, "/bin/sh", append([]string{"-c", intoCgroup, procs}, argv...)...)
	cmd.Dir = dir
	cmd.Env = append(append(os.Environ(), "TMPDIR="+tmp), env...)
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	// Compilers are children of the go command: if one of the helpers ends early, all do.
	cmd.Cancel = func() error { return c.cgroups.kill(group) }
	_, err = outputOf(cmd)
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	return err
}

// intoCgroup is a shell script: its $0 is the cgroup's file, its arguments the program.
const intoCgroup = `echo $$ >"$0" && exec "$@"`

// keepFiles has programs that outlive us inherit none of the files that our parent left open: `flock FILE make demo`
// would hold its lock for as long as a node runs that was started by it.
func keepFiles() error {
	if err := unix.CloseRange(3, math.MaxUint32, unix.CLOSE_RANGE_CLOEXEC); err != nil {
		return fmt.Errorf("keep open files from programs of the lab: %w", err)
	}
	return nil
}

// start launches a program of the lab. It joins its cgroup before it becomes the program, so
// that there is no moment at which `lab down` could not find it.
func (c *Cluster) start(p program) error {
	procs, err := c.cgroups.join(p.cgroup)
	if err != nil {
		return err
	}
	log, err := os.OpenFile(c.logPath(p.name), os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o644)
	if err != nil {
		return fmt.Errorf("open log: %w", err)
	}
	defer func() { _ = log.Close() }()
	if err := keepFiles(); err != nil {
		return err
	}
	argv := []string{"-c", intoCgroup, procs}
	if p.netns != "" {
		// nsenter and not `ip netns exec`: that one also makes a mount namespace, and then
		// containerd would not see what kubelet mounts for a pod.
		argv = append(argv, "nsenter", "--net="+netnsPath(p.netns), "--")
	}
	cmd := exec.Command("/bin/sh", append(argv, p.argv...)...) //nolint:noctx // it outlives us
	cmd.Dir, cmd.Env = "/", append(os.Environ(), p.env...)
	cmd.Stdout, cmd.Stderr = log, log
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	if err := cmd.Start(); err != nil {
		return fmt.Errorf("start %s: %w", p.name, err)
	}
	id, err := identify(cmd.Process.Pid)
	go func() { _ = cmd.Wait() }() // no zombies while we live; afterwards init reaps
	if err != nil {
		return fmt.Errorf("start %s: %w", p.name, err)
	}
	return c.update(func(s *state) error {
		s.Processes[p.name] = id
		return nil
	})
}

func (c *Cluster) logPath(name string) string {
	return filepath.Join(c.dir, "logs", name+".log")
}

// stop asks one of the lab's programs to end (SIGTERM), or ends it (SIGKILL), and waits until it has.
func (c *Cluster) stop(ctx context.Context, name string, signal syscall.Signal) error {
	s, err := c.state()
	if err != nil {
		return err
	}
	id, ok := s.Processes[name]
	if ok && id.Alive() {
		_ = syscall.Kill(id.PID, signal)
		if err := poll(ctx, 10*time.Second, "the end of "+name, func() error {
			if id.Alive() {
				return errors.New("still alive")
			}
			return nil
		}); err != nil {
			return err
		}
	}
	return c.update(func(s *state) error {
		delete(s.Processes, name)
		return nil
	})
}

// poll tries until it succeeds, at most for the given time, and then tells the last error.
func poll(ctx context.Context, limit time.Duration, what string, try func() error) error {
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	tick := time.NewTicker(100 * time.Millisecond)
	defer tick.Stop()
	for {
		err := try()
		if err == nil {
			return nil
		}
		if errors.Is(err, errHopeless) {
			return fmt.Errorf("wait for %s: %w", what, err)
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("wait for %s: %w (last seen: %w)", what, ctx.Err(), err)
		case <-tick.C:
		}
	}
}

// output runs a command to its end and returns what it printed; a failure carries it.
func output(ctx context.Context, name string, args ...string) (string, error) {
	return outputOf(exec.CommandContext(ctx, name, args...))
}

func outputOf(cmd *exec.Cmd) (string, error) {
	var stderr strings.Builder
	if cmd.Stderr == nil {
		cmd.Stderr = &stderr
	}
	out, err := cmd.Output()
	if err != nil {
		said := strings.TrimSpace(stderr.String() + "\n" + string(out))
		// Statements may be long, and a reader of CI's last words sees only the beginning.
		return string(out), fmt.Errorf("run %s: %w: %s", head(strings.Join(cmd.Args, " "), 160), err, tail(said, 2000))
	}
	return string(out), nil
}

func head(s string, n int) string {
	if len(s) > n {
		return s[:n] + "…"
	}
	return s
}

func tail(s string, n int) string {
	if len(s) > n {
		return "…" + s[len(s)-n:]
	}
	return s
}
