// SPDX-License-Identifier: Apache-2.0

package agent

import (
	"context"
	"encoding/json"
	"errors"
	"net"
	"net/http"
	"sync/atomic"
	"time"

	"github.com/mysql-mfg/mfg/api/wire"
	"github.com/mysql-mfg/mfg/internal/door"
	"github.com/mysql-mfg/mfg/sidecar/fence"
)

// doorLimits are more than the operator, the peers, the kubelet and Prometheus need together, even if they all use one address.
var doorLimits = door.Limits{Connections: 256, PerAddress: 32, Rate: 200, Burst: 400}

// Serve answers on a listener until the server is shut down. Each client address gets its share.
func (a *Agent) Serve(server *http.Server, l net.Listener) error {
	return server.Serve(a.door.Listen(l))
}

// Server is the HTTP server of the sidecar on the given address.
func (a *Agent) Server(addr string) *http.Server {
	return &http.Server{
		Addr: addr, Handler: a.door.Handler(a.Handler()),
		ReadHeaderTimeout: 2 * time.Second, ReadTimeout: 5 * time.Second,
		// A push may have to fence (fence timeout, then the end of mysqld) and to open.
		WriteTimeout: 2*a.FenceTimeout + goneTimeout + 10*time.Second,
		IdleTimeout:  60 * time.Second, MaxHeaderBytes: 8 << 10,
	}
}

// Handler serves the endpoints.
func (a *Agent) Handler() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET "+wire.PathHealthz, probe(a.healthy))
	mux.HandleFunc("GET "+wire.PathMysqldHealthz, probe(func() bool { return a.healthy() && a.supervised() }))
	mux.HandleFunc("GET "+wire.PathReadyz, probe(a.ready))
	mux.Handle("GET "+wire.PathMetrics, a.metrics.handler())
	mux.HandleFunc("GET "+wire.PathPeerActiveSite, a.getPeerActiveSite)
	mux.HandleFunc("PUT "+wire.PathActiveSite, a.putActiveSite)
	mux.HandleFunc("GET "+wire.PathLeave, a.getLeave)
	mux.HandleFunc("GET "+wire.PathArchiverStatus, a.getArchiverStatus)
	mux.HandleFunc("GET "+wire.PathArchiverTurn, a.getArchiverTurn)
	return a.shortQueries(mux)
}

// shortQueries refuses queries longer than any of our callers sends, before anything parses them.
func (a *Agent) shortQueries(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if len(r.URL.RawQuery) > wire.MaxQueryBytes {
			a.decline(w, http.StatusRequestURITooLong, wire.Error{Reason: wire.ReasonTooLarge, Error: "the query is too long"})
			return
		}
		next.ServeHTTP(w, r)
	})
}

func probe(ok func() bool) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		if !ok() {
			w.WriteHeader(http.StatusServiceUnavailable)
			_, _ = w.Write([]byte("no\n"))
			return
		}
		_, _ = w.Write([]byte("ok\n"))
	}
}

// getPeerActiveSite relays the newest statement. The answer keeps the asker's lease alive, so package fence remembers it.
// Strangers are refused before the lock: any request of theirs costs only the reading of a short query.
func (a *Agent) getPeerActiveSite(w http.ResponseWriter, r *http.Request) {
	query := r.URL.Query()
	ns, group, asking := query.Get(wire.ParamNamespace), query.Get(wire.ParamGroup), query.Get(wire.ParamSite)
	if ns != "" && ns != a.Site.Namespace || group != "" && group != a.Site.Group {
		a.decline(w, http.StatusForbidden, wire.Error{Reason: wire.ReasonOtherGroup, Error: "this sidecar is of another group"})
		return
	}
	if !a.Site.HasPeer(asking) {
		a.decline(w, http.StatusForbidden, wire.Error{Reason: wire.ReasonNotAPeer, Error: "the parameter site names no other site that this pod was started with"})
		return
	}
	var signed wire.Signed
	var refusal fence.Refusal
	a.mu.Lock()
	a.state, signed, refusal = fence.Answer(a.state, asking, a.Clock())
	a.mu.Unlock()
	if refusal.Reason != "" {
		a.decline(w, http.StatusServiceUnavailable, wire.Error{Reason: wire.ReasonNoStatement, Error: refusal.Message})
		return
	}
	reply(w, http.StatusOK, wire.ActiveSite{Statement: signed})
}

// putActiveSite takes a pushed statement and answers with the report of the site. An empty statement only asks for the
// report, as the operator does before the first epoch. The sidecar completes what the statement asks for even if the
// client hangs up.
func (a *Agent) putActiveSite(w http.ResponseWriter, r *http.Request) {
	var body wire.ActiveSite
	if err := json.NewDecoder(http.MaxBytesReader(w, r.Body, wire.MaxBodyBytes)).Decode(&body); err != nil {
		if _, large := errors.AsType[*http.MaxBytesError](err); large {
			a.decline(w, http.StatusRequestEntityTooLarge, wire.Error{Reason: wire.ReasonTooLarge, Error: "the body is too large"})
			return
		}
		a.decline(w, http.StatusBadRequest, wire.Error{Reason: wire.ReasonBadRequest, Error: "the body is not an active-site document"})
		return
	}
	if len(body.Challenge) > wire.MaxChallenge {
		a.decline(w, http.StatusBadRequest, wire.Error{Reason: wire.ReasonBadRequest, Error: "the challenge is too long"})
		return
	}
	ctx := context.WithoutCancel(r.Context())
	if body.Statement == "" {
		reply(w, http.StatusOK, a.authentic(body.Challenge, a.report(ctx, "")))
		return
	}
	statement, err := a.Verify(body.Statement)
	if err != nil {
		a.decline(w, http.StatusUnauthorized, wire.Error{Reason: wire.ReasonBadStatement, Error: err.Error()})
		return
	}
	if statement.Namespace != a.Site.Namespace || statement.Group != a.Site.Group {
		a.decline(w, http.StatusForbidden, wire.Error{Reason: wire.ReasonOtherGroup, Error: "the statement is for another group"})
		return
	}
	message := a.push(ctx, fence.Word{Origin: fence.Push, Signed: body.Statement, Statement: statement})
	reply(w, http.StatusOK, a.authentic(body.Challenge, a.report(ctx, message)))
}

// push takes a pushed word in. It fences if the word says so, and if the word names this site it asks the operator itself
// whether to open. It returns why the site could not do what was asked; empty if it could.
func (a *Agent) push(ctx context.Context, w fence.Word) string {
	adoption, kept := a.learn(w)
	err := <-kept
	s := a.now()
	switch {
	case err != nil:
		return "keep statement: " + err.Error()
	case !adoption.Taken && adoption.Refusal.Reason != fence.RelayedNotNewer:
		return adoption.Refusal.Message
	case s.Exposed() && fence.Decide(s, a.Clock()).Do == fence.Fence:
		return "MySQL is not fenced yet"
	case !s.Names() || w.Statement.Hold || s.Serves():
		// The report does not wait for the answer: where the way to the operator is cut, the site would count as silent for a hold or
		// a window. Anyone can send an old push again and again, so this is seldom done; the loop asks too.
		if adoption.Ask && a.askedSoon.due(a.Clock().Mono, askSoonPause) {
			a.work.Go(func() { a.askOperatorOnce(ctx) })
		}
		return ""
	}
	// The push opens nothing, because it may be old; the operator's own answer may open. Anyone can send an old push again, so only
	// a few ask at a time. An answer to one of them opens the site for all, and the loop asks too.
	select {
	case a.pushed <- struct{}{}:
		defer func() { <-a.pushed }()
		return a.askOperator(ctx).Message
	default:
		return "the operator is being asked already"
	}
}

// askSoonPause is how long pushes of one epoch have the operator asked once at most.
const askSoonPause = 500 * time.Millisecond

// seldom lets something happen once in a while.
type seldom struct{ last atomic.Int64 }

// due is true if that was not within the pause before now; then it counts as happening now.
func (s *seldom) due(now, pause time.Duration) bool {
	last := s.last.Load()
	return (last == 0 || int64(now)-last >= int64(pause)) && s.last.CompareAndSwap(last, int64(now))
}

// pushAsks is how many pushes may ask the operator at a time.
const pushAsks = 4

const (
	// reportLooks is how many looks a report takes at most, if each one overlaps a change of MySQL.
	reportLooks = 3
	// reportTimeout bounds how long a report waits for MySQL. The rest of the operator's patience is for the way there and back.
	reportTimeout = wire.ReportPatience * 6 / 10
)

// lookInTime looks at MySQL for a report. current is false if the look proves nothing; late is true if it has not ended in time, and it continues.
func (a *Agent) lookInTime(ctx context.Context) (current, late bool) {
	if a.now().Leaving() {
		return false, false // Stop waits for no look that begins now, and a report claims nothing without one
	}
	g := a.glances.join(func(serve func()) { a.work.Go(serve) }, func() bool {
		for range reportLooks {
			if a.look(ctx) {
				return true
			}
		}
		return false
	})
	timer := time.NewTimer(reportTimeout)
	defer timer.Stop()
	select {
	case <-g.done:
		return g.current, false
	case <-timer.C:
		return false, true
	}
}

// report looks at MySQL and describes the site. It leaves out facts that are not known to hold now.
func (a *Agent) report(ctx context.Context, message string) wire.Report {
	began := a.Clock()
	current, late := a.lookInTime(ctx)
	now := a.Clock()
	a.mu.Lock()
	r := fence.Report(a.state, now)
	status, silent := a.status, now.Mono-a.silentSince
	if late && !a.silent {
		silent = now.Mono - began.Mono // it answered the look before
	}
	a.mu.Unlock()
	r.BootID, r.PodUID, r.VolumeID, r.Message, r.ObservedAt = a.BootID, a.PodUID, a.VolumeID, message, now.Wall
	if a.Keyring != nil {
		r.Keyring = a.Keyring.Report()
	}
	if a.Anchor != nil {
		r.Anchor = a.Anchor()
	}
	if a.Certificate != nil {
		r.Certificate = a.Certificate.Report()
	}
	if a.WriteProbe != nil {
		r.WriteProbe, r.VolumeProbe = a.WriteProbe.Report(), a.WriteProbe.VolumeReport()
	}
	if a.Logins != nil {
		r.Accounts = a.Logins.Report()
	}
	if a.Engines != nil {
		r.Engines = a.Engines.Report()
	}
	if a.Measured != nil {
		r.Volume, r.OpenChange = a.Measured.VolumeUse(), a.Measured.OpenChange()
	}
	switch {
	case late:
		// MySQL does not answer in time, so the report holds nothing that it answered before. That it has not been opened since it
		// was seen not running is not an answer of MySQL, and stays in the report.
		r.MysqldRunning, r.Answered = true, false
	case !current:
		// MySQL was being opened or fenced all the time: nothing is proven.
		r.MysqldRunning, r.Answered, r.Fenced = true, false, false
	}
	if !r.Answered {
		r.SilentMillis = silent.Milliseconds()
		r.Writable, r.SuperReadOnly, r.OfflineMode = false, false, false
		return bounded(r)
	}
	r.ServerUUID, r.GTIDExecuted = status.ServerUUID, status.Executed.String()
	return bounded(r)
}

func reply(w http.ResponseWriter, code int, body any) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(code)
	// The client may have hung up; what it asked for is done all the same.
	_ = json.NewEncoder(w).Encode(body)
}

// decline refuses a request and counts it.
func (a *Agent) decline(w http.ResponseWriter, code int, body wire.Error) {
	a.metrics.refusals.WithLabelValues(body.Reason).Inc()
	reply(w, code, body)
}
