// SPDX-License-Identifier: Apache-2.0

package server

import (
	"encoding/json"
	"errors"
	"net/http"

	"github.com/mysql-mfg/mfg/api/wire"
)

// Errors that an Authority answers with. They are wire's, so that the poll loop need not import this package.
var (
	ErrUnknownGroup = wire.ErrUnknownGroup
	ErrNotLeading   = wire.ErrNotLeading
	ErrNoStatement  = wire.ErrNoStatement
)

// ErrBehind is the error of a Feed whose reader was too slow to see every change.
var ErrBehind = errors.New("too many changes were missed")

// shownBytes bounds how much of a request an error repeats.
const shownBytes = 80

func shorten(s string) string {
	if len(s) > shownBytes {
		return s[:shownBytes] + "..."
	}
	return s
}

// refuse answers with an error body.
func refuse(w http.ResponseWriter, code int, reason, message string) {
	if code == http.StatusServiceUnavailable {
		w.Header().Set("Retry-After", "1")
	}
	if reason == wire.ReasonNotLeading {
		// A kept connection would bring the next request to this process again.
		w.Header().Set("Connection", "close")
	}
	answer(w, code, wire.Error{Error: message, Reason: reason})
}

// answer writes a JSON body. No answer may come from a cache: each is true for a moment only.
func answer(w http.ResponseWriter, code int, body any) {
	raw, err := json.Marshal(body)
	if err != nil {
		http.Error(w, `{"error":"encode answer","reason":"`+wire.ReasonInternal+`"}`, http.StatusInternalServerError)
		return
	}
	h := w.Header()
	h.Set("Content-Type", "application/json")
	h.Set("Cache-Control", "no-store")
	h.Set("X-Content-Type-Options", "nosniff")
	w.WriteHeader(code)
	// A client that went away is no error of ours, and cannot read an answer.
	_, _ = w.Write(append(raw, '\n'))
}

// onlyGet refuses every other method.
func onlyGet(next http.HandlerFunc) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method != http.MethodGet {
			w.Header().Set("Allow", http.MethodGet)
			refuse(w, http.StatusMethodNotAllowed, wire.ReasonMethodNotAllowed, "only GET is allowed here")
			return
		}
		next(w, r)
	})
}
