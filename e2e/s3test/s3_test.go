// SPDX-License-Identifier: Apache-2.0

package s3test

import (
	"bufio"
	"bytes"
	"context"
	"crypto/rand"
	"errors"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"filippo.io/age"

	"github.com/mysql-mfg/mfg/internal/bucket"
)

func noise(t *testing.T, n int) []byte {
	t.Helper()
	data := make([]byte, n)
	_, err := rand.Read(data)
	must(t, err)
	return data
}

func wantKind(t *testing.T, err error, want bucket.Kind) {
	t.Helper()
	if bucket.KindOf(err) != want {
		t.Errorf("error %v is %q, want %q", err, bucket.KindOf(err), want)
	}
	if err != nil && (strings.Contains(err.Error(), secretKey) || strings.Contains(err.Error(), accessKey)) {
		t.Errorf("%v shows a credential", err)
	}
}

// backup writes a whole one with the parts data and rows.
func backup(t *testing.T, b *bucket.Bucket, name string, data []byte, recipients ...string) *bucket.Manifest {
	t.Helper()
	w, err := b.Create(t.Context(), bucket.NewBackup{Name: name, UID: "u1", Recipients: recipients, Now: time.Now()})
	must(t, err)
	for part, content := range map[string][]byte{"data": data, "rows": []byte("{}")} {
		p, err := w.Part(t.Context(), part)
		must(t, err)
		_, err = io.Copy(p, bytes.NewReader(content))
		must(t, err)
		must(t, p.Close())
	}
	m, err := w.Commit(t.Context(), bucket.Manifest{
		Method: bucket.Logical, Site: "paris", MySQLVersion: "9.7.4", StartedAt: time.Now().Add(-time.Minute), FinishedAt: time.Now(),
	})
	must(t, err)
	return m
}

func read(t *testing.T, b *bucket.Bucket, name string, ids bucket.Identities) ([]byte, error) {
	t.Helper()
	k, err := b.OpenBackup(t.Context(), name, ids)
	if err != nil {
		return nil, err
	}
	r, err := k.Part(t.Context(), "data")
	if err != nil {
		return nil, err
	}
	data, err := io.ReadAll(r)
	return data, errors.Join(err, r.Close())
}

// stored are the objects that the server has, by their paths, without the owner's. Multipart uploads are among them.
func (s *server) stored(t *testing.T) (paths []string) {
	t.Helper()
	must(t, filepath.WalkDir(filepath.Join(s.data, bucketName), func(path string, d fs.DirEntry, err error) error {
		if err == nil && !d.IsDir() && !strings.HasSuffix(path, "owner.json") {
			paths = append(paths, path)
		}
		return err
	}))
	return paths
}

func (s *server) object(t *testing.T, suffix string) string {
	t.Helper()
	for _, path := range s.stored(t) {
		if strings.HasSuffix(path, suffix) {
			return path
		}
	}
	t.Fatalf("no object %s", suffix)
	return ""
}

func TestS3(t *testing.T) {
	s := start(t, "")
	b := s.open(t, nil)
	must(t, b.Probe(t.Context()))
	id, err := age.GenerateX25519Identity()
	must(t, err)
	ids, err := bucket.ParseIdentities(strings.NewReader(id.String()))
	must(t, err)

	data := noise(t, 70<<20) // more than four pieces
	m := backup(t, b, "monday", data, id.Recipient().String())
	if got, err := read(t, b, "monday", ids); err != nil || !bytes.Equal(got, data) {
		t.Fatalf("read %d bytes: %v", len(got), err)
	}
	_, err = b.Create(t.Context(), bucket.NewBackup{Name: "monday", UID: "u1", Now: time.Now()})
	wantKind(t, err, bucket.Exists)
	wantKind(t, b.Claim(t.Context(), "u2", time.Now()), bucket.Foreign)
	_, err = read(t, b, "tuesday", ids)
	wantKind(t, err, bucket.NotFound)
	_, err = read(t, b, "monday", bucket.Identities{})
	wantKind(t, err, bucket.WrongIdentity)
	list, err := b.List(t.Context())
	if err != nil || len(list) != 1 || list[0].Manifest.StoredBytes() != m.StoredBytes() {
		t.Errorf("list %+v: %v", list, err)
	}
	must(t, b.Delete(t.Context(), "monday"))
	if left := s.stored(t); len(left) > 0 {
		t.Errorf("left are %v", left)
	}
}

func TestS3BadInput(t *testing.T) {
	s, other := start(t, ""), t.TempDir()
	writeCertificates(t, other)
	wantKind(t, s.open(t, func(c *bucket.Config) { c.CAFile = filepath.Join(other, "ca.crt") }).Probe(t.Context()), bucket.UntrustedTLS)
	wantKind(t, s.open(t, func(c *bucket.Config) { c.CAFile = "" }).Probe(t.Context()), bucket.UntrustedTLS)
	wantKind(t, s.open(t, func(c *bucket.Config) { c.S3.Bucket = "elsewhere" }).Probe(t.Context()), bucket.NoSuchBucket)
	s.credentials(t, accessKey, secretKey+"x")
	wantKind(t, s.open(t, nil).Probe(t.Context()), bucket.AccessDenied)
	s.credentials(t, "AKIAWRONG", secretKey)
	wantKind(t, s.open(t, nil).Probe(t.Context()), bucket.AccessDenied)
	s.credentials(t, accessKey, "")
	_, err := bucket.Open(t.Context(), configOf(s.dir, s.address))
	wantKind(t, err, bucket.AccessDenied)
	s.credentials(t, accessKey, secretKey)
	must(t, s.open(t, nil).Probe(t.Context()))
}

func TestS3Damage(t *testing.T) {
	s := start(t, "")
	b := s.open(t, nil)
	backup(t, b, "monday", noise(t, 20<<20))
	backup(t, b, "tuesday", noise(t, 20<<20))
	monday := s.object(t, "/data.00000")
	good, err := os.ReadFile(monday)
	must(t, err)
	damages := map[string]func(){
		"truncated": func() { must(t, os.Truncate(monday, 10<<20)) },
		"flipped": func() {
			bad := bytes.Clone(good)
			bad[15<<20] ^= 4
			must(t, os.WriteFile(monday, bad, 0o600))
		},
		"of another backup": func() {
			for _, path := range s.stored(t) {
				if strings.HasSuffix(path, "/data.00000") && path != monday {
					raw, err := os.ReadFile(path)
					must(t, err)
					must(t, os.WriteFile(monday, raw, 0o600))
				}
			}
		},
		"missing": func() { must(t, os.Remove(monday)) },
	}
	name := "monday"
	if strings.Contains(monday, "tuesday") {
		name = "tuesday"
	}
	for what, damage := range damages {
		t.Run(what, func(t *testing.T) {
			damage()
			defer func() { must(t, os.WriteFile(monday, good, 0o600)) }()
			_, err := read(t, b, name, bucket.Identities{})
			wantKind(t, err, bucket.Damaged)
		})
	}
	_, err = read(t, b, name, bucket.Identities{})
	must(t, err)
}

// A pod that is killed leaves no backup, and after the sweep nothing.
func TestS3Killed(t *testing.T) {
	s := start(t, "")
	b := s.open(t, nil)
	backup(t, b, "monday", noise(t, 1<<20))
	kept := len(s.stored(t))
	cmd := exec.Command(os.Args[0])
	cmd.Env, cmd.Stderr = append(os.Environ(), envUpload+"="+s.dir+"/"+s.address), os.Stderr
	out, err := cmd.StdoutPipe()
	must(t, err)
	must(t, cmd.Start())
	line, err := bufio.NewReader(out).ReadString('\n')
	if err != nil || line != "uploaded\n" {
		t.Errorf("the upload says %q: %v", line, err)
	}
	must(t, cmd.Process.Kill())
	_ = cmd.Wait()
	if len(s.stored(t)) <= kept {
		t.Fatal("the upload left nothing: this test shows nothing")
	}
	list, err := b.List(t.Context())
	if err != nil || len(list) != 1 {
		t.Errorf("list %v: %v", list, err)
	}
	if swept, err := b.Sweep(t.Context(), time.Now().Add(-time.Hour)); err != nil || swept != (bucket.Swept{}) {
		t.Errorf("swept what may still run: %+v, %v", swept, err)
	}
	swept, err := b.Sweep(t.Context(), time.Now().Add(time.Hour))
	if err != nil || swept.Uploads != 1 || swept.Objects != 1 {
		t.Errorf("swept %+v: %v", swept, err)
	}
	// The server may still be storing a piece that the dead client had sent it. That brings the upload back, and the next sweep ends it.
	for deadline := time.Now().Add(time.Minute); len(s.stored(t)) != kept; time.Sleep(100 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("left are %v", s.stored(t))
		}
		if swept, err := b.Sweep(t.Context(), time.Now().Add(time.Hour)); err != nil || swept.Objects > 0 || swept.Uploads > 1 {
			t.Errorf("swept %+v later: %v", swept, err)
		}
	}
	if _, err := read(t, b, "monday", bucket.Identities{}); err != nil {
		t.Error(err)
	}
}

// A part that is given up leaves no upload behind, with its context ended too. The server may still be storing a piece that it was sent.
func TestS3Aborted(t *testing.T) {
	s := start(t, "")
	b := s.open(t, nil)
	for _, how := range []string{"abort", "context"} {
		w, err := b.Create(t.Context(), bucket.NewBackup{Name: how, UID: "u1", Now: time.Now()})
		must(t, err)
		ctx, cancel := context.WithCancel(t.Context())
		p, err := w.Part(ctx, "data")
		must(t, err)
		_, err = p.Write(noise(t, 60<<20))
		must(t, err)
		if how == "context" {
			cancel()
			if err := p.Close(); !errors.Is(err, context.Canceled) {
				t.Errorf("closed with %v", err)
			}
		}
		must(t, w.Abort(t.Context()))
		cancel()
		time.Sleep(2 * time.Second)
		// That brings the upload back, as it does with Amazon's, and the sweep ends it.
		if swept, err := b.Sweep(t.Context(), time.Now().Add(time.Hour)); err != nil || swept.Objects > 0 || swept.Uploads > 1 {
			t.Errorf("%s leaves %+v: %v", how, swept, err)
		}
		if swept, err := b.Sweep(t.Context(), time.Now().Add(time.Hour)); err != nil || swept != (bucket.Swept{}) {
			t.Errorf("%s leaves %+v after a sweep: %v", how, swept, err)
		}
	}
}

// A server that goes in the middle is an error that says so, and no backup. It is asked as often as ever, with short pauses: with those
// that users have this took a minute and a half, for a piece, its removal, and the removal of all.
func TestS3Gone(t *testing.T) {
	s := start(t, "")
	b, err := bucket.OpenWith(t.Context(), configOf(s.dir, s.address), bucket.Patience{
		RequestPauseMax: 100 * time.Millisecond, CallPause: 50 * time.Millisecond, AbortTimeout: 2 * time.Second,
	})
	must(t, err)
	t.Cleanup(func() { _ = b.Close() })
	backup(t, b, "monday", noise(t, 40<<20))
	w, err := b.Create(t.Context(), bucket.NewBackup{Name: "tuesday", UID: "u1", Now: time.Now()})
	must(t, err)
	ctx, cancel := context.WithTimeout(t.Context(), 150*time.Second)
	defer cancel()
	p, err := w.Part(ctx, "data")
	must(t, err)
	_, err = p.Write(noise(t, 20<<20))
	must(t, err)
	must(t, s.process.Kill())
	_, err = io.CopyN(p, rand.Reader, 500<<20)
	wantKind(t, err, bucket.Unreachable)
	p.Abort()
	time.Sleep(time.Second)
	s.run(t)
	list, err := b.List(t.Context())
	if err != nil || len(list) != 1 || list[0].Name != "monday" {
		t.Errorf("list %v: %v", list, err)
	}
}

// The tests on the lab slow the server down, to have something happen while a backup is being stored. What it stores is right all the same.
func TestS3Slowed(t *testing.T) {
	s := start(t, "")
	must(t, s.process.Kill())
	s.rateFile = filepath.Join(s.dir, "rate")
	must(t, os.WriteFile(s.rateFile, []byte("2000000"), 0o600))
	time.Sleep(100 * time.Millisecond) // the address is free again
	s.run(t)
	b := s.open(t, nil)
	must(t, b.Probe(t.Context())) // it listens before the server behind it does
	data := noise(t, 6<<20)
	began := time.Now()
	backup(t, b, "slow", data)
	if took := time.Since(began); took < 2*time.Second {
		t.Errorf("six megabytes at two a second took %s", took)
	}
	if got, err := read(t, b, "slow", bucket.Identities{}); err != nil || !bytes.Equal(got, data) {
		t.Errorf("read %d bytes: %v", len(got), err)
	}
	must(t, os.WriteFile(s.rateFile, []byte("0"), 0o600))
	time.Sleep(time.Second)
	backup(t, b, "fast", noise(t, 40<<20)) // it would take twenty seconds
	if took := time.Since(began); took > 20*time.Second {
		t.Errorf("without a bound it took %s", took)
	}
}

// A bucket that is full says so, and what was written is gone after the sweep.
func TestS3Full(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("it mounts a small file system, which needs root")
	}
	small := t.TempDir()
	must(t, syscall.Mount("tmpfs", small, "tmpfs", 0, "size=64m"))
	t.Cleanup(func() { _ = syscall.Unmount(small, syscall.MNT_DETACH) })
	s := start(t, small)
	b := s.open(t, nil)
	w, err := b.Create(t.Context(), bucket.NewBackup{Name: "monday", UID: "u1", Now: time.Now()})
	must(t, err)
	ctx, cancel := context.WithTimeout(t.Context(), 90*time.Second)
	defer cancel()
	p, err := w.Part(ctx, "data")
	must(t, err)
	_, err = io.CopyN(p, rand.Reader, 150<<20)
	if err == nil {
		err = p.Close()
	}
	t.Log(err)
	wantKind(t, err, bucket.Full)
	p.Abort()
	must(t, w.Abort(t.Context()))
	if left := s.stored(t); len(left) > 0 {
		t.Errorf("left are %v", left)
	}
}
