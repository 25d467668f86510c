// SPDX-License-Identifier: Apache-2.0

package server

import (
	"context"
	"errors"
	"net"
	"net/http"
	"net/netip"
	"time"

	"github.com/mysql-mfg/mfg/api/wire"
	"github.com/mysql-mfg/mfg/internal/door"
)

const (
	// accessTimeout bounds the questions to the API server about one client.
	accessTimeout = 3 * time.Second
	// streamFor is how long a stream may last before its client must prove again what it may read.
	streamFor = 10 * time.Minute
)

// mayRead is true if the client may read the groups that the filter selects; otherwise it has answered. Through a
// port-forward every client may: the API server has checked the right to forward to the operator's pod.
func (s *Server) mayRead(w http.ResponseWriter, r *http.Request, f filter) bool {
	if s.options.Authorize == nil || fromItself(r.RemoteAddr) {
		return true
	}
	err := wire.ErrUnauthorized
	if token, ok := bearer(r.Header); ok {
		ctx, cancel := context.WithTimeout(r.Context(), accessTimeout)
		defer cancel()
		err = s.options.Authorize(ctx, token, f.namespace)
	}
	code, reason, message := http.StatusServiceUnavailable, wire.ReasonInternal, "the API server does not say who asks and what they may read"
	switch {
	case err == nil:
		return true
	case errors.Is(err, wire.ErrUnauthorized):
		w.Header().Set("WWW-Authenticate", "Bearer")
		code, reason, message = http.StatusUnauthorized, wire.ReasonUnauthorized, "send a token of the cluster as Authorization: Bearer, or use a port-forward"
	case errors.Is(err, wire.ErrForbidden):
		code, reason, message = http.StatusForbidden, wire.ReasonForbidden, "this account may not get mysqlfailovergroups in all namespaces: give the parameter namespace"
		if f.namespace != "" {
			message = "this account may not get mysqlfailovergroups in namespace " + f.namespace
		}
	default:
		s.options.Log.Warn("cannot tell who may read the status", "error", err)
	}
	Refused.WithLabelValues(ListenerAuxiliary, reason).Inc()
	refuse(w, code, reason, message)
	return false
}

// hostOf is the address of a client without its port.
func hostOf(remote string) string {
	host, _, err := net.SplitHostPort(remote)
	if err != nil {
		return remote
	}
	return host
}

// fromItself is true for a connection from the same pod, such as that of a port-forward.
func fromItself(remote string) bool {
	at, err := netip.ParseAddrPort(remote)
	return err == nil && door.OwnPod(at.Addr())
}
