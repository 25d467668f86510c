// SPDX-License-Identifier: Apache-2.0

package client

import (
	"context"
	"crypto/ed25519"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"

	"github.com/mysql-mfg/mfg/api/wire"
)

// ArchiverTurn asks the sidecar at a base URL whether its site is the one that archives.
func (c *Client) ArchiverTurn(ctx context.Context, baseURL string) (wire.ArchiverTurn, error) {
	var turn wire.ArchiverTurn
	err := c.do(ctx, request{method: http.MethodGet, target: join(baseURL, wire.PathArchiverTurn), limit: wire.MaxBodyBytes}, &turn)
	return turn, err
}

// ArchiverStatus asks the sidecar at host:port for what the archiver of its pod says. It is checked here as the sidecar checked it.
func (c *Client) ArchiverStatus(ctx context.Context, addr string) (wire.ArchiverStatus, error) {
	var raw json.RawMessage
	err := c.do(ctx, request{method: http.MethodGet, target: "http://" + addr + wire.PathArchiverStatus, limit: wire.MaxArchiverStatusBytes}, &raw)
	if err != nil {
		return wire.ArchiverStatus{}, err
	}
	s, err := wire.ParseArchiverStatus(raw)
	if err != nil {
		return s, fmt.Errorf("status of the archiver at %s: %w: %w", addr, ErrUnreadable, err)
	}
	return s, nil
}

// Cutoff asks an operator what may go from the archive of a group, and believes the group's authority alone: anchor is the key that its
// signature has to lead back to.
func (c *Client) Cutoff(ctx context.Context, baseURL string, anchor ed25519.PublicKey, namespace, group string) (wire.Cutoff, error) {
	query := url.Values{wire.ParamNamespace: {namespace}, wire.ParamGroup: {group}}
	var raw json.RawMessage
	err := c.do(ctx, request{method: http.MethodGet, target: join(baseURL, wire.PathPITRCutoff) + "?" + query.Encode(), limit: wire.MaxCutoffBytes}, &raw)
	if err != nil {
		return wire.Cutoff{}, err
	}
	return wire.OpenCutoff(anchor, namespace, group, raw)
}
