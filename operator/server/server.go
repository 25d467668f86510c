// SPDX-License-Identifier: Apache-2.0

// Package server is the operator's auxiliary listener: who is active, what the operator sees, and a stream of changes.
// It decides nothing and knows nothing of MySQL or Kubernetes: signed statements come from an Authority, states of
// groups from a Source. The prose is in docs/reference/http.md.
package server

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"sync"
	"time"

	"github.com/gorilla/websocket"

	"github.com/mysql-mfg/mfg/api/wire"
	"github.com/mysql-mfg/mfg/internal/door"
)

// Authority answers sidecars. The poll loop implements it.
type Authority interface {
	// Answer returns a signed statement for a site that asks and remembers that it did: from now on that site may have a
	// new lease. An error is one of wire's or an internal one; after an error no lease may have been renewed.
	Answer(wire.Ask) (wire.Signed, error)
}

// Source holds the state of every group. Board implements it.
type Source interface {
	// Snapshot returns all groups, sorted. The caller must not change what it points to.
	Snapshot() []wire.GroupStatus
	// Subscribe returns all groups and a feed of the changes after that very moment.
	Subscribe() ([]wire.GroupStatus, Feed)
	// Ages says how many seconds ago each group ("namespace/group") was published last.
	Ages(now time.Time) map[string]float64
}

// Feed hands out changes in the order in which they happened. It needs no closing.
type Feed interface {
	// Next waits for changes. ErrBehind means that some were missed: take a new snapshot.
	Next(ctx context.Context) (Changes, error)
}

// Changes are groups in their newest state and the names ("namespace/group") of groups that are gone, both sorted.
type Changes struct {
	Groups []wire.GroupStatus
	Gone   []string
}

// Options is what a Server is made of.
type Options struct {
	Authority Authority
	Source    Source
	// Explain says why the last decision about a group was taken; false if there is none. nil: no explanations.
	Explain func(namespace, group string) (wire.Explanation, bool)
	// Authorize says whether the bearer of a token may read the groups of a namespace, or of all if it is empty: nil,
	// wire.ErrUnauthorized, wire.ErrForbidden, or why that is unknown. nil: every client may read everything.
	Authorize func(ctx context.Context, token, namespace string) error
	// Cutoff says what may be removed from the archive of a group, and what its epochs began with; an error is
	// wire.ErrUnknownGroup, wire.ErrNotLeading or why that is unknown. nil: nothing may be removed.
	Cutoff func(ctx context.Context, namespace, group string) (wire.CutoffAnswer, error)
	// Operator is the version that GET /status shows.
	Operator string
	// Leading is false while this process may not speak for the groups; nil means always true. The Authority
	// answers for itself.
	Leading func() bool
	// Log receives internal errors; nil drops them.
	Log *slog.Logger
}

// limits bound every connection.
type limits struct {
	readHeader, read, write, idle, shutdown time.Duration

	// streams is how many WebSocket connections are held at a time, streamsOfOne how many of one address. Many people can share one: behind a
	// proxy, or with port-forwards, all of which come from the pod itself.
	streams, streamsOfOne int
	// streamWrite is how long one message to a WebSocket client may take.
	streamWrite time.Duration
	// ping is how often a WebSocket client is asked whether it is there, pong how long it may be silent.
	ping, pong time.Duration
	// gap is the least time between two deltas: a client gets one message for all changes within it.
	gap time.Duration
	// streamRead is the greatest message accepted from a WebSocket client.
	streamRead int64

	// door is each address's share. status is how many requests for the state of groups, which can be megabytes, one address
	// may make, and statuses how many are answered at once.
	door, status door.Limits
	statuses     int
	// cutoff and cuttings are the same for cutoffs. An archiver asks about once a minute.
	cutoff   door.Limits
	cuttings int
}

func defaultLimits() limits {
	return limits{
		readHeader: 5 * time.Second, read: 10 * time.Second, write: 30 * time.Second, idle: 90 * time.Second,
		shutdown: 5 * time.Second,
		streams:  64, streamsOfOne: 48, streamWrite: 10 * time.Second, ping: 10 * time.Second, pong: 25 * time.Second,
		gap: 250 * time.Millisecond, streamRead: 4 << 10,
		// A thousand groups of three sites keep 3,000 connections and ask 1,500 times a second. Where the network hides the pods of
		// a node behind its address, one address stands for hundreds of them.
		door:   door.Limits{Connections: 4608, PerAddress: 512, Rate: 500, Burst: 1000},
		status: door.Limits{Connections: 512, Rate: 20, Burst: 60}, statuses: 16,
		cutoff: door.Limits{Connections: 512, Rate: 20, Burst: 60}, cuttings: 4,
	}
}

const maxHeaderBytes = 16 << 10

// Server answers the auxiliary endpoints. It is safe for concurrent use.
type Server struct {
	options  Options
	limits   limits
	mux      *http.ServeMux
	upgrader websocket.Upgrader

	door, statusDoor, cutoffDoor *door.Door
	// slots holds one element for each WebSocket connection, answering one for each state of groups that is being answered, cutting one
	// for each cutoff.
	slots, answering, cutting chan struct{}
	// watching has the WebSocket connections of each address, oldest first.
	mu       sync.Mutex
	watching map[string][]*watcher
	// running ends when the server stops: http.Server does not know hijacked connections.
	running context.Context
	stop    context.CancelFunc
}

// New makes a server. Authority and Source are required.
func New(o Options) *Server { return newServer(o, defaultLimits()) }

func newServer(o Options, l limits) *Server {
	if o.Leading == nil {
		o.Leading = func() bool { return true }
	}
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	s := &Server{options: o, limits: l, mux: http.NewServeMux(), slots: make(chan struct{}, l.streams), watching: map[string][]*watcher{}}
	refused := func(reason string) { Refused.WithLabelValues(ListenerAuxiliary, reason).Inc() }
	s.door, s.statusDoor, s.answering = door.New(l.door, refused), door.New(l.status, refused), make(chan struct{}, l.statuses)
	s.cutoffDoor, s.cutting = door.New(l.cutoff, refused), make(chan struct{}, l.cuttings)
	s.running, s.stop = context.WithCancel(context.Background())
	s.upgrader = newUpgrader(l)
	s.mux.Handle(wire.PathActiveSite, onlyGet(s.activeSite))
	s.mux.Handle(wire.PathPITRCutoff, onlyGet(s.cutoff))
	s.mux.Handle(wire.PathStatus, onlyGet(s.status))
	s.mux.Handle(wire.PathWSStatus, onlyGet(s.statusStream))
	s.mux.HandleFunc("/", func(w http.ResponseWriter, r *http.Request) {
		refuse(w, http.StatusNotFound, wire.ReasonNotFound, "no such endpoint: "+shorten(r.URL.Path))
	})
	return s
}

// ServeHTTP answers one request.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if len(r.URL.RawQuery) > wire.MaxQueryBytes {
		Refused.WithLabelValues(ListenerAuxiliary, wire.ReasonTooLarge).Inc()
		refuse(w, http.StatusRequestURITooLong, wire.ReasonTooLarge, "the query is too long")
		return
	}
	s.mux.ServeHTTP(w, r)
}

// Serve answers on a listener until the context ends, then closes every connection. A server serves once.
func (s *Server) Serve(ctx context.Context, l net.Listener) error {
	srv := &http.Server{
		Handler:           s.door.Handler(s),
		ReadHeaderTimeout: s.limits.readHeader,
		ReadTimeout:       s.limits.read,
		WriteTimeout:      s.limits.write,
		IdleTimeout:       s.limits.idle,
		MaxHeaderBytes:    maxHeaderBytes,
		ErrorLog:          slog.NewLogLogger(s.options.Log.Handler(), slog.LevelWarn),
	}
	ended := make(chan error, 1)
	go func() { ended <- srv.Serve(s.door.Listen(l)) }()
	select {
	case err := <-ended:
		s.stop()
		return fmt.Errorf("serve %s: %w", l.Addr(), err)
	case <-ctx.Done():
	}
	s.stop()
	grace, cancel := context.WithTimeout(context.WithoutCancel(ctx), s.limits.shutdown)
	defer cancel()
	err := srv.Shutdown(grace)
	if err != nil {
		err = srv.Close()
	}
	if serveErr := <-ended; !errors.Is(serveErr, http.ErrServerClosed) {
		err = serveErr
	}
	s.awaitStreams(grace)
	return err
}

// awaitStreams waits until no WebSocket connection is held.
func (s *Server) awaitStreams(ctx context.Context) {
	for range cap(s.slots) {
		select {
		case s.slots <- struct{}{}:
		case <-ctx.Done():
			return
		}
	}
}

// Runnable serves on an address, as a Runnable of controller-runtime's manager.
type Runnable struct {
	Server *Server
	Addr   string
}

// Start serves until the context ends.
func (r Runnable) Start(ctx context.Context) error {
	var lc net.ListenConfig
	l, err := lc.Listen(ctx, "tcp", r.Addr)
	if err != nil {
		return fmt.Errorf("listen for auxiliary endpoints: %w", err)
	}
	return r.Server.Serve(ctx, l)
}

// NeedLeaderElection is false: a process that does not lead answers 503 instead of refusing connections.
func (r Runnable) NeedLeaderElection() bool { return false }
