// SPDX-License-Identifier: Apache-2.0

package server

import (
	"bytes"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mysql-mfg/mfg/api/wire"
	"github.com/mysql-mfg/mfg/operator/escrow"
)

// Everybody who reaches the port of the escrow listener can push. While tokens cannot be read nobody is known to be a stranger: that is one
// line a minute for all of them, with names of their choice in it once, and no error of a site. What a site does wrong is said
// once a minute too, for each site. The metric has them all.
func TestPushesDoNotFillTheLog(t *testing.T) {
	for name, tt := range map[string]struct {
		err     error
		level   string
		each    bool
		outcome string
	}{
		"tokens cannot be read": {fmt.Errorf("%w: %w", wire.ErrTokenUnread, errors.New("the API server is away")), "level=WARN", false, escrowFailed},
		"it cannot be stored":   {errors.New("the API server is away"), "level=ERROR", true, escrowFailed},
		"of another pod":        {wire.ErrOtherPod, "level=WARN", true, escrowOtherPod},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var log bytes.Buffer
				e := NewEscrow(failing{tt.err}, slog.New(slog.NewTextHandler(&log, nil)))
				push := func(site string) {
					r := httptest.NewRequestWithContext(t.Context(), http.MethodPost, wire.PathKeyringEscrow,
						bytes.NewReader(bodyOf(t, keyring, func(p *wire.KeyringEscrow) { p.Site = site })))
					r.Header.Set("Authorization", "Bearer "+escrow.NewToken())
					e.ServeHTTP(httptest.NewRecorder(), r)
				}
				before := pushesOf("shop", "orders", tt.outcome)
				for i := range 100 {
					push([]string{"paris", "madrid"}[i%2])
				}
				lines := 1
				if tt.each {
					lines = 2
				}
				if got := strings.Count(log.String(), tt.level); got != lines || strings.Count(log.String(), "\n") != lines {
					t.Errorf("%d lines for 100 pushes: %s", got, log.String())
				}
				if n := pushesOf("shop", "orders", tt.outcome) - before; n != 100 {
					t.Errorf("%v are counted", n)
				}
				log.Reset()
				time.Sleep(sayAgain)
				push("paris")
				if want := fmt.Sprintf("unsaid=%d", 100/lines-1); !strings.Contains(log.String(), want) {
					t.Errorf("not said again, with %s: %q", want, log.String())
				}
				if strings.Contains(log.String(), "the API server is away") != (tt.outcome == escrowFailed) {
					t.Errorf("the cause: %q", log.String())
				}
			})
		})
	}
}

// However many kinds of lines there are, what is remembered of them is bounded.
func TestOnlySoManyKindsOfLinesAreRemembered(t *testing.T) {
	var s quiet
	now, lines := time.Now(), 0
	for i := range 3 * maxSaid {
		if _, ok := s.again(fmt.Sprint(i), now); ok {
			lines++
		}
	}
	if lines != maxSaid+1 || len(s.lines) > maxSaid+1 {
		t.Errorf("%d lines, %d remembered", lines, len(s.lines))
	}
}
