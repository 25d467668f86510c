// SPDX-License-Identifier: Apache-2.0

package archiver

import (
	"context"
	"encoding/json"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/mysql-mfg/mfg/api/wire"
)

// With a configuration that it cannot use the archiver says so and keeps running: if its container ended, the pod of MySQL would not be ready.
func TestAConfigurationThatCannotBeUsedIsTold(t *testing.T) {
	for name, change := range map[string]func(*wire.ArchiverConfig) string{
		"a recipient that is none": func(c *wire.ArchiverConfig) string {
			c.Recipients = []string{"age1" + strings.Repeat("q", 58)}
			return ""
		},
		"a recipient of a plugin": func(c *wire.ArchiverConfig) string {
			c.Recipients = []string{"age1yubikey1" + strings.Repeat("q", 58)}
			return ""
		},
		"a field of a later operator": func(*wire.ArchiverConfig) string { return `"later":1,` },
		"no file for the status":      func(c *wire.ArchiverConfig) string { c.StatusFile = "here"; return "" },
		"no configuration":            func(c *wire.ArchiverConfig) string { c.StatusFile = ""; return "no JSON" },
	} {
		t.Run(name, func(t *testing.T) {
			c := good(t)
			c.StatusFile = filepath.Join(t.TempDir(), "archiver.json")
			more := change(&c)
			raw := []byte("{" + more + strings.TrimPrefix(c.Text(), "{"))
			_, why := ParseConfig(raw)
			if why == nil {
				t.Fatal("it is taken")
			}
			ctx, cancel := context.WithCancel(t.Context())
			ended := make(chan int)
			go func() { ended <- Misconfigured(ctx, raw, why, slog.New(slog.DiscardHandler)) }()
			var s wire.ArchiverStatus
			for tries := 0; filepath.IsAbs(c.StatusFile) && s.State == "" && tries < 100; tries++ {
				text, _ := os.ReadFile(c.StatusFile)
				_ = json.Unmarshal(text, &s)
				time.Sleep(20 * time.Millisecond)
			}
			select {
			case code := <-ended:
				t.Fatalf("it ended with %d", code)
			case <-time.After(50 * time.Millisecond):
			}
			cancel()
			if code := <-ended; code != ExitEnded {
				t.Errorf("it ended with %d", code)
			}
			if !filepath.IsAbs(c.StatusFile) {
				return
			}
			if s.State != wire.ArchiverFailing || s.Reason != string(BadConfig) || s.Site != "a" || s.FailingSince.IsZero() || !strings.Contains(s.Message, why.Error()) {
				t.Errorf("it says %+v", s)
			}
		})
	}
}
