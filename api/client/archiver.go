// SPDX-License-Identifier: Apache-2.0

package client

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"

	"github.com/mysql-mfg/mfg/api/wire"
)

// ArchiverStatus asks the sidecar at host:port what the archiver of its pod wrote last.
func (c *Client) ArchiverStatus(ctx context.Context, addr string) (wire.ArchiverStatus, error) {
	var raw json.RawMessage
	target := "http://" + addr + wire.PathArchiverStatus
	if err := c.do(ctx, request{method: http.MethodGet, target: target, limit: wire.MaxArchiverStatusBytes}, &raw); err != nil {
		return wire.ArchiverStatus{}, err
	}
	status, err := wire.ParseArchiverStatus(raw)
	if err != nil {
		return wire.ArchiverStatus{}, fmt.Errorf("decode answer of %s: %w: %w", target, ErrUnreadable, err)
	}
	return status, nil
}
