// SPDX-License-Identifier: Apache-2.0

package job

import (
	"bytes"
	"context"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/mysql-mfg/mfg/backup/job/terms"
	"github.com/mysql-mfg/mfg/internal/bucket"
)

// hangs is a storage that does not answer: its only manifest is a pipe without a writer, so opening it blocks.
func hangs(t *testing.T) bucket.Config {
	t.Helper()
	place := bucket.Config{Folder: t.TempDir(), Namespace: "shop", Group: "orders"}
	stored(t, place, "monday", "ours", time.Now())
	manifest := filepath.Join(place.Folder, "shop/orders/backups/monday/manifest.json")
	if err := os.Remove(manifest); err != nil {
		t.Fatal(err)
	}
	if err := unix.Mkfifo(manifest, 0o600); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { // what waits for it ends
		if f, err := os.OpenFile(manifest, os.O_RDWR, 0); err == nil {
			_ = f.Close()
		}
	})
	return place
}

// A program that is to end does so, and says why, whatever hangs.
func TestWhatHangsDoesNotKeepTheProgram(t *testing.T) {
	place := hangs(t)
	for name, tc := range map[string]struct {
		seconds int64
		told    bool
		want    int
	}{
		"the time is over":    {seconds: 1, want: terms.ExitTimedOut},
		"it is told to yield": {seconds: 60, told: true, want: terms.ExitYielded},
	} {
		t.Run(name, func(t *testing.T) {
			ctx, yield := context.WithCancel(t.Context())
			defer yield()
			out := &bytes.Buffer{}
			p := &Program{
				Out: out, Log: slog.New(slog.DiscardHandler), patience: 100 * time.Millisecond,
				Config: terms.Config{Bucket: place, Backup: "monday", GroupUID: "ours", TimeoutSeconds: tc.seconds, Server: terms.Server{Dir: filepath.Join(t.TempDir(), "data"), RunDir: t.TempDir()}},
			}
			code := make(chan int, 1)
			go func() { code <- p.Run(ctx, "load") }()
			if tc.told {
				time.AfterFunc(300*time.Millisecond, yield)
			}
			select {
			case got := <-code:
				if said := out.String(); got != tc.want || !strings.Contains(said, "does not answer") || !strings.Contains(said, `"backup":"monday"`) {
					t.Errorf("code %d: %s", got, said)
				}
			case <-time.After(time.Minute):
				t.Fatal("it never ends")
			}
		})
	}
}

// What ends within the patience has its own word for it, and loses nothing that it has to say.
func TestWhatEndsIsWaitedFor(t *testing.T) {
	place := bucket.Config{Folder: t.TempDir(), Namespace: "shop", Group: "orders"}
	stored(t, place, "monday", "ours", time.Now())
	ctx, yield := context.WithCancel(t.Context())
	yield() // it may come first, or the command: both are an end
	out := &bytes.Buffer{}
	p := &Program{Out: out, Log: slog.New(slog.DiscardHandler), Config: terms.Config{Bucket: place}}
	if code := p.Run(ctx, "list"); code != terms.ExitSucceeded && code != terms.ExitYielded || strings.Contains(out.String(), "does not answer") {
		t.Errorf("code %d: %s", code, out)
	}
}
