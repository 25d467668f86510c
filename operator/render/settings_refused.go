// SPDX-License-Identifier: Apache-2.0

package render

// refused are told with the name of their category. The settings that the operator sets itself are in ownedSettings.
var refused = []Category{
	category("names a file or directory",
		"mysqld would read or write it with the rights of the pod: the sidecar's record of epochs, passwords, or a file that becomes a table", `
		basedir caching_sha2_password_private_key_path caching_sha2_password_public_key_path character_sets_dir chroot datadir
		ft_stopword_file general_log_file innodb_buffer_pool_filename innodb_data_file_path innodb_data_home_dir innodb_directories
		innodb_doublewrite_dir innodb_log_group_home_dir innodb_redo_log_archive_dirs innodb_temp_tablespaces_dir innodb_tmpdir
		innodb_undo_directory lc_messages_dir log_bin log_bin_index log_error log_isam log_tc log_tc_size pid_file plugin_dir relay_log
		relay_log_index replica_load_tmpdir secure_file_priv sha256_password_private_key_path sha256_password_public_key_path
		slow_query_log_file socket symbolic_links tmpdir validate_password.dictionary_file defaults_file defaults_extra_file`),
	category("runs SQL or loads code", "it runs with more rights than those of the person who may edit groups", `
		allow_suspicious_udfs early_plugin_load federated init_connect init_file init_replica log_error_services plugin_load
		plugin_load_add validate_config daemonize initialize initialize_insecure upgrade`),
	category("gives rights or weakens authentication",
		"accounts would get rights that were never granted, or could log in without proof, or with less of it", `
		activate_all_roles_on_login activate_mandatory_roles authentication_policy check_proxy_users
		caching_sha2_password_auto_generate_rsa_keys caching_sha2_password_proxy_users caching_sha2_password_storage_format skip_grant_tables
		mandatory_roles persist_only_admin_x509_subject persist_sensitive_variables_in_plaintext sha256_password_auto_generate_rsa_keys
		sha256_password_proxy_users user validate_user_plugins`),
	category("locks the operator's own accounts out",
		"passwords of the operator, the sidecar and replication would end or have to be changed, and the operator could not fence or promote", `
		caching_sha2_password_digest_rounds caching_sha2_password_enforce_storage_format default_password_lifetime`),
	category("delays the operator's own accounts",
		"a stranger who tries wrong passwords in their names would have every login of theirs wait, and nobody could watch, fence or follow in time", `
		component_connection_control* connection_control_*`),
	category("shows secrets", "passwords would stand in a log, in a dump of memory or in an answer", `
		core_file log_raw show_replica_auth_info show_slave_auth_info report_password report_user`),
	category("weakens TLS", "certificates, ciphers and what is checked are spec.tls alone", `
		auto_generate_certs require_secure_transport ssl ssl_ca ssl_capath ssl_cert ssl_cipher ssl_crl ssl_crlpath ssl_fips_mode ssl_key
		tls_certificates_enforced_validation tls_ciphersuites`),
	category("touches the fence", "a site must start fenced, and whatever fences it must be able to", `
		create_admin_listener_thread offline_mode persisted_globals_load read_only skip_replica_start super_read_only transaction_read_only`),
	category("takes the server away from the operator, the sidecar or the replicas",
		"a server that they cannot reach, or whose sessions they cannot see, can neither be watched nor fenced", `
		admin_* autocommit bind_address completion_type skip_name_resolve skip_networking performance_schema performance_schema_max_thread_classes
		performance_schema_max_thread_instances port port_open_timeout protocol_compression_algorithms report_host report_port server_id
		server_id_bits server_uuid terminology_use_previous thread_handling`),
	category("changes what is replicated", "sites would differ without anybody noticing, or could not follow each other", `
		binlog_checksum binlog_direct_non_transactional_updates binlog_do_db binlog_format binlog_gtid_simple_recovery binlog_ignore_db
		binlog_order_commits clone_* enable_cascade_triggers enforce_gtid_consistency gtid_mode group_replication* innodb_native_foreign_keys
		log_replica_updates max_binlog_dump_events relay_log_purge relay_log_recovery relay_log_space_limit replica_allow_batching
		replica_allow_higher_version_source replica_exec_mode replica_max_allowed_packet replica_net_timeout replica_preserve_commit_order
		replica_skip_errors replica_sql_verify_checksum replica_type_conversions replicate_* replication_sender_observe_commit_only
		rpl_semi_sync* rpl_stop_replica_timeout master_retry_count sporadic_binlog_dump_fail sql_log_bin xa_detach_on_prepare`),
	category("loses what was acknowledged", "after a crash, a failover or a start rows would be gone", `
		binlog_error_action innodb_checksum_algorithm innodb_doublewrite innodb_flush_log_at_trx_commit innodb_force_load_corrupted
		innodb_force_recovery innodb_log_checksums innodb_read_only sync_binlog sync_relay_log sync_relay_log_info sync_source_info
		tc_heuristic_recover`),
	category("turns a part of the server on or off", "tables of it could not be read any more, or would not be replicated or cloned", `
		archive blackhole external_locking external_table_secondary_storage_engine external_table_storage_engine ndb*
		ngram secondary_engine_cost_threshold enable_secondary_engine_statistics mysqlx*`),
	category("keyring", "the keyring is spec.encryptionAtRest alone", `
		binlog_rotate_encryption_master_key_at_startup component_keyring* keyring_*`),
	category("only for MySQL's own tests and tools", "it is no setting of a server that serves", `
		ansi check_table_functions console exit_info gdb group_replication_consistency help innodb_api_* memlock skip_new
		select_into_disk_sync select_into_disk_sync_delay skip_stack_trace standalone verbose version version_with_update`),
}
