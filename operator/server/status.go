// SPDX-License-Identifier: Apache-2.0

package server

import (
	"errors"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/mysql-mfg/mfg/api/wire"
)

// status answers GET /status.
func (s *Server) status(w http.ResponseWriter, r *http.Request) {
	f, ok := s.admit(w, r)
	if !ok {
		return
	}
	select {
	case s.answering <- struct{}{}:
		defer func() { <-s.answering }()
	default:
		// Each answer holds megabytes until its client has read them.
		Refused.WithLabelValues(ListenerAuxiliary, wire.ReasonTooManyClients).Inc()
		refuse(w, http.StatusServiceUnavailable, wire.ReasonTooManyClients, "too many clients ask for the status")
		return
	}
	if f.explain {
		s.explained(w, f)
		return
	}
	answer(w, http.StatusOK, wire.StatusList{
		Operator: s.options.Operator,
		IssuedAt: time.Now().UTC(),
		Groups:   f.groups(s.options.Source.Snapshot()),
	})
}

// explained answers GET /status?explain=true about the one group that the request names.
func (s *Server) explained(w http.ResponseWriter, f filter) {
	out := wire.ExplainedList{Operator: s.options.Operator, IssuedAt: time.Now().UTC(), Groups: []wire.ExplainedGroup{}}
	for _, g := range f.groups(s.options.Source.Snapshot()) {
		group := wire.ExplainedGroup{GroupStatus: g}
		if s.options.Explain != nil {
			if e, known := s.options.Explain(g.Namespace, g.Group); known {
				group.Explanation = &e
			}
		}
		out.Groups = append(out.Groups, group)
	}
	answer(w, http.StatusOK, out)
}

// admit reads the filter of a status request and refuses it while this process does not lead: then its board is empty
// or stale, and "no groups" would be a lie.
func (s *Server) admit(w http.ResponseWriter, r *http.Request) (filter, bool) {
	if !s.statusDoor.May(r.RemoteAddr) {
		Refused.WithLabelValues(ListenerAuxiliary, wire.ReasonTooManyRequests).Inc()
		refuse(w, http.StatusTooManyRequests, wire.ReasonTooManyRequests, "this address asks too often")
		return filter{}, false
	}
	f, err := parseFilter(r.URL.RawQuery)
	if err != nil {
		refuse(w, http.StatusBadRequest, wire.ReasonBadRequest, err.Error())
		return filter{}, false
	}
	if !s.mayRead(w, r, f) {
		return filter{}, false
	}
	if !s.options.Leading() {
		refuse(w, http.StatusServiceUnavailable, wire.ReasonNotLeading, ErrNotLeading.Error())
		return filter{}, false
	}
	return f, true
}

// filter selects groups; an empty field selects all.
type filter struct {
	namespace, group string
	explain          bool
}

func parseFilter(rawQuery string) (filter, error) {
	values, err := url.ParseQuery(rawQuery)
	if err != nil {
		return filter{}, errors.New("the query cannot be read")
	}
	var f filter
	if f.namespace, err = single(values, wire.ParamNamespace, maxNamespace, nameByte); err != nil {
		return filter{}, err
	}
	if f.group, err = single(values, wire.ParamGroup, maxName, nameByte); err != nil {
		return filter{}, err
	}
	word, err := single(values, wire.ParamExplain, maxName, nameByte)
	if err != nil {
		return filter{}, err
	}
	f.explain = word == "true"
	switch {
	case word != "" && word != "true" && word != "false":
		return filter{}, errors.New("explain is true or false")
	case f.explain && (f.namespace == "" || f.group == ""):
		return filter{}, errors.New("explain takes exactly one group: give namespace and group too")
	}
	return f, nil
}

func (f filter) wants(namespace, group string) bool {
	return (f.namespace == "" || f.namespace == namespace) && (f.group == "" || f.group == group)
}

// groups never returns nil: readers get [], not null.
func (f filter) groups(all []wire.GroupStatus) []wire.GroupStatus {
	if f == (filter{}) && all != nil {
		return all
	}
	wanted := []wire.GroupStatus{}
	for _, g := range all {
		if f.wants(g.Namespace, g.Group) {
			wanted = append(wanted, g)
		}
	}
	return wanted
}

func (f filter) changes(c Changes) Changes {
	if f == (filter{}) {
		return c
	}
	return Changes{
		Groups: f.groups(c.Groups),
		Gone: slices.DeleteFunc(c.Gone, func(name string) bool {
			namespace, group, _ := strings.Cut(name, "/")
			return !f.wants(namespace, group)
		}),
	}
}

// ages keeps those of the wanted groups.
func (f filter) ages(source Source) map[string]float64 {
	all := source.Ages(time.Now())
	maps.DeleteFunc(all, func(name string, _ float64) bool {
		namespace, group, _ := strings.Cut(name, "/")
		return !f.wants(namespace, group)
	})
	return all
}
