// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/url"
	"time"

	"github.com/mysql-mfg/mfg/api/wire"
)

const (
	// leaveWait is how long the sidecar may hold one question, leavePatience how much longer its answer may take. The
	// kubelet runs no liveness probes while a pod ends, so only this shows that the sidecar hangs: mysqld must end before
	// its lease runs out (I4).
	leaveWait     = 500 * time.Millisecond
	leavePatience = 1500 * time.Millisecond
)

// leave is the preStop hook of the MySQL container: it waits until the role has moved away, at most for the leave timeout.
// If the sidecar is dead or hangs, the wait ends; the error is only logged, because the kubelet ends mysqld either way.
func leave(ctx context.Context, s settings, log *slog.Logger) error {
	_, port, err := net.SplitHostPort(s.listen)
	if err != nil {
		return fmt.Errorf("parse address of the sidecar: %w", err)
	}
	// The containers of a pod share their network.
	ask := url.URL{
		Scheme: "http", Host: net.JoinHostPort("127.0.0.1", port), Path: wire.PathLeave,
		RawQuery: url.Values{wire.ParamWait: {leaveWait.String()}}.Encode(),
	}
	ctx, cancel := context.WithTimeout(ctx, s.leaveTimeout)
	defer cancel()
	why := ""
	for {
		answer, err := askLeave(ctx, ask.String())
		switch {
		case ctx.Err() != nil:
			log.Warn("mysqld is ended although this site is still needed", "waited", s.leaveTimeout.String(), "why", why)
			return nil
		case err != nil:
			return fmt.Errorf("ask sidecar: %w", err)
		case answer.Left:
			return nil
		}
		why = answer.Message
	}
}

func askLeave(ctx context.Context, address string) (wire.Leave, error) {
	var answer wire.Leave
	ctx, cancel := context.WithTimeout(ctx, leaveWait+leavePatience)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, address, http.NoBody)
	if err != nil {
		return answer, err
	}
	// Not the default transport: the environment could make that use a proxy.
	transport := &http.Transport{DisableKeepAlives: true}
	resp, err := (&http.Client{Transport: transport}).Do(req)
	if err != nil {
		return answer, err
	}
	defer func() { _ = resp.Body.Close() }()
	if resp.StatusCode != http.StatusOK {
		return answer, fmt.Errorf("it answers %s", resp.Status)
	}
	if err := json.NewDecoder(io.LimitReader(resp.Body, wire.MaxBodyBytes)).Decode(&answer); err != nil {
		return answer, fmt.Errorf("decode answer: %w", err)
	}
	return answer, nil
}
