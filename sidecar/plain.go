// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"time"

	"github.com/mysql-mfg/mfg/api/wire"
)

// longestGap is how long ago the last look may be for the quiet between two looks to count: nobody has seen what came and went in a longer
// one.
const longestGap = 30 * time.Second

// plainClients remembers since when no client without TLS was seen.
type plainClients struct {
	// quiet is since when none was seen, last is the last look that counted; both are zero while that is not known.
	quiet, last time.Time
}

// look counts the clients without TLS; nil if the server does not tell.
func (p *plainClients) look(ctx context.Context, server certificateServer, now time.Time) *wire.PlainReport {
	n, err := server.PlainClients(ctx)
	if err != nil {
		return nil // what is not known is not quiet; the next look says more, or begins anew
	}
	if n > 0 || p.last.IsZero() || now.Sub(p.last) > longestGap || now.Before(p.last) {
		p.quiet = now
	}
	p.last = now
	return &wire.PlainReport{Connections: n, QuietMillis: now.Sub(p.quiet).Milliseconds()}
}
