// SPDX-License-Identifier: Apache-2.0

package server

import (
	"context"
	"errors"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/mysql-mfg/mfg/api/wire"
	"github.com/mysql-mfg/mfg/internal/door"
)

func cutoffs(_ context.Context, namespace, group string) (wire.CutoffAnswer, error) {
	switch namespace + "/" + group {
	case "shop/orders":
		return wire.CutoffAnswer{Cutoff: wire.Cutoff{Namespace: namespace, Group: group, Epoch: 3, Epochs: []wire.CutoffEpoch{}}, Signed: "x"}, nil
	case "shop/huge":
		return wire.CutoffAnswer{Signed: strings.Repeat("x", wire.MaxCutoffBytes)}, nil
	case "shop/broken":
		return wire.CutoffAnswer{}, errors.New("the Secret of shop/broken is away")
	case "shop/moved":
		return wire.CutoffAnswer{}, wire.ErrNotLeading
	}
	return wire.CutoffAnswer{}, wire.ErrUnknownGroup
}

func TestCutoffAnswers(t *testing.T) {
	follows := func() bool { return false }
	for name, tc := range map[string]struct {
		query   string
		leading func() bool
		code    int
		reason  string
	}{
		"told":              {"?namespace=shop&group=orders", nil, http.StatusOK, ""},
		"unknown":           {"?namespace=shop&group=carts", nil, http.StatusNotFound, wire.ReasonUnknownGroup},
		"no group":          {"?namespace=shop", nil, http.StatusBadRequest, wire.ReasonBadRequest},
		"no namespace":      {"?group=orders", nil, http.StatusBadRequest, wire.ReasonBadRequest},
		"twice":             {"?namespace=shop&group=orders&group=carts", nil, http.StatusBadRequest, wire.ReasonBadRequest},
		"not a name":        {"?namespace=shop&group=%3Cb%3E", nil, http.StatusBadRequest, wire.ReasonBadRequest},
		"a name too long":   {"?namespace=shop&group=" + strings.Repeat("a", 254), nil, http.StatusBadRequest, wire.ReasonBadRequest},
		"no query":          {"?namespace=%zz", nil, http.StatusBadRequest, wire.ReasonBadRequest},
		"follows":           {"?namespace=shop&group=orders", follows, http.StatusServiceUnavailable, wire.ReasonNotLeading},
		"led elsewhere":     {"?namespace=shop&group=moved", nil, http.StatusServiceUnavailable, wire.ReasonNotLeading},
		"cannot be told":    {"?namespace=shop&group=broken", nil, http.StatusServiceUnavailable, wire.ReasonInternal},
		"longer than it is": {"?namespace=shop&group=huge", nil, http.StatusInternalServerError, wire.ReasonTooLarge},
	} {
		w := get(New(Options{Authority: &authority{}, Source: NewBoard(), Cutoff: cutoffs, Leading: tc.leading}), http.MethodGet, "/pitr-cutoff"+tc.query)
		if w.Code != tc.code {
			t.Errorf("%s: status %d, want %d: %s", name, w.Code, tc.code, w.Body)
			continue
		}
		if tc.code == http.StatusOK {
			if c := decode[wire.CutoffAnswer](t, w); c.Epoch != 3 || c.Signed != "x" {
				t.Errorf("%s: %+v", name, c)
			}
			continue
		}
		if e := decode[wire.Error](t, w); e.Reason != tc.reason || strings.Contains(e.Error, "Secret") {
			t.Errorf("%s: %+v, want %s", name, e, tc.reason)
		}
	}
}

// Nobody who asks for cutoffs takes anything from those who ask who is active.
func TestCutoffsHaveASmallShare(t *testing.T) {
	l := defaultLimits()
	l.cutoff, l.cuttings = door.Limits{Connections: 8, Rate: 1, Burst: 2}, 1
	waits, asked := make(chan struct{}), make(chan struct{})
	s := newServer(Options{Authority: &authority{}, Source: NewBoard(), Cutoff: func(ctx context.Context, _, _ string) (wire.CutoffAnswer, error) {
		if until, bounded := ctx.Deadline(); !bounded || time.Until(until) > cutoffTimeout {
			t.Error("an answer may take for ever")
		}
		asked <- struct{}{}
		<-waits
		return wire.CutoffAnswer{}, nil
	}}, l)
	first := make(chan int)
	go func() { first <- get(s, http.MethodGet, "/pitr-cutoff?namespace=shop&group=orders").Code }()
	<-asked
	if w := get(s, http.MethodGet, "/pitr-cutoff?namespace=shop&group=orders"); w.Code != http.StatusServiceUnavailable {
		t.Errorf("two answers at a time: %d", w.Code)
	}
	if w := get(s, http.MethodGet, "/pitr-cutoff?namespace=shop&group=orders"); w.Code != http.StatusTooManyRequests {
		t.Errorf("the third request at once: %d", w.Code)
	}
	if w := get(s, http.MethodGet, "/active-site?namespace=shop&group=orders"); w.Code == http.StatusTooManyRequests || w.Code >= 500 && strings.Contains(w.Body.String(), wire.ReasonTooManyClients) {
		t.Errorf("who is active: %d: %s", w.Code, w.Body)
	}
	close(waits)
	if code := <-first; code != http.StatusOK {
		t.Errorf("the first: %d", code)
	}
}
