// SPDX-License-Identifier: Apache-2.0

package making

import (
	"context"
	"fmt"
	"time"

	"github.com/mysql-mfg/mfg/backup/job/mysqld"
)

// endTimeout bounds the end of our sessions on a site.
const endTimeout = 10 * time.Second

// address is that of a session, without its port.
const address = "LEFT(host, LENGTH(host) - LENGTH(SUBSTRING_INDEX(host, ':', -1)))"

// end ends every session of ours on the site but the one that does it, and with them every lock.
//
// Whatever ends a backup calls it, and two may do so at once. They go one after the other: two statements on one connection break it, and
// then the locks would stay. The second does not rest on what the first did: mysqldump may have come in between.
func (s *source) end() error {
	ctx, cancel := context.WithTimeout(context.Background(), endTimeout)
	defer cancel()
	select {
	case s.ending <- struct{}{}:
		defer func() { <-s.ending }()
	case <-ctx.Done():
		return fmt.Errorf("end our sessions on the site: %w", ctx.Err())
	}
	// Others of the account, on another address, are another backup's.
	ids, err := mysqld.Texts(ctx, s.killer, "SELECT id FROM performance_schema.processlist WHERE user = SUBSTRING_INDEX(USER(), '@', 1) AND id <> CONNECTION_ID() AND "+
		address+" = (SELECT "+address+" FROM performance_schema.processlist WHERE id = CONNECTION_ID())")
	if err != nil {
		return fmt.Errorf("list our sessions on the site: %w", err)
	}
	for _, id := range ids {
		if err := mysqld.Run(ctx, s.killer, "KILL "+id); err != nil && mysqld.Number(err) != numberNoSuchThread {
			return fmt.Errorf("end our session on the site: %w", err)
		}
	}
	return nil
}
