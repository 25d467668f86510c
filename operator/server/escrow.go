// SPDX-License-Identifier: Apache-2.0

package server

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"log/slog"
	"net"
	"net/http"
	"strings"
	"sync"
	"time"

	"github.com/mysql-mfg/mfg/api/wire"
	"github.com/mysql-mfg/mfg/internal/door"
)

// Keeper takes keyrings into escrow. It alone knows tokens; its refusals are errors of api/wire, and their texts go to
// the client. *escrow.Store implements it.
type Keeper interface {
	// Authenticate says whether the token is that of the site: wire.ErrUnauthorized, or why that is unknown.
	Authenticate(ctx context.Context, push wire.KeyringEscrow, token string) error
	// Put looks at the token too.
	Put(ctx context.Context, push wire.KeyringEscrow, token string) (wire.KeyringEscrowed, error)
}

// escrowLimits bound how much a stranger can make the escrow listener hold.
type escrowLimits struct {
	readHeader, read, write, shutdown time.Duration
	// put is how long storing may take.
	put time.Duration
	// connections and requests are how many there may be at a time. strangers of the requests are at most those whose token was not found good
	// yet, nor a moment ago; turns is how many of these have their token looked at. perAddress counts for one address of strangers, and for
	// one token that was good a moment ago.
	connections, requests, strangers, turns, perAddress int
	// held is how many connections one address may hold.
	held int
	// recheck is how often the listener checks the certificate besides file events, retry how soon after a failure.
	recheck, retry time.Duration
}

func defaultEscrowLimits() escrowLimits {
	return escrowLimits{
		readHeader: 5 * time.Second, read: 10 * time.Second, write: 30 * time.Second, shutdown: 5 * time.Second,
		put: 10 * time.Second, connections: 256, held: 16, requests: 32, strangers: 24, turns: 4, perAddress: 4,
		recheck: 10 * time.Second, retry: 5 * time.Second,
	}
}

// Escrow is the TLS listener that takes keyrings into escrow. Nothing else passes here, and keyrings and tokens pass
// nowhere else. It is safe for concurrent use.
type Escrow struct {
	keeper Keeper
	log    *slog.Logger
	limits escrowLimits
	door   *door.Door

	said quiet

	mu sync.Mutex
	// places are the pushes under way, oldest first, and from counts them by share.
	places []*place
	from   map[string]int
	// good is when tokens were last found good.
	good map[digest]time.Time
	// turns holds one element for each stranger whose token is being looked at.
	turns chan struct{}
}

// NewEscrow makes the listener's handler. A nil log drops its lines.
func NewEscrow(keeper Keeper, log *slog.Logger) *Escrow {
	return newEscrow(keeper, log, defaultEscrowLimits())
}

func newEscrow(keeper Keeper, log *slog.Logger, l escrowLimits) *Escrow {
	if log == nil {
		log = slog.New(slog.DiscardHandler)
	}
	pusher{}.start()
	shares := door.Limits{Connections: l.connections, PerAddress: l.held}
	return &Escrow{
		keeper: keeper, log: log, limits: l, from: map[string]int{}, good: map[digest]time.Time{}, turns: make(chan struct{}, l.turns),
		door: door.New(shares, func(reason string) { Refused.WithLabelValues(ListenerEscrow, reason).Inc() }),
	}
}

// ServeHTTP answers one request.
func (e *Escrow) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	switch {
	case r.URL.Path != wire.PathKeyringEscrow:
		refuse(w, http.StatusNotFound, wire.ReasonNotFound, "no such endpoint: "+shorten(r.URL.Path))
	case r.Method != http.MethodPost:
		w.Header().Set("Allow", http.MethodPost)
		refuse(w, http.StatusMethodNotAllowed, wire.ReasonMethodNotAllowed, "only POST is allowed here")
	default:
		e.push(w, r)
	}
}

// push answers one push. Refusals that need not know whose keyring it is come first, and say nothing of groups and
// sites.
func (e *Escrow) push(w http.ResponseWriter, r *http.Request) {
	token, ok := bearer(r.Header)
	if !ok || !wire.IsEscrowToken(token) {
		e.refuse(w, pusher{}, wire.ErrUnauthorized)
		return
	}
	if r.ContentLength > wire.MaxKeyringBytes {
		// Read some of it and throw it away: a client that is still sending when the connection closes never sees the answer.
		_, _ = io.CopyN(io.Discard, r.Body, wire.MaxKeyringBytes+1)
		e.refuse(w, pusher{}, errTooLarge)
		return
	}
	ctx, cancel := context.WithCancel(r.Context())
	defer cancel()
	here, ok := e.enter(r.RemoteAddr, token, func() {
		cancel()
		_ = http.NewResponseController(w).SetReadDeadline(time.Now())
	})
	if !ok {
		e.refuse(w, pusher{}, errTooMany)
		return
	}
	defer here.leave()
	push, err := readPush(w, r)
	if err != nil {
		if !here.stays() {
			err = errTooMany
		}
		e.refuse(w, here.of, err)
		return
	}
	here.hasBody()
	stored, err := e.take(ctx, here, push, token)
	if errors.Is(err, errTooMany) {
		e.refuse(w, here.of, err)
		return
	}
	if err == nil {
		e.log.Info("took keyring into escrow", "namespace", push.Namespace, "group", push.Group, "site", push.Site,
			"version", stored.Version, "digest", stored.Digest)
		here.of.count(escrowStored)
		answer(w, http.StatusOK, stored)
		return
	}
	e.tell(e.refuse(w, here.of, err), push, r.RemoteAddr)
}

// take stores a keyring whose token is good.
func (e *Escrow) take(ctx context.Context, here *place, push wire.KeyringEscrow, token string) (wire.KeyringEscrowed, error) {
	ctx, cancel := context.WithTimeout(ctx, e.limits.put)
	defer cancel()
	if err := here.prove(ctx, push, token); err != nil {
		return wire.KeyringEscrowed{}, err
	}
	return e.keeper.Put(ctx, push, token)
}

// tell logs why a push was refused. Anyone who reaches the port can push, so lines of the same kind come once in a while, and
// the metric counts them all.
func (e *Escrow) tell(refused refusal, push wire.KeyringEscrow, from string) {
	level, text := slog.LevelWarn, "refused keyring"
	words := []any{"from", from, "reason", refused.reason}
	about := ""
	switch {
	case refused.outcome == escrowUnauthorized:
		e.log.Debug(text, words...)
		return
	case errors.Is(refused.err, wire.ErrTokenUnread):
		// Perhaps a stranger, who chose the names: one line for all of them, without any.
		text, words = "escrow tokens cannot be read, and keyrings are refused", append(words, "err", refused.err)
	default:
		about = strings.Join([]string{refused.outcome, push.Namespace, push.Group, push.Site}, "/")
		words = append(words, "namespace", push.Namespace, "group", push.Group, "site", push.Site)
		if refused.outcome == escrowFailed {
			level, text, words = slog.LevelError, "take keyring into escrow", append(words, "err", refused.err)
		}
	}
	if unsaid, now := e.said.again(about, time.Now()); now {
		e.log.Log(context.Background(), level, text, append(words, "unsaid", unsaid)...)
	}
}

// bearer returns the token of a request.
func bearer(h http.Header) (string, bool) {
	values := h.Values("Authorization")
	if len(values) != 1 {
		return "", false
	}
	scheme, token, _ := strings.Cut(values[0], " ")
	return token, strings.EqualFold(scheme, "Bearer") && token != ""
}

// Refusals of the listener itself.
var (
	errTooMany   = errors.New("too many keyrings are on their way")
	errTooLarge  = errors.New("the body is too large")
	errTooSlow   = errors.New("the body did not come in time")
	errTruncated = errors.New("the body ends before its end")
	errNotJSON   = errors.New("the body is not the JSON of a keyring for escrow")
)

// readPush reads the body, which is bounded in size and time. Errors of the decoder are not passed on: they repeat parts
// of what they could not read (I11).
func readPush(w http.ResponseWriter, r *http.Request) (wire.KeyringEscrow, error) {
	raw, err := io.ReadAll(http.MaxBytesReader(w, r.Body, wire.MaxKeyringBytes))
	var large *http.MaxBytesError
	var network net.Error
	switch {
	case errors.As(err, &large):
		return wire.KeyringEscrow{}, errTooLarge
	case errors.As(err, &network) && network.Timeout():
		return wire.KeyringEscrow{}, errTooSlow
	case err != nil:
		return wire.KeyringEscrow{}, errTruncated
	}
	var push wire.KeyringEscrow
	if json.Unmarshal(raw, &push) != nil {
		return wire.KeyringEscrow{}, errNotJSON
	}
	return push, nil
}

// refusal is the answer to an error; err has the text, except for a failure, which only the log tells.
type refusal struct {
	err     error
	code    int
	reason  string
	outcome string
}

var refusals = []refusal{
	{wire.ErrUnauthorized, http.StatusUnauthorized, wire.ReasonUnauthorized, escrowUnauthorized},
	{wire.ErrNotUnsealed, http.StatusConflict, wire.ReasonNotUnsealed, escrowNotUnsealed},
	{wire.ErrOtherPod, http.StatusConflict, wire.ReasonOtherPod, escrowOtherPod},
	{wire.ErrDigestMismatch, http.StatusUnprocessableEntity, wire.ReasonDigestMismatch, escrowDigestMismatch},
	{wire.ErrNotAKeyring, http.StatusUnprocessableEntity, wire.ReasonNotAKeyring, escrowNotAKeyring},
	{wire.ErrTooManyVersions, http.StatusInsufficientStorage, wire.ReasonTooManyVersions, escrowTooManyVersions},
	{wire.ErrNotLeading, http.StatusServiceUnavailable, wire.ReasonNotLeading, escrowNotLeading},
	{errTooMany, http.StatusServiceUnavailable, wire.ReasonTooManyClients, escrowTooManyClients},
	{errTooLarge, http.StatusRequestEntityTooLarge, wire.ReasonTooLarge, escrowTooLarge},
	{errTooSlow, http.StatusRequestTimeout, wire.ReasonSlow, escrowTooSlow},
	{errTruncated, http.StatusBadRequest, wire.ReasonBadRequest, escrowBadRequest},
	{errNotJSON, http.StatusBadRequest, wire.ReasonBadRequest, escrowBadRequest},
}

// refuse answers an error and counts it. The client learns nothing of an error that is none of the refusals: the log has it.
func (e *Escrow) refuse(w http.ResponseWriter, of pusher, err error) refusal {
	as := refusal{err, http.StatusInternalServerError, wire.ReasonInternal, escrowFailed}
	text := "the keyring could not be stored"
	for _, known := range refusals {
		if errors.Is(err, known.err) {
			as, text = known, known.err.Error()
		}
	}
	if as.code == http.StatusUnauthorized {
		w.Header().Set("WWW-Authenticate", "Bearer")
	}
	of.count(as.outcome)
	refuse(w, as.code, as.reason, text)
	return as
}
