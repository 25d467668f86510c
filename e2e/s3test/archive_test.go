// SPDX-License-Identifier: Apache-2.0

package s3test

import (
	"bytes"
	"context"
	"crypto/rand"
	"io"
	"os"
	"strings"
	"syscall"
	"testing"
	"time"

	"filippo.io/age"

	"github.com/mysql-mfg/mfg/internal/archive"
	"github.com/mysql-mfg/mfg/internal/bucket"
	"github.com/mysql-mfg/mfg/internal/gtid"
)

const serverUUID = "0a0b0c0d-0000-0000-0000-000000000001"

func (s *server) archive(t *testing.T) *archive.Archive {
	t.Helper()
	a, err := archive.OpenWith(t.Context(), configOf(s.dir, s.address), bucket.Patience{
		RequestPauseMax: 100 * time.Millisecond, CallPause: 50 * time.Millisecond, AbortTimeout: 2 * time.Second,
	})
	must(t, err)
	t.Cleanup(func() { _ = a.Close() })
	return a
}

// begin begins a sealed log.
func begin(ctx context.Context, t *testing.T, a *archive.Archive, log string, recipients ...string) *archive.File {
	t.Helper()
	r, err := archive.ParseRecipients(recipients)
	must(t, err)
	f, err := a.Create(ctx, archive.LogManifest{Epoch: 3, Site: "paris", ServerUUID: serverUUID, Log: log, Sealed: true}, r)
	must(t, err)
	return f
}

func content(set, previous string) archive.Content {
	return archive.Content{Set: gtid.MustParse(set), Previous: gtid.MustParse(previous), Transactions: 1, FirstCommit: 1, LastCommit: 2, SeenAt: time.Now()}
}

// The archive of binary logs on S3: whole, ended, damaged, pruned, without rights and without a server.
func TestS3Archive(t *testing.T) {
	s := start(t, "")
	a := s.archive(t)
	must(t, s.open(t, nil).Probe(t.Context())) // it listens before the server behind it does
	must(t, a.Claim(t.Context(), "u1", time.Now()))
	wantKind(t, a.Claim(t.Context(), "u2", time.Now()), bucket.Foreign)
	id, err := age.GenerateX25519Identity()
	must(t, err)
	ids, err := bucket.ParseIdentities(strings.NewReader(id.String()))
	must(t, err)

	data := noise(t, 30<<20) // more than three pieces
	f := begin(t.Context(), t, a, "binlog.000001", id.Recipient().String())
	_, err = io.Copy(f, bytes.NewReader(data))
	must(t, err)
	_, err = f.Commit(t.Context(), content(serverUUID+":1-5", ""))
	must(t, err)
	must(t, a.PutEpoch(t.Context(), archive.Epoch{Epoch: 3, Site: "paris", PromotedAt: time.Now()}))
	must(t, a.PutEpoch(t.Context(), archive.Epoch{Epoch: 3, Site: "rome", PromotedAt: time.Now()}))

	ctx, cancel := context.WithCancel(t.Context())
	ended := begin(ctx, t, a, "binlog.000002")
	_, err = ended.Write(noise(t, 20<<20))
	must(t, err)
	cancel()
	if _, err := ended.Commit(ctx, content(serverUUID+":6", serverUUID+":1-5")); err == nil {
		t.Error("an ended upload counts")
	}
	l, err := a.List(t.Context())
	must(t, err)
	if len(l.Logs) != 1 || len(l.Epochs) != 1 || l.Epochs[0].Site != "paris" || l.Orphans != 0 {
		t.Fatalf("%+v", l)
	}
	r, err := a.Read(t.Context(), l.Logs[0], ids)
	must(t, err)
	if got, err := io.ReadAll(r); err != nil || !bytes.Equal(got, data) {
		t.Errorf("read %d bytes: %v", len(got), err)
	}
	must(t, r.Close())
	f = begin(t.Context(), t, a, "binlog.000003")
	_, err = f.Write(data[:1000])
	must(t, err)
	_, err = f.Commit(t.Context(), content(serverUUID+":6", serverUUID+":1-5"))
	must(t, err)
	l, err = a.List(t.Context())
	must(t, err)
	removed, err := a.Prune(t.Context(), l, archive.Cutoff{Backup: "monday", At: time.Now(), Set: gtid.MustParse(serverUUID + ":1-5")})
	if err != nil || removed != 1 {
		t.Errorf("%d removed: %v", removed, err)
	}
	if _, err := a.Sweep(t.Context(), time.Now().Add(time.Hour)); err != nil {
		t.Error(err)
	}

	s.credentials(t, accessKey, "revoked")
	_, err = s.archive(t).List(t.Context())
	wantKind(t, err, bucket.AccessDenied)
	s.credentials(t, accessKey, secretKey)
	_, err = s.archive(t).List(t.Context())
	must(t, err)

	f = begin(t.Context(), t, a, "binlog.000004")
	must(t, s.process.Kill())
	_, err = io.CopyN(f, rand.Reader, 100<<20)
	if err == nil {
		_, err = f.Commit(t.Context(), content(serverUUID+":7", serverUUID+":1-6"))
	}
	wantKind(t, err, bucket.Unreachable)
	f.Abort()
	time.Sleep(time.Second)
	s.run(t)
	l, err = a.List(t.Context())
	if err != nil || len(l.Logs) != 1 || l.Logs[0].Log != "binlog.000003" || l.Pruned == nil {
		t.Errorf("%+v: %v", l, err)
	}
}

// A bucket that is full says so, and nothing half counts.
func TestS3ArchiveFull(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("it mounts a small file system, which needs root")
	}
	small := t.TempDir()
	must(t, syscall.Mount("tmpfs", small, "tmpfs", 0, "size=32m"))
	t.Cleanup(func() { _ = syscall.Unmount(small, syscall.MNT_DETACH) })
	s := start(t, small)
	a := s.archive(t)
	must(t, s.open(t, nil).Probe(t.Context()))
	f := begin(t.Context(), t, a, "binlog.000001")
	_, err := io.CopyN(f, rand.Reader, 80<<20)
	if err == nil {
		_, err = f.Commit(t.Context(), content(serverUUID+":1", ""))
	}
	wantKind(t, err, bucket.Full)
	f.Abort()
	if l, err := a.List(t.Context()); err != nil || len(l.Logs) > 0 {
		t.Errorf("%+v: %v", l, err)
	}
}
