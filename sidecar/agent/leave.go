// SPDX-License-Identifier: Apache-2.0

package agent

import (
	"context"
	"net/http"
	"time"

	"github.com/mysql-mfg/mfg/api/wire"
	"github.com/mysql-mfg/mfg/sidecar/fence"
)

// leaveLook is how often a waiting request looks again. Clients feel this wait as part of the pause.
const leaveLook = 20 * time.Millisecond

// notGuarded is why nothing waits beside a sidecar that no longer fences: the sooner mysqld ends, the better.
const notGuarded = "NotGuarded"

// getLeave answers as soon as mysqld can end without clients or other sites missing it, and after the leave timeout at
// the latest. It changes nothing, so anyone may ask.
func (a *Agent) getLeave(w http.ResponseWriter, r *http.Request) {
	wait := a.LeaveTimeout
	if text := r.URL.Query().Get(wire.ParamWait); text != "" {
		asked, err := time.ParseDuration(text)
		if err != nil || asked < 0 {
			a.decline(w, http.StatusBadRequest, wire.Error{Reason: wire.ReasonBadRequest, Error: "parameter wait is not a duration such as 500ms"})
			return
		}
		wait = min(wait, asked)
	}
	// The server's own limit is for answers that come at once. A writer without deadlines needs none moved.
	_ = http.NewResponseController(w).SetWriteDeadline(time.Now().Add(wait + exchangeTimeout))
	reply(w, http.StatusOK, a.awaitLeave(r.Context(), wait))
}

func (a *Agent) awaitLeave(ctx context.Context, wait time.Duration) wire.Leave {
	end := time.NewTimer(wait)
	defer end.Stop()
	again := time.NewTicker(leaveLook)
	defer again.Stop()
	for {
		refusal := fence.MayLeave(a.now(), a.Clock())
		switch {
		case refusal.Reason == "":
			return wire.Leave{Left: true}
		case !a.healthy():
			// A loop that hangs lets the lease run out unnoticed, so mysqld must not be kept for its sake (I4).
			return wire.Leave{Left: true, Reason: notGuarded, Message: "the sidecar hangs, so nothing keeps MySQL fenced"}
		}
		select {
		case <-again.C:
			continue
		case <-end.C:
		case <-ctx.Done():
		}
		return wire.Leave{Reason: string(refusal.Reason), Message: refusal.Message}
	}
}
