// SPDX-License-Identifier: Apache-2.0

package archiver

import (
	"context"
	"encoding/json"
	"log/slog"
	"path/filepath"
	"time"

	"github.com/mysql-mfg/mfg/api/wire"
)

// Misconfigured says until the signal to end that the configuration cannot be used, and archives nothing. It does not end before: Kubernetes would
// start the container again and again, and the pod of a MySQL that works would not be ready.
func Misconfigured(ctx context.Context, raw []byte, why error, log *slog.Logger) int {
	var c wire.ArchiverConfig
	_ = json.Unmarshal(raw, &c) // for what can be read of it: where the status is to be, above all
	if !filepath.IsAbs(c.StatusFile) {
		<-ctx.Done() // nobody can be told but by the log
		return ExitEnded
	}
	p := &Program{config: Config{ArchiverConfig: c}, log: log, now: time.Now, board: &board{}}
	p.board.set(func(s *wire.ArchiverStatus) { s.Site, s.StartedAt = c.Site, p.now().UTC() })
	p.board.outcome(wire.ArchiverFailing, failf(BadConfig, "the configuration of the archiver cannot be used: %w", why), p.now())
	p.tellAlways(ctx)
	return ExitEnded
}
