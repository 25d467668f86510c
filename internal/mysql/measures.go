// SPDX-License-Identifier: Apache-2.0

package mysql

import (
	"context"
	"fmt"
	"strconv"
	"strings"
)

// Names under which Measures returns values that are not status variables: the largest number of connections, the rows that the largest
// open transaction has changed, and the bytes written to binary logs since mysqld started. Without the instrument of performance_schema the
// last is missing.
const (
	MeasureOpenChange     = "mfg_open_change"
	MeasureMaxConnections = "mfg_max_connections"
	MeasureBinlogWritten  = "mfg_binlog_written"
)

// measuresQuery returns names and values, all of them from memory. For it the server adds up the counters of all its sessions, as it
// does for SHOW GLOBAL STATUS.
const measuresQuery = `SELECT VARIABLE_NAME, VARIABLE_VALUE FROM performance_schema.global_status WHERE VARIABLE_NAME IN (?)
 UNION ALL SELECT EVENT_NAME, COUNT_STAR FROM performance_schema.events_statements_summary_global_by_event_name WHERE EVENT_NAME IN (?)
 UNION ALL SELECT '` + MeasureMaxConnections + `', @@GLOBAL.max_connections
 UNION ALL SELECT '` + MeasureOpenChange + `', COALESCE(MAX(trx_rows_modified), 0) FROM information_schema.INNODB_TRX WHERE trx_mysql_thread_id <> 0
 UNION ALL SELECT '` + MeasureBinlogWritten + `', SUM_NUMBER_OF_BYTES_WRITE FROM performance_schema.file_summary_by_event_name
   WHERE EVENT_NAME = 'wait/io/file/sql/binlog'`

// Measures reads status variables and counts of executed statements (statement/sql/select), by name, and the three above. A value that
// the server lacks, or that is not a number, is missing. Variables Com_* are always missing: performance_schema leaves them out.
func (db *DB) Measures(ctx context.Context, names []string) (map[string]float64, error) {
	ctx, cancel := db.short(ctx)
	defer cancel()
	quoted := make([]string, len(names))
	for i, name := range names {
		quoted[i] = quote(name)
	}
	rows, err := db.pool.QueryContext(ctx, strings.ReplaceAll(measuresQuery, "?", strings.Join(quoted, ", ")))
	if err != nil {
		return nil, fmt.Errorf("measure %s: %w", db.target, err)
	}
	// An error of Close would say nothing that reading has not said.
	defer func() { _ = rows.Close() }()
	found := make(map[string]float64, len(names)+2)
	for rows.Next() {
		var name, value string
		if err := rows.Scan(&name, &value); err != nil {
			return nil, fmt.Errorf("measure %s: %w", db.target, err)
		}
		if number, err := strconv.ParseFloat(value, 64); err == nil {
			found[name] = number
		}
	}
	if err := rows.Err(); err != nil {
		return nil, fmt.Errorf("measure %s: %w", db.target, err)
	}
	return found, nil
}
