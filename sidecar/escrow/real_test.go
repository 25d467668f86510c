// SPDX-License-Identifier: Apache-2.0

//go:build mysqld

package escrow

import (
	"context"
	"log/slog"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/mysql-mfg/mfg/api/wire"
	"github.com/mysql-mfg/mfg/internal/mysql/mysqltest"
)

// TestRealKeyringIsNeverTorn rotates again and again while the keyring is watched: what is pushed is whole, and the last one
// ends up in escrow.
func TestRealKeyringIsNeverTorn(t *testing.T) {
	s := mysqltest.Start(t, mysqltest.Options{Keyring: true})
	state := t.TempDir()
	var mu sync.Mutex
	var pushes []wire.KeyringEscrow
	a := New(Config{
		Namespace: "shop", Group: "orders", Site: "a", File: s.Keyring(), Datadir: filepath.Join(s.Dir, "data"),
		MySQL: s.Sidecar(t), Record: Store{Dir: state}, Mysqld: func() (string, []int) { return "1", nil },
		Mounts: Mounts{Root: "/proc"}, Open: func() bool { return false }, Log: slog.New(slog.DiscardHandler),
		Push: func(_ context.Context, body wire.KeyringEscrow) (wire.KeyringEscrowed, error) {
			mu.Lock()
			defer mu.Unlock()
			pushes = append(pushes, body)
			return wire.KeyringEscrowed{Version: int64(len(pushes)), Digest: body.Digest}, nil
		},
	})
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan struct{})
	go func() { defer close(done); a.Run(ctx) }()
	defer func() { cancel(); <-done }()
	inEscrow := func() bool {
		raw, err := os.ReadFile(s.Keyring())
		r := a.Report()
		return err == nil && r.EscrowedDigest == wire.KeyringDigest(raw) && r.Digest == r.EscrowedDigest && a.Unescrowed() == ""
	}
	mysqltest.Eventually(t, "the first keyring is in escrow", inEscrow)

	operator := s.Operator(t)
	if err := operator.BeginWindow(t.Context()); err != nil {
		t.Fatal(err)
	}
	torn := watchTorn(ctx, s.Keyring())
	for range 10 {
		if err := operator.RotateMasterKeys(t.Context()); err != nil {
			t.Fatal(err)
		}
		if a.Unescrowed() == "" {
			t.Error("I16: a keyring that was just rotated passes for escrowed")
		}
		time.Sleep(50 * time.Millisecond)
	}
	mysqltest.Eventually(t, "the last keyring is in escrow", inEscrow)
	cancel()
	t.Logf("%d looks at a keyring that was being written, %d pushes", <-torn, len(pushes))
	most := 0
	for _, p := range pushes {
		keys, err := parse(p.Keyring)
		if err != nil || len(keys) < most {
			t.Errorf("pushed %d keys after %d, %v", len(keys), most, err)
		}
		most = len(keys)
	}
}

// watchTorn looks as often as it can, and says how many looks showed no whole keyring.
func watchTorn(ctx context.Context, file string) <-chan int {
	found := make(chan int, 1)
	go func() {
		torn := 0
		for ctx.Err() == nil {
			if l, err := LookAt(file); err == nil && !l.Whole() {
				torn++
			}
		}
		found <- torn
	}()
	return found
}

// TestRealMySQLTakesItsCopy is what bootstrap counts on when mysqld died while it was writing.
func TestRealMySQLTakesItsCopy(t *testing.T) {
	s := mysqltest.Start(t, mysqltest.Options{Keyring: true})
	whole, err := os.ReadFile(s.Keyring())
	if err != nil {
		t.Fatal(err)
	}
	s.Kill(t, func() {
		for path, content := range map[string][]byte{s.Keyring(): whole[:len(whole)/2], s.Keyring() + backupSuffix: whole} {
			if err := os.WriteFile(path, content, 0o640); err != nil {
				t.Error(err)
			}
			if err := os.Chown(path, 999, 999); err != nil {
				t.Error(err)
			}
		}
		if l, err := LookAt(s.Keyring()); err != nil || l.Whole() {
			t.Errorf("it passes for whole: %v", err)
		}
	})
	if l, err := LookAt(s.Keyring()); err != nil || !l.Whole() || l.Digest != wire.KeyringDigest(whole) {
		t.Errorf("after a restart: %v, %v", l, err)
	}
}
