// SPDX-License-Identifier: Apache-2.0

package escrow

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"path/filepath"
	"sync"
	"testing"

	"go.uber.org/goleak"

	"github.com/mysql-mfg/mfg/api/wire"
	"github.com/mysql-mfg/mfg/internal/mysql"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// world is an agent with everything around it.
type world struct {
	t     *testing.T
	file  string
	agent *Agent
	log   bytes.Buffer

	mu      sync.Mutex
	listed  []mysql.Key
	sqlErr  error
	pushErr error
	pushes  []wire.KeyringEscrow
	stored  func(wire.KeyringEscrow) wire.KeyringEscrowed
	mysqld  string
	open    bool
	cover   mysql.Coverage
	altered int
	// checkpoint is what AwaitCheckpoint says; checkpoints counts how often it was asked.
	checkpoint  error
	checkpoints int
}

func (w *world) Keyring(context.Context) (mysql.KeyringStatus, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	return mysql.KeyringStatus{Component: "component_keyring_file", Active: true, DataFile: "/run/k/keyring", Keys: w.listed}, w.sqlErr
}

func (w *world) Coverage(context.Context) (mysql.Coverage, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.cover, w.sqlErr
}

func (w *world) EncryptSystemTablespaces(context.Context) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.altered++
	if w.altered == 1 {
		return errors.New("lock wait timeout")
	}
	w.cover.SystemTablespace = true
	return nil
}

func (w *world) push(_ context.Context, body wire.KeyringEscrow) (wire.KeyringEscrowed, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.pushes = append(w.pushes, body)
	if w.pushErr != nil {
		return wire.KeyringEscrowed{}, w.pushErr
	}
	return w.stored(body), nil
}

func newWorld(t *testing.T, change ...func(*Config)) *world {
	t.Helper()
	dir := t.TempDir()
	w := &world{t: t, file: filepath.Join(dir, "keyring"), mysqld: "7/1", listed: []mysql.Key{{ID: "k1"}}}
	w.stored = func(b wire.KeyringEscrow) wire.KeyringEscrowed {
		return wire.KeyringEscrowed{Secret: "mysql-orders-a-keyring-v3", Version: 3, Digest: wire.KeyringDigest(b.Keyring)}
	}
	config := Config{
		Namespace: "shop", Group: "orders", Site: "a", PodUID: "uid-1", File: w.file, Datadir: dir, CoverSystem: true,
		MySQL: w, Record: Store{Dir: dir}, Push: w.push, Mysqld: func() (string, []int) { return w.mysqld, nil },
		Mounts: Mounts{Root: "/proc"}, Open: func() bool { return w.open },
		Log: slog.New(slog.NewJSONHandler(&w.log, nil)),
	}
	for _, c := range change {
		c(&config)
	}
	w.agent = New(config)
	return w
}

func (w *world) round() *wire.KeyringReport {
	w.t.Helper()
	w.agent.round(w.t.Context())
	return w.agent.Report()
}

func (w *world) record() Record {
	w.t.Helper()
	r, err := w.agent.Record.Load()
	if err != nil {
		w.t.Fatal(err)
	}
	return r
}
