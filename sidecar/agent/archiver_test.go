// SPDX-License-Identifier: Apache-2.0

package agent

import (
	"encoding/json"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/mysql-mfg/mfg/api/wire"
)

func (w *world) turn() wire.ArchiverTurn {
	w.t.Helper()
	code, body := w.request(http.MethodGet, wire.PathArchiverTurn, nil)
	var turn wire.ArchiverTurn
	if err := json.Unmarshal(body, &turn); code != http.StatusOK || err != nil {
		w.t.Fatalf("turn: %d %s", code, body)
	}
	return turn
}

// I26: only the site that is open under the newest epoch archives.
func TestWhoseTurnItIsToArchive(t *testing.T) {
	story(t, func(t *testing.T, w *world) {
		w.bootOpen()
		if got := w.turn(); got != (wire.ArchiverTurn{Epoch: 5, Site: "a", Active: true}) {
			t.Errorf("open: %+v", got)
		}
		w.do(func() { w.operator = told(6, "b") })
		w.push(told(6, "b"))
		if got := w.turn(); got != (wire.ArchiverTurn{Epoch: 6, Site: "b"}) {
			t.Errorf("moved: %+v", got)
		}
	})
	story(t, func(t *testing.T, w *world) {
		w.operator = told(5, "b")
		w.boot()
		w.after(time.Second)
		if got := w.turn(); got != (wire.ArchiverTurn{Epoch: 5, Site: "b"}) {
			t.Errorf("replica: %+v", got)
		}
	})
}

func TestTheStatusOfTheArchiverIsPassedOn(t *testing.T) {
	story(t, func(t *testing.T, w *world) {
		w.operator = told(5, "b")
		w.boot()
		if code, _ := w.request(http.MethodGet, wire.PathArchiverStatus, nil); code != http.StatusNotFound {
			t.Errorf("without an archiver: %d", code)
		}
		file := filepath.Join(t.TempDir(), wire.ArchiverStatusFile)
		w.agent.Archiver = ArchiverStatusFile(file)
		ask := func() (int, string) {
			code, body := w.request(http.MethodGet, wire.PathArchiverStatus, nil)
			return code, string(body)
		}
		if code, _ := ask(); code != http.StatusNotFound {
			t.Errorf("before it said anything: %d", code)
		}
		good := `{"at":"2026-01-01T00:00:00Z","state":"Archiving","site":"a","epoch":5,"startedAt":"2026-01-01T00:00:00Z","pendingBytes":0,"gapCount":0,` +
			`"bytes":7,"logs":1,"uploadsSucceeded":1,"uploadsFailed":0,"uploadedBytes":7,"pruned":0}`
		for name, tc := range map[string]struct {
			text string
			code int
		}{
			"good": {good, http.StatusOK}, "garbage": {"\x00\x01", http.StatusBadGateway}, "half": {good[:40], http.StatusBadGateway},
			"too long": {good + strings.Repeat(" ", wire.MaxArchiverStatusBytes), http.StatusBadGateway}, "empty": {"", http.StatusBadGateway},
			"unknown fields": {strings.Replace(good, "{", `{"x":1,`, 1), http.StatusBadGateway},
		} {
			if err := os.WriteFile(file, []byte(tc.text), 0o600); err != nil {
				t.Fatal(err)
			}
			code, body := ask()
			if code != tc.code || tc.code != http.StatusOK && strings.Contains(body, "\\u0000") {
				t.Errorf("%s: %d %s", name, code, body)
			}
			if s, err := wire.ParseArchiverStatus([]byte(strings.TrimSpace(body))); tc.code == http.StatusOK && (err != nil || s.Bytes != 7) {
				t.Errorf("%s: %+v, %v", name, s, err)
			}
		}
		if err := os.Remove(file); err != nil {
			t.Fatal(err)
		}
		if err := syscall.Mkfifo(file, 0o600); err != nil {
			t.Fatal(err)
		}
		if code, _ := ask(); code != http.StatusBadGateway {
			t.Errorf("a pipe: %d", code)
		}
	})
}
