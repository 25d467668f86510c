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

// Files of the sidecar's own password, as the accounts Secret has them. Only the first is always there.
const (
	passwordFile = "sidecar"
	serialFile   = "serial"
)

// passwordFiles are in the order in which they are tried. The operator's own copy comes first: the other may be what a person wishes.
var passwordFiles = []string{passwordFile + "-known", passwordFile, passwordFile + "-next", passwordFile + "-previous"}

const (
	// accountsInterval is how often it is looked whether the password was replaced.
	accountsInterval = 2 * time.Second
	// accountsTimeout bounds one login.
	accountsTimeout = 3 * time.Second
	// rememberedPasswords bounds what is kept of former passwords.
	rememberedPasswords = 8
)

// account is the sidecar's account. A password of it is replaced while everything runs, and the kubelet brings the files later than
// the servers change: so every connection tries what the files hold at that moment, and what they held before. The files lie in
// memory; a fence does not wait for them.
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

// passwords are those that the server may take, in the order in which to try them. Nothing is better known a moment later.
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

// probePasswords are those of the account of the write probe, which follow from the sidecar's.
func (a *account) probePasswords(ctx context.Context, again bool) []string {
	out := a.passwords(ctx, again)
	for i := range out {
		out[i] = mysql.ProbePassword(out[i])
	}
	return out
}

// serial counts the changes of passwords in the Secret that lies in the pod; 0 if it does not say.
func (a *account) serial() int64 {
	n, err := strconv.ParseInt(a.read(serialFile), 10, 64)
	if err != nil {
		return 0
	}
	return n
}

// logins tells the operator with which passwords this site's sidecar can log in, so that it knows when the former one is used no more.
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

// run logs in once with each new password, until ctx ends. Nobody waits for it.
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

// look tries the password of the files, if they have changed. The serial is read before and after: the kubelet replaces all files at
// once, but not for who has read one already.
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
