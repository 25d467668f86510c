// SPDX-License-Identifier: Apache-2.0

package making

import (
	"context"
	"database/sql"
	"errors"
	"fmt"

	"github.com/mysql-mfg/mfg/backup/job/terms"
	"github.com/mysql-mfg/mfg/internal/mysql"
)

// XA PREPARE has a GTID of its own, so the GTID set of a dump holds it. Its rows are in no snapshot before XA COMMIT, which has another GTID.
// A dump that was taken between the two would lack the rows for good: a replay of the archive on top skips the XA PREPARE, and the XA COMMIT
// finds nothing. So there is no dump of such a moment. A clone needs none of this: InnoDB keeps what is prepared, and CLONE copies it.

// rightXA is what XA RECOVER needs. A site gives it to the account when it starts with this version.
const rightXA = "XA_RECOVER_ADMIN"

// warnUnseenXA is for a site whose account does not have it yet.
const warnUnseenXA = "could not check for prepared XA transactions: the account gets " + rightXA + " at the next restart of the site"

// beginXA looks before the snapshot. Together with checkXA, which looks after it, none is missed that was prepared at the snapshot: either it
// still is at the second look, or an XA COMMIT or XA ROLLBACK has ended it. That statement was counted when it began. If it began after the count
// here, the counts differ. If it began before, and ended after the snapshot, then the transaction was prepared at the look here, which comes
// after the count. mysqldump fixes its snapshot under the global read lock, which no XA PREPARE is half done under.
func (s *source) beginXA(ctx context.Context) error {
	if !s.seesXA {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, askTimeout)
	defer cancel()
	var err error
	if s.endedXA, err = endedXA(ctx, s.held); err != nil {
		return s.explain(err)
	}
	return s.nonePrepared(ctx)
}

// checkXA looks after the snapshot, in the other order.
func (s *source) checkXA(ctx context.Context) error {
	if !s.seesXA {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, askTimeout)
	defer cancel()
	if err := s.nonePrepared(ctx); err != nil {
		return err
	}
	ended, err := endedXA(ctx, s.held)
	if err != nil {
		return s.explain(err)
	}
	if ended != s.endedXA {
		return terms.Fail(terms.SourceBusy, errors.New("an XA transaction was committed or rolled back while the dump started, "+
			"so the dump may lack its rows"))
	}
	return nil
}

// nonePrepared fails if an XA transaction is prepared.
func (s *source) nonePrepared(ctx context.Context) error {
	n, err := mysql.CountPreparedXA(ctx, s.held)
	if err != nil {
		return s.explain(fmt.Errorf("look for prepared XA transactions: %w", err))
	}
	if n > 0 {
		return terms.Fail(terms.SourceBusy, fmt.Errorf("an XA transaction is prepared on the site (%d), and a dump lacks its rows: "+
			"end it on the active site with XA COMMIT or XA ROLLBACK", n))
	}
	return nil
}

// endedXA counts the statements that have ended XA transactions, or have begun to, since the server started, the applier's too.
func endedXA(ctx context.Context, conn *sql.Conn) (sum int64, err error) {
	// performance_schema.global_status does not have them.
	rows, err := conn.QueryContext(ctx, "SHOW GLOBAL STATUS WHERE Variable_name IN ('Com_xa_commit', 'Com_xa_rollback')")
	if err != nil {
		return 0, fmt.Errorf("count the ends of XA transactions: %w", err)
	}
	defer func() { err = errors.Join(err, rows.Close()) }()
	counters := 0
	for rows.Next() {
		var name string
		var n int64
		if err := rows.Scan(&name, &n); err != nil {
			return 0, fmt.Errorf("count the ends of XA transactions: %w", err)
		}
		sum += n
		counters++
	}
	if err := rows.Err(); err != nil || counters != 2 {
		return 0, errors.Join(errors.New("the site does not count the ends of XA transactions"), err)
	}
	return sum, nil
}
