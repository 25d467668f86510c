// SPDX-License-Identifier: Apache-2.0

// Package agent is the shell of the sidecar: it looks at MySQL, asks the operator and the peers, and carries out what
// sidecar/fence decides. It decides nothing itself. docs/internals/fence.md describes it as a whole.
//
// Locks, in the order in which they may be taken: Agent.opening, the right to change MySQL (Agent.right), then Agent.saving,
// then Agent.mu. Nothing that can wait for the network, for MySQL or for a disk happens under mu, so that the lease's timer
// always gets its decision.
package agent

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/mysql-mfg/mfg/api/wire"
	"github.com/mysql-mfg/mfg/internal/door"
	"github.com/mysql-mfg/mfg/internal/mysql"
	"github.com/mysql-mfg/mfg/sidecar/fence"
)

const (
	// watchInterval is how often the agent looks at MySQL.
	watchInterval = 500 * time.Millisecond
	// lookTimeout bounds one look at MySQL, exchangeTimeout one question to the operator or a peer.
	lookTimeout     = time.Second
	exchangeTimeout = time.Second
	// openTimeout bounds one opening. The operator's answer is at most 2 s old before it, so an opening takes effect or is
	// cut off within 4 s of the request for that answer: the promotion gate relies on that.
	openTimeout = 1500 * time.Millisecond
	// unsupervisedMost is how long the supervisor of mysqld may hang before the agent tells the kubelet.
	unsupervisedMost = 10 * time.Second
)

// MySQL is the server beside this sidecar.
type MySQL interface {
	Status(ctx context.Context) (mysql.Status, error)
	Fence(ctx context.Context, opts mysql.FenceOptions) (mysql.FenceResult, error)
	OpenWrites(ctx context.Context) error
	KeepOut(ctx context.Context, everybody bool) error
	SetOfflineMode(ctx context.Context, on bool) error
}

// Network asks the operator and the peers for the statement.
type Network interface {
	Operator(ctx context.Context, nonce string) (wire.Signed, error)
	Peer(ctx context.Context, addr string) (wire.Signed, error)
}

// Processes is the process table of the pod.
type Processes interface {
	// Look finds mysqld.
	Look() (Mysqld, error)
	// Locked is true unless no process holds the datadir.
	Locked() bool
	// Kill ends the processes with SIGKILL.
	Kill(Mysqld) error
}

// Volume is the part of the data volume that keeps the statement and the mark of an opening.
type Volume interface {
	// Save returns nil once k survives a crash.
	Save(k fence.Kept) error
	// Load returns what survived, and a warning if part of it is damaged.
	Load(verify func(wire.Signed) (wire.Statement, error)) (kept fence.Kept, warning, err error)
	// MarkOpening notes that writes are being opened in a process, and returns nil once the note survives a crash.
	// UnmarkOpening removes it. MarkedOpening returns the marked process; empty if there is none or it is not known.
	MarkOpening(process string) error
	UnmarkOpening() error
	MarkedOpening() (process string, marked bool, err error)
}

// Watchdog is the deadline that the supervisor of mysqld enforces. No call may block: the agent calls under its lock.
type Watchdog interface {
	Set(until time.Duration)
	Sooner(until time.Duration)
	Clear()
	// Watched is true if the supervisor looked at the deadline a short while ago.
	Watched(now time.Duration) bool
}

// Keyring is the keyring of a site with data-at-rest encryption.
type Keyring interface {
	// Report is what is known of it.
	Report() *wire.KeyringReport
	// Unescrowed says why the site must not be opened now; empty if it may be.
	Unescrowed() string
}

// Certificate is the certificate that MySQL shows.
type Certificate interface {
	Report() *wire.CertificateReport
}

// WriteProbe writes as a client does while the site is open.
type WriteProbe interface {
	// Report is the result; nil if nothing is known.
	Report() *wire.WriteProbe
	// VolumeReport is the result of writing to the volume of a site that is not open; nil if nothing is known.
	VolumeReport() *wire.VolumeProbe
}

// Logins reports which passwords this sidecar logs in with.
type Logins interface {
	Report() *wire.AccountReport
}

// Engines looks for tables whose rows a clone loses.
type Engines interface {
	Report() *wire.EngineReport
}

// Measured says how full the data volume is, nil while that is not known, and more. It waits for neither the volume nor mysqld.
type Measured interface {
	VolumeUse() *wire.VolumeUse
	// OpenChange is how many rows the largest open transaction has changed; nil while that is not known.
	OpenChange() *int64
}

// Config is what an agent is made of.
type Config struct {
	Site  fence.Site
	Peers []string
	// PodUID, BootID and VolumeID go into the reports.
	PodUID   string
	BootID   string
	VolumeID string

	Lease        time.Duration
	PeerCheck    time.Duration
	FenceTimeout time.Duration
	// LeaveTimeout is the longest that GET /leave waits.
	LeaveTimeout time.Duration

	// MySQL serves looks, Changer fences and opens: a look that hangs must not take a fence's connection.
	MySQL     MySQL
	Changer   MySQL
	Network   Network
	Processes Processes
	Volume    Volume
	Watchdog  Watchdog
	Verify    func(wire.Signed) (wire.Statement, error)
	// Prepared counts the XA transactions that are prepared in MySQL; nil if the agent cannot look.
	Prepared func(ctx context.Context) (int, error)
	// Anchor names the key that Verify trusts; nil if that is not known.
	Anchor func() string
	// ReportKey returns the key that authenticates reports; nil in a pod that was given none.
	ReportKey func() ([]byte, error)
	// Keyring is nil on a site without data-at-rest encryption.
	Keyring Keyring
	// Certificate is nil on a site without TLS.
	Certificate Certificate
	// WriteProbe may be nil.
	WriteProbe WriteProbe
	// Engines may be nil.
	Engines Engines
	// Measured may be nil.
	Measured Measured
	// Logins may be nil.
	Logins Logins
	// Measures are more series for scrapes, and must not wait for anything; nil if there are none.
	Measures prometheus.Collector
	// Archiver reads what the archiver of this pod says; nil without one.
	Archiver func() (wire.ArchiverStatus, error)
	Clock    Clock
	Log      *slog.Logger
}

func (c Config) validate() error {
	switch {
	case c.Site.Namespace == "" || c.Site.Group == "" || c.Site.Name == "":
		return errors.New("namespace, group and site must be given")
	case c.PeerCheck <= 0 || c.FenceTimeout <= 0:
		return errors.New("the peer check interval and the fence timeout must be positive")
	case c.Watchdog == nil:
		return errors.New("a watchdog must be given: without it nobody ends mysqld when this program hangs")
	case c.LeaveTimeout < 0:
		return errors.New("the leave timeout must not be negative")
	case c.Lease <= 2*c.PeerCheck || c.Lease <= c.FenceTimeout+openTimeout:
		return fmt.Errorf("the lease timeout %v must be longer than two peer check intervals (%v each), and than the fence timeout %v and %v more",
			c.Lease, c.PeerCheck, c.FenceTimeout, openTimeout)
	}
	return nil
}

// Agent guards one MySQL.
type Agent struct {
	Config
	metrics *Metrics
	door    *door.Door

	mu    sync.Mutex
	state fence.State
	// status is MySQL's answer to the look that state.Seen holds, looked is when the agent took it in.
	status mysql.Status
	looked time.Duration
	// silent is true if the last look got no answer, silentSince is when the unbroken row of such looks began.
	silent      bool
	silentSince time.Duration
	// said holds what was last logged for each subject, so that only changes are logged.
	said map[string]string

	// right is the right to change MySQL: the goroutine that has put an element in holds it.
	right chan struct{}
	// saving is held in the same way while a goroutine writes to the data volume.
	saving chan struct{}
	// toKeep counts the words whose writing waits for the data volume.
	toKeep atomic.Int32
	// opening is held in the same way while a goroutine opens writes. marked is true if the data volume may have the mark
	// of an opening; only the holder of opening touches it.
	opening chan struct{}
	marked  bool
	// keepingOut is true while a goroutine keeps clients out, or waits for the right to.
	keepingOut atomic.Bool
	// news wakes the timer: the time of the next change may have moved.
	news   chan struct{}
	asking sync.Map
	// pushed holds one element for each push that asks the operator.
	pushed chan struct{}
	// askedSoon is when a push that said something else under the same epoch last had the operator asked, on the agent's clock.
	askedSoon seldom
	// glances are the looks at MySQL that reports wait for.
	glances glances
	// ticked and watched are when the two loops last began a round, on the agent's clock.
	ticked  atomic.Int64
	watched atomic.Int64
	// unsupervised is since when all probes found mysqld without a supervisor that watches it; 0 if the last one did not.
	unsupervised atomic.Int64
	work         sync.WaitGroup
}

// New makes an agent from its configuration and what its data volume holds.
func New(c Config) (*Agent, error) {
	if err := c.validate(); err != nil {
		return nil, fmt.Errorf("configure sidecar: %w", err)
	}
	kept, warning, err := c.Volume.Load(c.Verify)
	if err != nil {
		return nil, fmt.Errorf("load statement: %w; if the volume cannot be restored, delete it and let the site be cloned again", err)
	}
	if w := kept.Statement; w.Epoch > 0 && (w.Namespace != c.Site.Namespace || w.Group != c.Site.Group) {
		return nil, fmt.Errorf("load statement: the data volume belongs to group %s/%s, not to %s/%s",
			w.Namespace, w.Group, c.Site.Namespace, c.Site.Group)
	}
	a := &Agent{
		Config: c, said: map[string]string{}, right: make(chan struct{}, 1), saving: make(chan struct{}, 1),
		opening: make(chan struct{}, 1), news: make(chan struct{}, 1), pushed: make(chan struct{}, pushAsks),
	}
	a.Site.Peers = peerNames(c.Site.Group, c.Peers)
	now := c.Clock()
	a.state = fence.Boot(a.Site, fence.Limits{Lease: c.Lease, Opening: openTimeout, Fence: c.FenceTimeout}, kept, now)
	a.takeMark()
	a.ticked.Store(int64(now.Mono))
	a.watched.Store(int64(now.Mono))
	a.metrics = newMetrics(a.now, c.Clock, c.WriteProbe)
	if c.Measures != nil {
		a.metrics.registry.MustRegister(c.Measures)
	}
	a.door = door.New(doorLimits, func(reason string) { a.metrics.refusals.WithLabelValues(reason).Inc() })
	if warning != nil {
		a.Log.Warn("a copy of the statement is damaged; the other one is used", "error", warning)
	}
	a.Log.Info("sidecar starts", "epoch", kept.Statement.Epoch, "activeSite", kept.Statement.ActiveSite,
		"heardOperator", kept.Heard, "bootID", c.BootID)
	return a, nil
}

// takeMark treats an opening that an earlier run began and did not end as this run's own (I1).
func (a *Agent) takeMark() {
	process, marked, err := a.Volume.MarkedOpening()
	if err == nil && !marked {
		return
	}
	// A mark that cannot be read may be one.
	a.state, a.marked = fence.Interrupted(a.state, process), true
	a.Log.Warn("an earlier run ended while it was opening writes; unless mysqld has restarted since, it is ended", "process", process, "error", err)
}

// now is the present state.
func (a *Agent) now() fence.State {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.state
}

// update replaces the state and wakes the timer.
func (a *Agent) update(change func(fence.State) fence.State) {
	a.mu.Lock()
	a.become(change(a.state))
	a.mu.Unlock()
	a.wake()
}

// become replaces the state and moves the supervisor's deadline in the same moment; the caller holds mu. If the sidecar
// hangs right after, the supervisor already knows until when mysqld may run.
func (a *Agent) become(s fence.State) {
	a.state = s
	switch told := fence.Watch(s, a.Clock()); {
	case told.Until == 0:
		a.Watchdog.Clear()
	case told.Sooner:
		a.Watchdog.Sooner(told.Until)
	default:
		a.Watchdog.Set(told.Until)
	}
}

func (a *Agent) wake() {
	select {
	case a.news <- struct{}{}:
	default:
	}
}

// changed is true if a subject has another value than at the last call: only then is there something to log.
func (a *Agent) changed(subject, value string) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.said[subject] == value {
		return false
	}
	a.said[subject] = value
	return true
}
