// SPDX-License-Identifier: Apache-2.0

package render

import (
	"maps"
	"regexp"
	"slices"
	"strings"
)

// Category is a family of MySQL settings for which spec.mysqlConf has one answer. docs/reference/mysql-conf.md is written from
// these, and a test holds them against every option of mysqld 9.7.
type Category struct {
	// Name is what is refused in one phrase, or for allowed settings what they are about.
	Name string
	// Why says why the settings are passed on, or what somebody would gain by them.
	Why string
	// Settings are full names as MySQL has them, with underscores; sorted. One that ends in * is a family.
	Settings []string
}

// Passed are the settings that spec.mysqlConf may have. Everything else is refused: a new setting of MySQL stays out until
// somebody has thought about it.
//
// A setting is passed on if the worst that it does is to the group's own speed, capacity and answers. It names no file, address,
// plugin or program; it runs no statement and grants nothing; it changes neither the fence nor what is replicated or kept; and it
// takes the server away from nobody who must reach it: the operator, the sidecar and the replicas.
func Passed() []Category { return clone(passed) }

// Refused are the settings of MySQL that spec.mysqlConf may not have, besides those that the operator sets itself.
func Refused() []Category { return clone(refused) }

// OwnedSettings are those that the operator sets itself, on every site or on the encrypted ones, as names without a prefix.
func OwnedSettings() []string {
	all := maps.Clone(owned)
	maps.Copy(all, ownedEncrypted)
	return slices.Sorted(maps.Keys(all))
}

func clone(list []Category) []Category {
	out := slices.Clone(list)
	for i := range out {
		out[i].Settings = slices.Clone(out[i].Settings)
	}
	return out
}

func category(name, why, settings string) Category {
	list := strings.Fields(settings)
	slices.Sort(list)
	return Category{Name: name, Why: why, Settings: list}
}

// index finds the category of a setting by its normal name.
type index struct {
	names    map[string]*Category
	families map[string]*Category
}

func indexOf(list []Category) index {
	x := index{names: map[string]*Category{}, families: map[string]*Category{}}
	for i := range list {
		for _, setting := range list[i].Settings {
			if family, is := strings.CutSuffix(setting, "*"); is {
				x.families[normal(family)] = &list[i]
			} else {
				x.names[normal(setting)] = &list[i]
			}
		}
	}
	return x
}

// find is the category that has a setting; nil if none does.
func (x index) find(name string) *Category {
	if c := x.names[name]; c != nil {
		return c
	}
	for family, c := range x.families {
		if strings.HasPrefix(name, family) {
			return c
		}
	}
	return nil
}

var passedIndex, refusedIndex = indexOf(passed), indexOf(refused)

var passed = []Category{
	category("connections", "how many connect, and how long they may take", `
		back_log connect_timeout connection_memory_chunk_size connection_memory_limit connection_memory_status_limit
		disconnect_on_expired_password global_connection_memory_limit global_connection_memory_status_limit global_connection_memory_tracking
		host_cache_size interactive_timeout lock_wait_timeout max_connect_errors max_connections max_prepared_stmt_count max_user_connections
		max_write_lock_count net_buffer_length net_read_timeout net_retry_count net_write_timeout slow_launch_time ssl_session_cache_mode
		ssl_session_cache_timeout thread_cache_size thread_pool_* thread_stack tls_version wait_timeout`),
	category("memory and caches", "how much memory is used for what", `
		big_tables bulk_insert_buffer_size container_aware delayed_insert_limit delayed_insert_timeout delayed_queue_size
		histogram_generation_max_mem_size internal_tmp_mem_storage_engine join_buffer_size key_buffer_size key_cache_age_threshold
		key_cache_block_size key_cache_division_limit large_pages max_delayed_threads max_heap_table_size open_files_limit parser_max_mem_size
		preload_buffer_size profiling_history_size query_alloc_block_size query_prealloc_size range_alloc_block_size
		range_optimizer_max_mem_size read_buffer_size read_rnd_buffer_size schema_definition_cache select_into_buffer_size server_memory
		set_operations_buffer_size sort_buffer_size stored_program_cache stored_program_definition_cache super_large_pages
		table_definition_cache table_open_cache table_open_cache_instances table_open_cache_triggers tablespace_definition_cache
		temptable_max_mmap temptable_max_ram tmp_table_size transaction_alloc_block_size transaction_prealloc_size`),
	category("InnoDB", "how InnoDB uses memory, threads and the disk", `
		innodb_adaptive_flushing innodb_adaptive_flushing_lwm innodb_adaptive_hash_index innodb_adaptive_hash_index_parts
		innodb_adaptive_max_sleep_delay innodb_autoextend_increment innodb_autoinc_lock_mode innodb_buffer_pool_chunk_size
		innodb_buffer_pool_dump_at_shutdown innodb_buffer_pool_dump_now innodb_buffer_pool_dump_pct innodb_buffer_pool_in_core_file
		innodb_buffer_pool_instances innodb_buffer_pool_load_abort innodb_buffer_pool_load_at_startup innodb_buffer_pool_load_now
		innodb_buffer_pool_size innodb_change_buffer_max_size innodb_change_buffering innodb_cmp_per_index_enabled
		innodb_commit_concurrency innodb_compression_failure_threshold_pct innodb_compression_level innodb_compression_pad_pct_max
		innodb_concurrency_tickets innodb_ddl_buffer_size innodb_ddl_threads innodb_deadlock_detect innodb_dedicated_server
		innodb_default_row_format innodb_disable_sort_file_cache innodb_doublewrite_batch_size innodb_doublewrite_files
		innodb_doublewrite_pages innodb_extend_and_initialize innodb_fast_shutdown innodb_file_per_table innodb_fill_factor
		innodb_flush_log_at_timeout innodb_flush_method innodb_flush_neighbors innodb_flush_sync innodb_flushing_avg_loops
		innodb_fsync_threshold innodb_ft_aux_table innodb_ft_cache_size innodb_ft_enable_diag_print innodb_ft_enable_stopword
		innodb_ft_max_token_size innodb_ft_min_token_size innodb_ft_num_word_optimize innodb_ft_result_cache_limit
		innodb_ft_server_stopword_table innodb_ft_sort_pll_degree innodb_ft_total_cache_size innodb_ft_user_stopword_table
		innodb_idle_flush_pct innodb_io_capacity innodb_io_capacity_max innodb_lock_wait_timeout innodb_log_buffer_size
		innodb_log_compressed_pages innodb_log_spin_cpu_abs_lwm innodb_log_spin_cpu_pct_hwm
		innodb_log_wait_for_flush_spin_hwm innodb_log_write_ahead_size innodb_log_writer_threads innodb_lru_scan_depth
		innodb_max_dirty_pages_pct innodb_max_dirty_pages_pct_lwm innodb_max_purge_lag innodb_max_purge_lag_delay innodb_max_undo_log_size
		innodb_monitor_disable innodb_monitor_enable innodb_monitor_reset innodb_monitor_reset_all innodb_numa_interleave
		innodb_old_blocks_pct innodb_old_blocks_time innodb_online_alter_log_max_size innodb_open_files innodb_optimize_fulltext_only
		innodb_page_cleaners innodb_page_size innodb_parallel_read_threads innodb_print_all_deadlocks innodb_print_ddl_logs
		innodb_purge_batch_size innodb_purge_rseg_truncate_frequency innodb_purge_threads innodb_random_read_ahead
		innodb_read_ahead_threshold innodb_read_io_threads innodb_redo_log_capacity innodb_replication_delay innodb_rollback_on_timeout
		innodb_rollback_segments innodb_segment_reserve_factor innodb_sort_buffer_size innodb_spin_wait_delay
		innodb_spin_wait_pause_multiplier innodb_stats_auto_recalc innodb_stats_include_delete_marked innodb_stats_method
		innodb_stats_on_metadata innodb_stats_persistent innodb_stats_persistent_sample_pages innodb_stats_transient_sample_pages
		innodb_status_file innodb_status_output innodb_status_output_locks innodb_strict_mode innodb_sync_array_size
		innodb_sync_spin_loops innodb_table_locks innodb_temp_data_file_path innodb_thread_concurrency innodb_thread_sleep_delay
		innodb_undo_log_truncate innodb_use_fdatasync innodb_use_native_aio innodb_validate_tablespace_paths innodb_write_io_threads`),
	category("MyISAM and full-text search", "how the other engines work", `
		concurrent_insert delay_key_write flush flush_time ft_boolean_syntax ft_max_word_len ft_min_word_len ft_query_expansion_limit
		keep_files_on_create myisam_block_size myisam_data_pointer_size myisam_max_sort_file_size myisam_mmap_size myisam_recover_options
		myisam_sort_buffer_size myisam_stats_method myisam_use_mmap ngram_token_size`),
	category("binary log and replication", "how much is kept, and how fast a replica follows", `
		binlog_cache_size binlog_expire_logs_auto_purge binlog_expire_logs_seconds binlog_group_commit_sync_delay
		binlog_group_commit_sync_no_delay_count binlog_max_flush_queue_time binlog_row_event_max_size binlog_row_image binlog_row_metadata
		binlog_row_value_options binlog_rows_query_log_events binlog_stmt_cache_size binlog_transaction_compression
		binlog_transaction_compression_level_zstd binlog_transaction_dependency_history_size gtid_executed_compression_period
		log_bin_trust_function_creators log_statements_unsafe_for_binlog max_allowed_packet max_binlog_cache_size max_binlog_size
		max_binlog_stmt_cache_size max_relay_log_size replica_checkpoint_group replica_checkpoint_period replica_compressed_protocol
		replica_parallel_workers replica_pending_jobs_size_max replica_transaction_retries replication_optimize_for_static_plugin_config
		rpl_read_size source_verify_checksum`),
	category("SQL", "what statements mean, and what they may cost", `
		auto_increment_increment auto_increment_offset block_encryption_mode character_set_filesystem
		character_set_server collation_server cte_max_recursion_depth default_storage_engine default_time_zone default_tmp_storage_engine
		default_week_format disabled_storage_engines div_precision_increment end_markers_in_json eq_range_index_dive_limit event_scheduler
		explain_format explain_json_format_version explicit_defaults_for_timestamp group_concat_max_len information_schema_stats_expiry
		lc_messages lc_time_names local_infile low_priority_updates lower_case_table_names max_digest_length max_error_count
		max_execution_time max_join_size max_length_for_sort_data max_points_in_geometry max_seeks_for_key max_sort_length
		max_sp_recursion_depth old_alter_table optimizer_max_subgraph_pairs optimizer_prune_level optimizer_search_depth optimizer_switch optimizer_trace optimizer_trace_features optimizer_trace_limit optimizer_trace_max_mem_size optimizer_trace_offset regexp_stack_limit regexp_time_limit restrict_fk_on_non_standard_key
		session_track_gtids session_track_schema session_track_state_change session_track_system_variables
		session_track_transaction_info show_create_table_verbosity show_gipk_in_create_table_and_information_schema
		sql_generate_invisible_primary_key sql_mode sql_require_primary_key sysdate_is_now transaction_isolation
		updatable_views_with_limit windowing_use_high_precision`),
	category("logs", "what is written to the error, general and slow log, in files whose names are fixed", `
		general_log log_error_suppression_list log_error_verbosity log_output log_queries_not_using_indexes log_short_format
		log_slow_admin_statements log_slow_extra log_slow_replica_statements log_throttle_queries_not_using_indexes log_timestamps
		long_query_time min_examined_row_limit slow_query_log`),
	category("performance schema", "what is measured", `
		performance_schema_accounts_size performance_schema_consumer_events_stages_current
		performance_schema_consumer_events_stages_history performance_schema_consumer_events_stages_history_long
		performance_schema_consumer_events_statements_cpu performance_schema_consumer_events_statements_current
		performance_schema_consumer_events_statements_history performance_schema_consumer_events_statements_history_long
		performance_schema_consumer_events_transactions_current performance_schema_consumer_events_transactions_history
		performance_schema_consumer_events_transactions_history_long performance_schema_consumer_events_waits_current
		performance_schema_consumer_events_waits_history performance_schema_consumer_events_waits_history_long
		performance_schema_consumer_global_instrumentation performance_schema_consumer_statements_digest
		performance_schema_consumer_thread_instrumentation performance_schema_digests_size performance_schema_error_size
		performance_schema_events_stages_history_long_size performance_schema_events_stages_history_size
		performance_schema_events_statements_history_long_size performance_schema_events_statements_history_size
		performance_schema_events_transactions_history_long_size performance_schema_events_transactions_history_size
		performance_schema_events_waits_history_long_size performance_schema_events_waits_history_size performance_schema_hosts_size
		performance_schema_instrument performance_schema_logger performance_schema_max_cond_classes
		performance_schema_max_cond_instances performance_schema_max_digest_length performance_schema_max_digest_sample_age
		performance_schema_max_file_classes performance_schema_max_file_handles performance_schema_max_file_instances
		performance_schema_max_index_stat performance_schema_max_logger_classes performance_schema_max_memory_classes
		performance_schema_max_metadata_locks performance_schema_max_meter_classes performance_schema_max_metric_classes
		performance_schema_max_mutex_classes performance_schema_max_mutex_instances performance_schema_max_prepared_statements_instances
		performance_schema_max_program_instances performance_schema_max_rwlock_classes performance_schema_max_rwlock_instances
		performance_schema_max_socket_classes performance_schema_max_socket_instances performance_schema_max_sql_text_length
		performance_schema_max_stage_classes performance_schema_max_statement_classes performance_schema_max_statement_stack
		performance_schema_max_table_handles performance_schema_max_table_instances performance_schema_max_table_lock_stat
		performance_schema_meter performance_schema_session_connect_attrs_size performance_schema_setup_actors_size
		performance_schema_setup_objects_size performance_schema_show_processlist performance_schema_users_size`),
	category("accounts", "makes passwords and rights stricter, or changes nothing about them", `
		automatic_sp_privileges generated_random_password_length partial_revokes password_history password_require_current
		password_reuse_interval print_identified_with_as_hex safe_user_create skip_show_database
		validate_password.changed_characters_percentage validate_password.check_user_name validate_password.length
		validate_password.mixed_case_count validate_password.number_count validate_password.policy
		validate_password.special_char_count`),
	category("encryption at rest", "only in a group without spec.encryptionAtRest, which owns them otherwise", `
		binlog_encryption default_table_encryption innodb_redo_log_encrypt innodb_undo_log_encrypt table_encryption_privilege_check`),
}

// valuePatterns are the values that a setting may have, where some would be refused.
var valuePatterns = map[string]*regexp.Regexp{
	// nosync would acknowledge what is not on the disk.
	"innodb_flush_method": regexp.MustCompile(`(?i)^(fsync|O_DSYNC|O_DIRECT|O_DIRECT_NO_FSYNC)$`),
	// The file is made again at every start: under another name it would take the place of a file with data.
	"innodb_temp_data_file_path": regexp.MustCompile(`(?i)^ibtmp1:[0-9]+[KMG]?(:autoextend(:max:[0-9]+[KMG]?)?)?$`),
	// Every other engine loses rows in a clone or a crash.
	"default_storage_engine": regexp.MustCompile(`(?i)^innodb$`),
	// An empty list would switch TLS off.
	"tls_version": regexp.MustCompile(`^(TLSv1\.2|TLSv1\.3|TLSv1\.2,TLSv1\.3)$`),
	// OFF gives back what was revoked.
	"partial_revokes": regexp.MustCompile(`(?i)^(ON|1|TRUE)$`),
}
