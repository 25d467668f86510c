// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/mysql-mfg/mfg/api/wire"
	"github.com/mysql-mfg/mfg/internal/mysql"
)

// Files of the sidecar's own password in the accounts Secret. Only the first is always there.
const (
	passwordFile = "sidecar"
	serialFile   = "serial"
)

// passwordFiles are in the order in which to try them. The operator's own copy comes first: the other one may be a person's wish.
var passwordFiles = []string{passwordFile + "-known", passwordFile, passwordFile + "-next", passwordFile + "-previous"}

const (
	// accountsInterval is how often the sidecar looks whether its password was replaced.
	accountsInterval = 2 * time.Second
	// accountsTimeout bounds one login.
	accountsTimeout = 3 * time.Second
	// rememberedPasswords bounds how many passwords are kept, former ones included.
	rememberedPasswords = 8
)

// account is the sidecar's account. The operator replaces its password while everything runs, and the kubelet updates the files
// later than the servers change: so every connection tries the passwords in the files at that moment, and those they held before.
// The files are in memory; a fence does not wait for them.
type account struct {
	dir string

	mu         sync.Mutex
	remembered []string
}

// newAccount reads the password for the first time.
func newAccount(dir string) (*account, error) {
	a := &account{dir: dir}
	if _, err := os.ReadFile(filepath.Join(dir, passwordFile)); err != nil {
		return nil, fmt.Errorf("read password of the sidecar's account: %w", err)
	}
	a.passwords(context.Background(), false)
	return a, nil
}

// read reads a file of the account; empty if there is none.
func (a *account) read(name string) string {
	raw, _ := os.ReadFile(filepath.Join(a.dir, name))
	return strings.TrimRight(string(raw), "\n")
}

// passwords are those that the server may accept, in the order in which to try them. A second try a moment later has no others.
func (a *account) passwords(_ context.Context, again bool) []string {
	if again {
		return nil
	}
	var out []string
	for _, name := range passwordFiles {
		if password := a.read(name); password != "" && !slices.Contains(out, password) {
			out = append(out, password)
		}
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	for _, former := range a.remembered {
		if !slices.Contains(out, former) && len(out) < rememberedPasswords {
			out = append(out, former)
		}
	}
	a.remembered = slices.Clone(out)
	return out
}

// probePasswords are those of the write probe's account, which are derived from the sidecar's.
func (a *account) probePasswords(ctx context.Context, again bool) []string {
	out := a.passwords(ctx, again)
	for i := range out {
		out[i] = mysql.ProbePassword(out[i])
	}
	return out
}

// serial is how many times the passwords in the pod's Secret have changed; 0 if it does not say.
func (a *account) serial() int64 {
	n, err := strconv.ParseInt(a.read(serialFile), 10, 64)
	if err != nil {
		return 0
	}
	return n
}

// logins reports which passwords this site's sidecar can log in with, so that the operator knows when it no longer needs the former one.
type logins struct {
	account *account
	target  mysql.Target
	// accepts logs in: mysql.Accepts.
	accepts func(context.Context, mysql.Target) (bool, error)
	log     *slog.Logger

	mu     sync.Mutex
	serial int64
}

// Report is what is known; nil before the first login with a password of a numbered Secret.
func (l *logins) Report() *wire.AccountReport {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.serial == 0 {
		return nil
	}
	return &wire.AccountReport{Serial: l.serial}
}

// run logs in once with each new password, until ctx ends. Its caller need not wait for it.
func (l *logins) run(ctx context.Context) {
	ticker := time.NewTicker(accountsInterval)
	defer ticker.Stop()
	for {
		l.look(ctx)
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
		}
	}
}

// look tries the password in the files if they have changed. It reads the serial before and after: the kubelet replaces all files at
// once, but perhaps between two reads.
func (l *logins) look(ctx context.Context) {
	serial := l.account.serial()
	if r := l.Report(); serial == 0 || r != nil && r.Serial == serial {
		return
	}
	target := l.target
	target.Password = l.account.read(passwordFile)
	if known := l.account.read(passwordFiles[0]); known != "" {
		target.Password = known
	}
	if l.account.serial() != serial {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, accountsTimeout)
	defer cancel()
	if taken, err := l.accepts(ctx, target); err != nil || !taken {
		l.log.Debug("log in with the password of the Secret", "serial", serial, "taken", taken, "error", err)
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.serial = serial
}
