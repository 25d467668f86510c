// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"testing"

	"github.com/mysql-mfg/mfg/api/wire"
	"github.com/mysql-mfg/mfg/internal/mysql"
	"github.com/mysql-mfg/mfg/sidecar/agent"
	"github.com/mysql-mfg/mfg/sidecar/escrow"
)

// retained is a volume of a group without encryption, in the pod of an encrypted one that was made again under its name.
func retained(t *testing.T) settings {
	t.Helper()
	s := encryptedVolume(t)
	plain := s
	plain.keyring = keyringSettings{}
	if _, err := boot(t, plain); err != nil {
		t.Fatal(err)
	}
	emptyPlace(t, s)
	s.keyring.round = "another-group/1"
	return s
}

// I14: what a group that was made again finds in the clear is encrypted in part only by a person's word, and until then nothing of
// it is touched: with keys in memory alone its next pod could not read it.
func TestRetainedDataInTheClearIsNotEncryptedUnasked(t *testing.T) {
	s := retained(t)
	for range 2 { // a pod that starts again
		if _, err := boot(t, s); !errors.Is(err, errPlainData) {
			t.Fatalf("got %v", err)
		}
		if got := record(t, s); got != (escrow.Record{}) || live(t, s) != "" {
			t.Errorf("record %+v, keyring %q", got, live(t, s))
		}
	}
	s.keyring.acceptPlain, s.keyring.round = true, "another-group/2"
	if _, err := boot(t, s); err != nil {
		t.Errorf("accepted: %v", err)
	}
	s = retained(t)
	s.keyring.work = "Rotation"
	if _, err := boot(t, s); err != nil {
		t.Errorf("the adoption of a group that serves: %v", err)
	}
}

// watches has the sidecar of a pod look at its keyring until it has told of it.
func watches(t *testing.T, s settings, db *answers) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	a := escrow.New(escrow.Config{
		Namespace: "shop", Group: "orders", Site: s.site, File: s.keyring.file, Sealed: s.keyring.sealed, Datadir: s.datadir,
		MySQL: db, Record: escrow.Store{Dir: s.stateDir}, Mounts: escrow.Mounts{Root: "/proc"}, Mysqld: func() (string, []int) { return "1", nil },
		Open: func() bool { return false }, Log: slog.New(slog.DiscardHandler),
		Push: func(_ context.Context, push wire.KeyringEscrow) (wire.KeyringEscrowed, error) {
			return wire.KeyringEscrowed{Version: 1, Digest: push.Digest}, nil
		},
	})
	done := make(chan struct{})
	go func() { defer close(done); a.Run(ctx) }()
	for told := false; !told; {
		<-db.asked
		r := a.Report()
		told = r.Digest != "" && (r.Sealed || r.EscrowedDigest == r.Digest)
	}
	cancel()
	<-done
}

// I14: rolled back to an older version, and forward again, a site has data that keyrings in escrow open. No clone that is only wished
// for wipes it before it begins.
func TestARollBackIsNoReasonToWipeI14(t *testing.T) {
	s := booted(t)
	newer := live(t, s)
	db := &answers{asked: make(chan struct{}, 1)}
	watches(t, s, db) // in escrow by now
	older := keyringText("older")
	sealed := s
	sealed.keyring = keyringSettings{file: s.keyring.file, sealed: true}
	write(t, s.keyring.file, older, 0o600)
	if _, err := boot(t, sealed); err != nil {
		t.Fatal(err)
	}
	watches(t, sealed, db)
	before := volumeName(t, s)
	emptyPlace(t, s)
	clone := s
	clone.keyring.work, clone.keyring.round = workClone, "g/7"
	seed(t, &clone, newer)
	if _, err := boot(t, clone); err != nil && !errors.Is(err, errStored) {
		t.Errorf("got %v", err)
	}
	if _, err := os.Stat(filepath.Join(s.stateDir, agent.StatementFile)); err == nil {
		t.Error("the test is about a site that no statement names")
	}
	if after := volumeName(t, s); after != before {
		t.Error("the volume was wiped")
	}
}

// answers is a mysqld that answers, with the keys of whatever it was started with.
type answers struct{ asked chan struct{} }

func (d *answers) Keyring(ctx context.Context) (mysql.KeyringStatus, error) {
	select {
	case d.asked <- struct{}{}:
	case <-ctx.Done():
	}
	return mysql.KeyringStatus{Component: "component_keyring_file", Active: true}, nil
}

func (d *answers) Coverage(context.Context) (mysql.Coverage, error) { return mysql.Coverage{}, nil }
func (d *answers) EncryptSystemTablespaces(context.Context) error   { return nil }
func (d *answers) AwaitCheckpoint(context.Context) error            { return nil }
