// SPDX-License-Identifier: Apache-2.0

package agent

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// mysqldName is the name of the program, as the kernel knows it.
const mysqldName = "mysqld"

// Mysqld is what the process table says about mysqld.
type Mysqld struct {
	// ID names the running processes, separated by spaces; each name stands for one process for ever. It is empty if
	// there is none.
	ID    string
	procs []process
}

type process struct {
	pid int
	// start is when it started, in clock ticks since the boot of the machine.
	start string
}

func (p process) String() string { return fmt.Sprintf("%d/%s", p.pid, p.start) }

// Running is true if there is a process.
func (m Mysqld) Running() bool { return m.ID != "" }

// PIDs are the numbers of the processes.
func (m Mysqld) PIDs() []int {
	pids := make([]int, 0, len(m.procs))
	for _, p := range m.procs {
		pids = append(pids, p.pid)
	}
	return pids
}

// Procfs finds mysqld in the process table of the pod. The containers of the pod share one process namespace.
type Procfs struct {
	// Root is /proc.
	Root string
	// Datadir is the data directory; mysqld locks a file in it.
	Datadir string
	// Only, if set, excludes all other processes; tests run beside other servers.
	Only func(pid int) bool
}

// Look finds mysqld. An error means that nothing is known.
func (p Procfs) Look() (Mysqld, error) {
	entries, err := os.ReadDir(p.Root)
	if err != nil {
		return Mysqld{}, fmt.Errorf("list processes: %w", err)
	}
	var found []process
	for _, e := range entries {
		pid, err := strconv.Atoi(e.Name())
		if err != nil || pid == os.Getpid() || (p.Only != nil && !p.Only(pid)) {
			continue
		}
		if proc, ok := p.mysqld(pid); ok {
			found = append(found, proc)
		}
	}
	return mysqldOf(found), nil
}

func mysqldOf(procs []process) Mysqld {
	ids := make([]string, 0, len(procs))
	for _, p := range procs {
		ids = append(ids, p.String())
	}
	slices.Sort(ids)
	return Mysqld{ID: strings.Join(ids, " "), procs: procs}
}

// among returns the processes that are in the list of an ID.
func (m Mysqld) among(id string) Mysqld {
	known := strings.Fields(id)
	return mysqldOf(slices.DeleteFunc(slices.Clone(m.procs), func(p process) bool {
		return !slices.Contains(known, p.String())
	}))
}

// mysqld says whether a process is a mysqld that can still do something.
func (p Procfs) mysqld(pid int) (process, bool) {
	dir := filepath.Join(p.Root, strconv.Itoa(pid))
	raw, err := os.ReadFile(filepath.Join(dir, "stat"))
	if err != nil {
		// It ended between the listing and now: the kernel lets every process read the stat of every living process.
		return process{}, false
	}
	comm, fields, ok := parseStat(string(raw))
	if !ok || (comm != mysqldName && !exeIs(dir, mysqldName)) {
		return process{}, false
	}
	const state, threads, start = 0, 17, 19 // fields 3, 20 and 22 of proc(5)
	if n, _ := strconv.Atoi(fields[threads]); n <= 1 && (fields[state] == "Z" || fields[state] == "X") {
		// It is dead and only not reaped yet: no thread is left that could commit.
		return process{}, false
	}
	return process{pid: pid, start: fields[start]}, true
}

// exeIs covers a main thread that was renamed. If this process may not read the link, the name of the thread alone decides.
func exeIs(dir, name string) bool {
	exe, err := os.Readlink(filepath.Join(dir, "exe"))
	return err == nil && filepath.Base(strings.TrimSuffix(exe, " (deleted)")) == name
}

// parseStat splits the line of proc(5) stat: "pid (comm) fields...". The name may itself hold spaces and parentheses.
func parseStat(line string) (comm string, fields []string, ok bool) {
	open, end := strings.IndexByte(line, '('), strings.LastIndexByte(line, ')')
	if open < 0 || end < open {
		return "", nil, false
	}
	fields = strings.Fields(line[end+1:])
	return line[open+1 : end], fields, len(fields) >= 20
}

// Locked says whether any process holds the lock that mysqld takes on its datadir: also a mysqld that cannot be seen from
// here, such as one of an older pod on the same volume. If that is not known, it counts as locked.
func (p Procfs) Locked() bool {
	f, err := os.Open(filepath.Join(p.Datadir, "ibdata1"))
	if errors.Is(err, os.ErrNotExist) {
		return false
	}
	if err != nil {
		return true
	}
	defer func() { _ = f.Close() }()
	lock := unix.Flock_t{Type: unix.F_WRLCK}
	if err := unix.FcntlFlock(f.Fd(), unix.F_GETLK, &lock); err != nil {
		return true
	}
	return lock.Type != unix.F_UNLCK
}

// Kill ends exactly the processes that were found, and none that may have got their numbers since.
func (p Procfs) Kill(m Mysqld) error {
	var errs []error
	for _, proc := range m.procs {
		if err := p.kill(proc); err != nil {
			errs = append(errs, fmt.Errorf("kill mysqld (process %d): %w", proc.pid, err))
		}
	}
	return errors.Join(errs...)
}

func (p Procfs) kill(proc process) error {
	handle, err := unix.PidfdOpen(proc.pid, 0)
	if errors.Is(err, unix.ESRCH) {
		return nil
	}
	if err != nil {
		return err
	}
	defer func() { _ = unix.Close(handle) }()
	// The handle stands for one process for ever; a look now shows whether that is the one that was found.
	if again, ok := p.mysqld(proc.pid); !ok || again != proc {
		return nil
	}
	if err := unix.PidfdSendSignal(handle, unix.SIGKILL, nil, 0); err != nil && !errors.Is(err, unix.ESRCH) {
		return err
	}
	return nil
}
