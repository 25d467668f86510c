// SPDX-License-Identifier: Apache-2.0

package server

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"time"

	"github.com/mysql-mfg/mfg/api/wire"
)

// cutoffTimeout bounds one answer to GET /pitr-cutoff: it asks MySQL nothing, and the API server at most once in a while.
const cutoffTimeout = 3 * time.Second

// cutoff answers GET /pitr-cutoff. It needs no token: the archiver's pod has none. The statuses that the group's sidecars serve tell the
// same, the answer is signed, and it takes nothing that a failover needs: cutoffs have their own share of requests and of answers at a time.
func (s *Server) cutoff(w http.ResponseWriter, r *http.Request) {
	if !s.cutoffDoor.May(r.RemoteAddr) {
		Refused.WithLabelValues(ListenerAuxiliary, wire.ReasonTooManyRequests).Inc()
		refuse(w, http.StatusTooManyRequests, wire.ReasonTooManyRequests, "this address asks too often")
		return
	}
	namespace, group, err := parseGroup(r.URL.RawQuery)
	if err != nil {
		refuse(w, http.StatusBadRequest, wire.ReasonBadRequest, err.Error())
		return
	}
	if s.options.Cutoff == nil || !s.options.Leading() {
		refuse(w, http.StatusServiceUnavailable, wire.ReasonNotLeading, ErrNotLeading.Error())
		return
	}
	select {
	case s.cutting <- struct{}{}:
		defer func() { <-s.cutting }()
	default:
		Refused.WithLabelValues(ListenerAuxiliary, wire.ReasonTooManyClients).Inc()
		refuse(w, http.StatusServiceUnavailable, wire.ReasonTooManyClients, "too many clients ask for cutoffs")
		return
	}
	ctx, cancel := context.WithTimeout(r.Context(), cutoffTimeout)
	defer cancel()
	said, err := s.options.Cutoff(ctx, namespace, group)
	switch {
	case errors.Is(err, ErrUnknownGroup):
		refuse(w, http.StatusNotFound, wire.ReasonUnknownGroup, "no such group: "+namespace+"/"+group)
		return
	case errors.Is(err, ErrNotLeading):
		refuse(w, http.StatusServiceUnavailable, wire.ReasonNotLeading, ErrNotLeading.Error())
		return
	case err != nil:
		s.options.Log.Warn("answer cutoff", "namespace", namespace, "group", group, "error", err)
		refuse(w, http.StatusServiceUnavailable, wire.ReasonInternal, "the operator cannot tell now what may go from the archive: ask again")
		return
	}
	body, err := json.Marshal(said)
	if err != nil || len(body) > wire.MaxCutoffBytes {
		s.options.Log.Error("encode cutoff", "namespace", namespace, "group", group, "bytes", len(body), "error", err)
		refuse(w, http.StatusInternalServerError, wire.ReasonTooLarge, "the answer is longer than it may be: the sets of transactions of the epochs are too large")
		return
	}
	answer(w, http.StatusOK, json.RawMessage(body))
}

// parseGroup reads the two parameters, and requires both.
func parseGroup(rawQuery string) (namespace, group string, err error) {
	values, err := url.ParseQuery(rawQuery)
	if err != nil {
		return "", "", errors.New("the query cannot be read")
	}
	if namespace, err = single(values, wire.ParamNamespace, maxNamespace, nameByte); err != nil {
		return "", "", err
	}
	if group, err = single(values, wire.ParamGroup, maxName, nameByte); err != nil {
		return "", "", err
	}
	for _, p := range []struct{ name, value string }{{wire.ParamNamespace, namespace}, {wire.ParamGroup, group}} {
		if p.value == "" {
			return "", "", fmt.Errorf("parameter %s is missing: this answers about one group, give namespace and group", p.name)
		}
	}
	return namespace, group, nil
}
