// SPDX-License-Identifier: Apache-2.0

package agent

import (
	"bytes"
	"encoding/json"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/mysql-mfg/mfg/api/wire"
)

// TestReportsAreAuthenticatedI12: a push with a challenge gets nothing but the authenticated report. One without, from an operator of the
// version before, gets the report as it is; a sidecar without its key says so.
func TestReportsAreAuthenticatedI12(t *testing.T) {
	key := bytes.Repeat([]byte{7}, wire.ReportKeyBytes)
	path := filepath.Join(t.TempDir(), "key")
	story(t, func(t *testing.T, w *world) {
		w.boot()
		w.agent.ReportKey = ReportKeyFile(path)
		ask := func(challenge string) (answer wire.Answer, raw string) {
			t.Helper()
			code, body := w.request(http.MethodPut, wire.PathActiveSite, wire.ActiveSite{Challenge: challenge})
			if code != http.StatusOK {
				t.Fatalf("%d %s", code, body)
			}
			if err := json.Unmarshal(body, &answer); err != nil {
				t.Fatal(err)
			}
			return answer, string(body)
		}
		if got, _ := ask("c"); got.Signed != "" || !strings.Contains(got.Message, "cannot authenticate its report") {
			t.Errorf("without its key: %+v", got)
		}
		if err := os.WriteFile(path, key[:5], 0o600); err != nil {
			t.Fatal(err)
		}
		if got, _ := ask("c"); got.Signed != "" || !strings.Contains(got.Message, "cannot authenticate its report") {
			t.Errorf("with half of it: %+v", got)
		}
		if err := os.WriteFile(path, key, 0o600); err != nil {
			t.Fatal(err)
		}
		got, raw := ask("c")
		if r, err := wire.OpenReport(key, "c", got.Signed); err != nil || r.Site != "a" || got.Site != "" || strings.Contains(raw, "mysqldRunning") {
			t.Errorf("I12: answered %s: %+v, %v", raw, r, err)
		}
		if got, _ := ask(""); got.Signed != "" || got.Site != "a" {
			t.Errorf("an operator of the version before: %+v", got)
		}
		if code, _ := w.request(http.MethodPut, wire.PathActiveSite, wire.ActiveSite{Challenge: strings.Repeat("x", wire.MaxChallenge+1)}); code != http.StatusBadRequest {
			t.Errorf("a challenge without end: %d", code)
		}
	})
}
