// SPDX-License-Identifier: Apache-2.0

package measure

import (
	"slices"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/mysql-mfg/mfg/internal/mysql"
)

// series is a metric made from a number of mysqld. Its labels are fixed in the source: no name chosen at run time becomes a label.
type series struct {
	kind prometheus.ValueType
	desc *prometheus.Desc
	// label is the value of the series' one label; empty for series without.
	label string
	// from is the name of the number, scale its factor; unit, if set, is the name of a number that is another factor.
	from, unit string
	scale      float64
}

// plain declares a series without a label.
func plain(kind prometheus.ValueType, name, from, help string) series {
	return series{kind: kind, desc: prometheus.NewDesc(name, help, nil, nil), from: from, scale: 1}
}

// times returns the series with another scale.
func (s series) times(scale float64) series {
	s.scale = scale
	return s
}

// of returns the series in a unit that is itself a number of mysqld.
func (s series) of(unit string) series {
	s.unit = unit
	return s
}

// value is the value of the series, if all its numbers are known.
func (s series) value(of map[string]float64) (float64, bool) {
	value, known := of[s.from]
	if known && s.unit != "" {
		var unit float64
		unit, known = of[s.unit]
		value *= unit
	}
	return value * s.scale, known
}

// each declares a counter with one label, with one value of the label for each number.
func each(name, label, help string, from ...[2]string) (all []series) {
	desc := prometheus.NewDesc(name, help, []string{label}, nil)
	for _, f := range from {
		all = append(all, series{kind: counter, desc: desc, label: f[0], from: f[1], scale: 1})
	}
	return all
}

const (
	gauge   = prometheus.GaugeValue
	counter = prometheus.CounterValue
)

// serverSeries are the series made from mysqld's own numbers.
var serverSeries = join([]series{
	plain(gauge, "sidecar_mysql_uptime_seconds", "Uptime", "How long this mysqld has run."),
	plain(gauge, "sidecar_mysql_connections", "Threads_connected", "Connections of clients now."),
	plain(gauge, "sidecar_mysql_max_connections", mysql.MeasureMaxConnections, "How many connections mysqld takes: max_connections."),
	plain(gauge, "sidecar_mysql_threads_running", "Threads_running", "Connections that are carrying out a statement now."),
	plain(counter, "sidecar_mysql_connection_attempts_total", "Connections", "Connections that were tried, with success or without."),
	plain(counter, "sidecar_mysql_connections_refused_total", "Connection_errors_max_connections", "Connections that were refused because all were taken."),
	plain(counter, "sidecar_mysql_connects_aborted_total", "Aborted_connects", "Connections that failed: a wrong password, no TLS, a client that said nothing."),
	plain(counter, "sidecar_mysql_clients_aborted_total", "Aborted_clients", "Connections that ended without a goodbye of the client."),
	plain(counter, "sidecar_mysql_questions_total", "Questions", "Statements that clients sent."),
	plain(counter, "sidecar_mysql_slow_queries_total", "Slow_queries", "Statements that took longer than long_query_time."),
	plain(counter, "sidecar_mysql_tmp_disk_tables_total", "Created_tmp_disk_tables", "Temporary tables that were made on disk."),
	plain(counter, "sidecar_mysql_binlog_written_bytes_total", mysql.MeasureBinlogWritten, "Bytes that were written to binary logs."),
	plain(gauge, "sidecar_mysql_innodb_buffer_pool_size_bytes", "Innodb_buffer_pool_pages_total", "Size of the buffer pool.").of(pageSize),
	plain(gauge, "sidecar_mysql_innodb_buffer_pool_free_bytes", "Innodb_buffer_pool_pages_free", "What of the buffer pool holds nothing.").of(pageSize),
	plain(gauge, "sidecar_mysql_innodb_buffer_pool_dirty_bytes", "Innodb_buffer_pool_bytes_dirty", "What of the buffer pool is not on disk yet."),
	plain(counter, "sidecar_mysql_innodb_buffer_pool_read_requests_total", "Innodb_buffer_pool_read_requests", "Pages that were asked for."),
	plain(counter, "sidecar_mysql_innodb_buffer_pool_reads_total", "Innodb_buffer_pool_reads", "Pages that had to be read from disk before they could be given."),
	plain(counter, "sidecar_mysql_innodb_buffer_pool_wait_free_total", "Innodb_buffer_pool_wait_free", "Times that a page was waited for because none was free."),
	plain(counter, "sidecar_mysql_innodb_log_waits_total", "Innodb_log_waits", "Times that the log buffer was too small and had to be flushed first."),
	plain(counter, "sidecar_mysql_innodb_log_written_bytes_total", "Innodb_os_log_written", "Bytes that were written to the redo log."),
	plain(gauge, "sidecar_mysql_innodb_open_change_rows", mysql.MeasureOpenChange, "Rows that the largest open transaction has changed. To end it takes about as long as to change them."),
	plain(counter, "sidecar_mysql_innodb_row_lock_waits_total", "Innodb_row_lock_waits", "Times that a row lock was waited for."),
	plain(counter, "sidecar_mysql_innodb_row_lock_wait_seconds_total", "Innodb_row_lock_time", "Time that was waited for row locks.").times(1e-3),
	plain(gauge, "sidecar_mysql_innodb_row_locks_waited_for", "Innodb_row_lock_current_waits", "Row locks that are waited for now."),
},
	each("sidecar_mysql_statements_total", "statement", "Statements that were carried out, by kind. What commits by autocommit is no commit here.",
		[2]string{"select", "statement/sql/select"}, [2]string{"insert", "statement/sql/insert"}, [2]string{"update", "statement/sql/update"}, [2]string{"delete", "statement/sql/delete"},
		[2]string{"commit", "statement/sql/commit"}, [2]string{"rollback", "statement/sql/rollback"}),
	each("sidecar_mysql_innodb_rows_total", "operation", "Rows that were read and changed.",
		[2]string{"read", "Innodb_rows_read"}, [2]string{"inserted", "Innodb_rows_inserted"},
		[2]string{"updated", "Innodb_rows_updated"}, [2]string{"deleted", "Innodb_rows_deleted"}),
	each("sidecar_mysql_innodb_data_bytes_total", "operation", "Bytes that InnoDB read from and wrote to disk.",
		[2]string{"read", "Innodb_data_read"}, [2]string{"written", "Innodb_data_written"}),
)

// pageSize is the status variable with the size of a page in bytes.
const pageSize = "Innodb_page_size"

// These series are not made from mysqld's own numbers.
var (
	measured     = prometheus.NewDesc("sidecar_mysql_measured", "1 if mysqld was measured within the last minute, else 0: then the other series of sidecar_mysql_ are absent, but for sidecar_mysql_up.", nil, nil)
	duration     = prometheus.NewDesc("sidecar_mysql_measure_seconds", "How long mysqld was measured for last.", nil, nil)
	transactions = prometheus.NewDesc("sidecar_mysql_transactions_total", "Transactions in gtid_executed: all that this site has committed or applied.", nil, nil)
	receiver     = prometheus.NewDesc("sidecar_mysql_replication_receiver_running", "1 if the receiver is connected to the source, else 0. Absent without replication.", nil, nil)
	applier      = prometheus.NewDesc("sidecar_mysql_replication_applier_running", "1 if the applier runs, else 0. Absent without replication.", nil, nil)
	lag          = prometheus.NewDesc("sidecar_mysql_replication_lag_seconds", "How old the oldest transaction is that is known and not applied. Absent while that cannot be known.", nil, nil)
	pending      = prometheus.NewDesc("sidecar_mysql_replication_pending_transactions", "Transactions that were received and are not applied. Absent without replication.", nil, nil)
	size         = prometheus.NewDesc("sidecar_volume_size_bytes", "Size of the data volume.", nil, nil)
	available    = prometheus.NewDesc("sidecar_volume_available_bytes", "Room on the data volume that mysqld can still take.", nil, nil)
	files        = prometheus.NewDesc("sidecar_volume_inodes", "How many files the data volume can hold. Absent where there is no limit.", nil, nil)
	filesFree    = prometheus.NewDesc("sidecar_volume_inodes_free", "How many more files the data volume can hold. Absent where there is no limit.", nil, nil)
	logs         = prometheus.NewDesc("sidecar_binlog_files", "Binary logs on the data volume.", nil, nil)
	logBytes     = prometheus.NewDesc("sidecar_binlog_bytes", "What the binary logs take of the data volume.", nil, nil)
)

func join(groups ...[]series) (all []series) {
	for _, g := range groups {
		all = append(all, g...)
	}
	return all
}

// names are the names of the status variables that the agent reads.
func names() []string {
	all := []string{pageSize}
	for _, s := range serverSeries {
		if !slices.Contains([]string{mysql.MeasureMaxConnections, mysql.MeasureOpenChange, mysql.MeasureBinlogWritten}, s.from) {
			all = append(all, s.from)
		}
	}
	return all
}

// Describe implements prometheus.Collector.
func (a *Agent) Describe(into chan<- *prometheus.Desc) {
	told := map[*prometheus.Desc]bool{}
	for _, s := range serverSeries {
		if !told[s.desc] {
			told[s.desc] = true
			into <- s.desc
		}
	}
	for _, d := range []*prometheus.Desc{measured, duration, transactions, receiver, applier, lag, pending, size, available, files, filesFree, logs, logBytes} {
		into <- d
	}
}

// Collect implements prometheus.Collector. It waits for nothing.
func (a *Agent) Collect(into chan<- prometheus.Metric) {
	s, serverCounts, v, volumeCounts := a.last()
	tell := func(d *prometheus.Desc, value float64) { into <- prometheus.MustNewConstMetric(d, gauge, value) }
	tell(measured, truth(serverCounts))
	if serverCounts {
		s.collect(into, tell)
	}
	if !volumeCounts {
		return
	}
	tell(size, v.use.Size)
	tell(available, v.use.Available)
	if v.use.Files > 0 {
		tell(files, v.use.Files)
		tell(filesFree, v.use.FilesFree)
	}
	if v.use.Binlogs >= 0 {
		tell(logs, v.use.Binlogs)
		tell(logBytes, v.use.BinlogBytes)
	}
}

func (s server) collect(into chan<- prometheus.Metric, tell func(*prometheus.Desc, float64)) {
	for _, one := range serverSeries {
		value, known := one.value(s.values)
		if !known {
			continue
		}
		var labels []string
		if one.label != "" {
			labels = []string{one.label}
		}
		into <- prometheus.MustNewConstMetric(one.desc, one.kind, value, labels...)
	}
	tell(duration, s.taken.Seconds())
	into <- prometheus.MustNewConstMetric(transactions, counter, float64(s.status.Executed.Count()))
	replica := s.status.Replica
	if replica == nil {
		return
	}
	tell(receiver, truth(replica.IORunning))
	tell(applier, truth(replica.SQLRunning))
	tell(pending, float64(s.status.Retrieved.Subtract(s.status.Executed).Count()))
	if replica.LagSeconds != nil {
		tell(lag, *replica.LagSeconds)
	}
}

func truth(b bool) float64 {
	if b {
		return 1
	}
	return 0
}
