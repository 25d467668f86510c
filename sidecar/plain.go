// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"time"

	"github.com/mysql-mfg/mfg/api/wire"
)

// longestGap is the longest time between two looks that counts as quiet: in a longer one, clients may have come and gone unseen.
const longestGap = 30 * time.Second

// plainClients remembers since when no look has seen a client without TLS.
type plainClients struct {
	// quiet is since when none was seen, last is when the last look succeeded; both are zero before the first one.
	quiet, last time.Time
}

// look counts the clients without TLS; nil if the server does not answer.
func (p *plainClients) look(ctx context.Context, server certificateServer, now time.Time) *wire.PlainReport {
	n, err := server.PlainClients(ctx)
	if err != nil {
		return nil // an unknown count is not quiet; the next look continues, or begins again after too long a gap
	}
	if n > 0 || p.last.IsZero() || now.Sub(p.last) > longestGap || now.Before(p.last) {
		p.quiet = now
	}
	p.last = now
	return &wire.PlainReport{Connections: n, QuietMillis: now.Sub(p.quiet).Milliseconds()}
}
