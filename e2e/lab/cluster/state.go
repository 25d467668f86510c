// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
	"time"
)

// The phases of a lab, as far as its state file tells.
const (
	phaseStarting = "starting"
	phaseRunning  = "running"
)

// state is what the lab remembers between commands. Everything that has to be undone is
// written down before it is done.
type state struct {
	Phase   string     `json:"phase"`
	Repo    string     `json:"repo"`
	Cache   string     `json:"cache"`
	Started time.Time  `json:"started"`
	Nodes   []Endpoint `json:"nodes"`
	// Processes are the lab's own, by name: etcd, kubelet-east, …
	Processes map[string]Identity `json:"processes"`
	// Cut, Paused and Killed name the endpoints that are in such a state.
	Cut    map[string]bool `json:"cut,omitempty"`
	Paused map[string]bool `json:"paused,omitempty"`
	Killed map[string]bool `json:"killed,omitempty"`
	// Drops are the pairs that cannot reach each other.
	Drops []Drop `json:"drops,omitempty"`
	// Existing are those of the directories in traces that were there before the lab.
	Existing []string `json:"existing,omitempty"`
}

// Drop is one direction of a cut: nothing that From sends reaches To.
type Drop struct {
	From string `json:"from"`
	To   string `json:"to"`
}

func newState() *state {
	return &state{
		Phase:     phaseStarting,
		Processes: map[string]Identity{},
		Cut:       map[string]bool{}, Paused: map[string]bool{}, Killed: map[string]bool{},
	}
}

// over tells whether nothing is left of a lab that ran: its machine was restarted, or somebody ended all of it. Nobody
// can be using such a lab, so that the next one may clean up after it without being asked.
func (s *state) over() bool {
	if s.Phase != phaseRunning {
		return false // in the making: the lock tells whether somebody still is at work
	}
	for _, p := range s.Processes {
		if p.Alive() {
			return false
		}
	}
	return true
}

func statePath(dir string) string { return filepath.Join(dir, "state.json") }

// readState returns fs.ErrNotExist where no lab was started.
func readState(dir string) (*state, error) {
	raw, err := os.ReadFile(statePath(dir))
	if err != nil {
		return nil, fmt.Errorf("read state: %w", err)
	}
	s := newState()
	if err := json.Unmarshal(raw, s); err != nil {
		return nil, fmt.Errorf("read state: %w", err)
	}
	return s, nil
}

func writeState(dir string, s *state) error {
	raw, err := json.MarshalIndent(s, "", "  ")
	if err != nil {
		return fmt.Errorf("encode state: %w", err)
	}
	tmp := statePath(dir) + ".part"
	if err := os.WriteFile(tmp, append(raw, '\n'), 0o600); err != nil {
		return fmt.Errorf("write state: %w", err)
	}
	if err := os.Rename(tmp, statePath(dir)); err != nil {
		return fmt.Errorf("write state: %w", err)
	}
	return nil
}

// lock takes a file lock in the lab's directory and returns how to give it back. Which tells
// what is locked: "up" for the whole life of `lab up` and `lab down`, "state" for one change.
func lock(dir, which string, wait bool) (func(), error) {
	f, err := os.OpenFile(filepath.Join(dir, which+".lock"), os.O_CREATE|os.O_RDWR|syscall.O_CLOEXEC, 0o600)
	if err != nil {
		return nil, fmt.Errorf("open lock: %w", err)
	}
	how := syscall.LOCK_EX
	if !wait {
		how |= syscall.LOCK_NB
	}
	for {
		err = syscall.Flock(int(f.Fd()), how)
		if !errors.Is(err, syscall.EINTR) {
			break
		}
	}
	if err != nil {
		_ = f.Close()
		return nil, fmt.Errorf("take lock %s: %w", which, err)
	}
	return func() { _ = f.Close() }, nil
}

// update changes the state under its lock, so that commands running at the same time do not
// lose each other's changes.
func (c *Cluster) update(change func(*state) error) error {
	unlock, err := lock(c.dir, "state", true)
	if err != nil {
		return err
	}
	defer unlock()
	s, err := readState(c.dir)
	if err != nil {
		return err
	}
	if err := change(s); err != nil {
		return err
	}
	if err := writeState(c.dir, s); err != nil {
		return err
	}
	return nil
}

func (c *Cluster) state() (*state, error) {
	s, err := readState(c.dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("no lab runs in %s (start one with `lab up`)", c.dir)
	}
	return s, err
}
