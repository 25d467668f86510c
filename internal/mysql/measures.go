// SPDX-License-Identifier: Apache-2.0

package mysql

import (
	"context"
	"fmt"
	"strconv"
	"strings"
)

// Names under which Measures gives what is no status variable: the largest number of connections, and the bytes that were written to
// binary logs since mysqld began. Without the instrument of performance_schema the latter is missing.
const (
	MeasureMaxConnections = "mfg_max_connections"
	MeasureBinlogWritten  = "mfg_binlog_written"
)

// measuresQuery gives names and values, all of them from memory. The server adds up the counters of all its sessions for it, as for
// SHOW GLOBAL STATUS.
const measuresQuery = `SELECT VARIABLE_NAME, VARIABLE_VALUE FROM performance_schema.global_status WHERE VARIABLE_NAME IN (?)
 UNION ALL SELECT EVENT_NAME, COUNT_STAR FROM performance_schema.events_statements_summary_global_by_event_name WHERE EVENT_NAME IN (?)
 UNION ALL SELECT '` + MeasureMaxConnections + `', @@GLOBAL.max_connections
 UNION ALL SELECT '` + MeasureBinlogWritten + `', SUM_NUMBER_OF_BYTES_WRITE FROM performance_schema.file_summary_by_event_name
   WHERE EVENT_NAME = 'wait/io/file/sql/binlog'`

// Measures reads status variables, and how often statements were carried out (statement/sql/select), by name, and the two above. What
// the server lacks, or what is no number, is missing. Variables Com_* are missing for good: performance_schema leaves them out.
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
	// The error of closing says nothing that reading has not said.
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
