// SPDX-License-Identifier: Apache-2.0

package client_test

import (
	"errors"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/mysql-mfg/mfg/api/client"
	"github.com/mysql-mfg/mfg/api/wire"
)

func TestArchiverStatus(t *testing.T) { each(t, testArchiverStatus) }

func testArchiverStatus(t *testing.T, c *client.Client) {
	t.Helper()
	want := wire.ArchiverStatus{At: time.Date(2026, 11, 25, 2, 0, 0, 0, time.UTC), State: wire.ArchiverArchiving, Site: "a", Bytes: 7}
	_, addr := serve(t, func(w http.ResponseWriter, r *http.Request) {
		if r.Method != http.MethodGet || r.URL.Path != wire.PathArchiverStatus {
			t.Errorf("got %s %s", r.Method, r.URL)
		}
		answer(t, w, http.StatusOK, want)
	})
	if got, err := c.ArchiverStatus(t.Context(), addr); err != nil || got.Bytes != 7 || !got.At.Equal(want.At) {
		t.Errorf("%+v, %v", got, err)
	}
	// What is none is an error, whoever answers, and what is too long is not read.
	for name, body := range map[string]string{"another document": `{"at":"2026-11-25T02:00:00Z","state":"Fine"}`, "none": `null`, "no JSON": `<html>`,
		"too long": `"` + strings.Repeat("x", wire.MaxArchiverStatusBytes) + `"`} {
		_, addr := serve(t, func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte(body)) })
		if _, err := c.ArchiverStatus(t.Context(), addr); !errors.Is(err, client.ErrUnreadable) && !errors.Is(err, client.ErrTooLarge) {
			t.Errorf("%s: %v", name, err)
		}
	}
}
