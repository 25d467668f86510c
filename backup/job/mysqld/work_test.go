// SPDX-License-Identifier: Apache-2.0

package mysqld

import (
	"log/slog"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/mysql-mfg/mfg/backup/job/terms"
)

func TestWorkOfAProcess(t *testing.T) {
	pid := int64(os.Getpid())
	before := workOf(pid)
	if err := os.WriteFile(filepath.Join(t.TempDir(), "some"), make([]byte, 2<<20), 0o600); err != nil {
		t.Fatal(err)
	}
	began := time.Now()
	for workOf(pid).CPU < before.CPU+50*time.Millisecond && time.Since(began) < time.Minute { // asking is work
	}
	after := workOf(pid)
	if wrote := after.Bytes - before.Bytes; wrote < 2<<20 || wrote > 1<<30 {
		t.Errorf("it wrote 2 MiB, and %d bytes were counted", wrote)
	}
	if took := after.CPU - before.CPU; took < 50*time.Millisecond || took > 2*time.Minute {
		t.Errorf("it has computed for %s", took)
	}
	if got := (&Server{}).Work(); got != (terms.Work{}) {
		t.Errorf("no mysqld runs: %+v", got)
	}
}

// The work is that of the server which runs, from its start to its end.
func TestWorkOfTheServer(t *testing.T) {
	dir := t.TempDir()
	// It is at work until it is ended.
	program := "#!/bin/sh\necho '" + ready + "' >&2\nwhile :; do :; done\n"
	if err := os.WriteFile(filepath.Join(dir, "mysqld"), []byte(program), 0o700); err != nil {
		t.Fatal(err)
	}
	t.Setenv("PATH", dir)
	s := &Server{Config: terms.Server{Dir: filepath.Join(dir, "data"), RunDir: dir}, Log: slog.New(slog.DiscardHandler)}
	if err := s.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	began := time.Now()
	for s.Work().CPU == 0 && time.Since(began) < time.Minute {
		time.Sleep(tick)
	}
	if s.Work().CPU == 0 {
		t.Error("it works, and nobody sees it")
	}
	s.Kill()
	if got := s.Work(); got != (terms.Work{}) {
		t.Errorf("it has ended: %+v", got)
	}
}
