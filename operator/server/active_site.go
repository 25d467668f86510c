// SPDX-License-Identifier: Apache-2.0

package server

import (
	"errors"
	"fmt"
	"net/http"
	"net/url"

	"github.com/mysql-mfg/mfg/api/wire"
)

// Bounds of the parameters: what Kubernetes allows for names, and room for any nonce a sidecar makes.
const (
	maxNamespace = 63
	maxName      = 253
	maxNonce     = 128
)

// activeSite answers GET /active-site. This package answers nothing from its own memory: the Authority must know of
// every answer, because each may keep a site writable for one more lease.
func (s *Server) activeSite(w http.ResponseWriter, r *http.Request) {
	q, err := parseAsk(r.URL.RawQuery)
	if err != nil {
		refuse(w, http.StatusBadRequest, wire.ReasonBadRequest, err.Error())
		return
	}
	signed, err := s.options.Authority.Answer(wire.Ask{Namespace: q.namespace, Group: q.group, Site: q.site, Pod: q.pod, Nonce: q.nonce})
	switch {
	case err == nil:
		answer(w, http.StatusOK, wire.ActiveSite{Statement: signed})
	case errors.Is(err, ErrUnknownGroup):
		refuse(w, http.StatusNotFound, wire.ReasonUnknownGroup, "no such group: "+q.namespace+"/"+q.group)
	case errors.Is(err, ErrNotLeading):
		refuse(w, http.StatusServiceUnavailable, wire.ReasonNotLeading, ErrNotLeading.Error())
	case errors.Is(err, ErrNoStatement):
		refuse(w, http.StatusServiceUnavailable, wire.ReasonNoStatement, ErrNoStatement.Error())
	default:
		s.options.Log.Error("answer active site", "namespace", q.namespace, "group", q.group, "site", q.site, "error", err)
		refuse(w, http.StatusInternalServerError, wire.ReasonInternal, "the operator could not sign a statement")
	}
}

// ask says who asks, and for which group's active site.
type ask struct{ namespace, group, site, pod, nonce string }

func parseAsk(rawQuery string) (ask, error) {
	values, err := url.ParseQuery(rawQuery)
	if err != nil {
		return ask{}, errors.New("the query cannot be read")
	}
	var q ask
	for _, p := range []struct {
		param    string
		into     *string
		longest  int
		required bool
		allowed  func(byte) bool
	}{
		{wire.ParamNamespace, &q.namespace, maxNamespace, true, nameByte},
		{wire.ParamGroup, &q.group, maxName, true, nameByte},
		{wire.ParamSite, &q.site, maxName, false, nameByte},
		{wire.ParamPod, &q.pod, maxNonce, false, visibleByte},
		{wire.ParamNonce, &q.nonce, maxNonce, false, visibleByte},
	} {
		v, err := single(values, p.param, p.longest, p.allowed)
		if err != nil {
			return ask{}, err
		}
		if v == "" && p.required {
			return ask{}, fmt.Errorf("parameter %s is missing", p.param)
		}
		*p.into = v
	}
	return q, nil
}

// single returns a parameter that may appear only once; an answer must not depend on which of two a reader takes.
func single(values url.Values, param string, longest int, allowed func(byte) bool) (string, error) {
	all := values[param]
	if len(all) == 0 {
		return "", nil
	}
	if len(all) > 1 {
		return "", fmt.Errorf("parameter %s is given more than once", param)
	}
	v := all[0]
	if len(v) > longest {
		return "", fmt.Errorf("parameter %s is longer than %d bytes", param, longest)
	}
	for i := range len(v) {
		if !allowed(v[i]) {
			return "", fmt.Errorf("parameter %s holds a character that is not allowed", param)
		}
	}
	return v, nil
}

// nameByte is true for the bytes that a Kubernetes name may hold.
func nameByte(b byte) bool {
	return b >= 'a' && b <= 'z' || b >= '0' && b <= '9' || b == '-' || b == '.'
}

// visibleByte is true for printable ASCII without the space.
func visibleByte(b byte) bool { return b > ' ' && b < 0x7f }
