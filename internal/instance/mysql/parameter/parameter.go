// Package parameter knows the options of MySQL that a claim may set.
package parameter

import "slices"

// allowed are the options that a claim may set. Options can be written in several ways and abbreviated
// (https://dev.mysql.com/doc/refman/9.7/en/program-options.html), so those that would have the server
// leave its group, run programs or use other files cannot all be listed, and these are.
var allowed = []string{
	"auto_increment_offset", "binlog_cache_size", "binlog_expire_logs_seconds", "binlog_transaction_compression", "binlog_transaction_compression_level_zstd",
	"bulk_insert_buffer_size", "character_set_server", "collation_server", "connect_timeout", "cte_max_recursion_depth", "default_time_zone",
	"default_week_format", "div_precision_increment", "eq_range_index_dive_limit", "event_scheduler", "explicit_defaults_for_timestamp", "foreign_key_checks",
	"ft_max_word_len", "ft_min_word_len", "ft_query_expansion_limit", "group_concat_max_len", "host_cache_size", "information_schema_stats_expiry",
	"innodb_adaptive_flushing", "innodb_adaptive_flushing_lwm", "innodb_adaptive_hash_index", "innodb_adaptive_hash_index_parts", "innodb_autoextend_increment",
	"innodb_autoinc_lock_mode", "innodb_buffer_pool_chunk_size", "innodb_buffer_pool_dump_at_shutdown", "innodb_buffer_pool_dump_pct",
	"innodb_buffer_pool_instances", "innodb_buffer_pool_load_at_startup", "innodb_buffer_pool_size", "innodb_change_buffer_max_size", "innodb_change_buffering",
	"innodb_concurrency_tickets", "innodb_ddl_buffer_size", "innodb_ddl_threads", "innodb_deadlock_detect", "innodb_fill_factor", "innodb_flush_neighbors",
	"innodb_flushing_avg_loops", "innodb_ft_cache_size", "innodb_ft_enable_stopword", "innodb_ft_max_token_size", "innodb_ft_min_token_size",
	"innodb_ft_num_word_optimize", "innodb_ft_result_cache_limit", "innodb_ft_sort_pll_degree", "innodb_ft_total_cache_size", "innodb_io_capacity",
	"innodb_io_capacity_max", "innodb_lock_wait_timeout", "innodb_log_buffer_size", "innodb_lru_scan_depth", "innodb_max_dirty_pages_pct",
	"innodb_max_dirty_pages_pct_lwm", "innodb_max_purge_lag", "innodb_max_purge_lag_delay", "innodb_max_undo_log_size", "innodb_old_blocks_pct",
	"innodb_old_blocks_time", "innodb_online_alter_log_max_size", "innodb_open_files", "innodb_page_cleaners", "innodb_parallel_read_threads",
	"innodb_print_all_deadlocks", "innodb_purge_batch_size", "innodb_purge_threads", "innodb_random_read_ahead", "innodb_read_ahead_threshold",
	"innodb_read_io_threads", "innodb_redo_log_capacity", "innodb_rollback_on_timeout", "innodb_rollback_segments", "innodb_sort_buffer_size",
	"innodb_spin_wait_delay", "innodb_stats_auto_recalc", "innodb_stats_include_delete_marked", "innodb_stats_method", "innodb_stats_on_metadata",
	"innodb_stats_persistent", "innodb_stats_persistent_sample_pages", "innodb_stats_transient_sample_pages", "innodb_strict_mode", "innodb_sync_array_size",
	"innodb_sync_spin_loops", "innodb_table_locks", "innodb_thread_concurrency", "innodb_thread_sleep_delay", "innodb_undo_log_truncate",
	"innodb_write_io_threads", "interactive_timeout", "internal_tmp_mem_storage_engine", "join_buffer_size", "key_buffer_size", "lc_messages", "lc_time_names",
	"lock_wait_timeout", "log_error_verbosity", "log_queries_not_using_indexes", "log_slow_extra", "log_throttle_queries_not_using_indexes", "long_query_time",
	"low_priority_updates", "max_allowed_packet", "max_binlog_cache_size", "max_binlog_size", "max_connect_errors", "max_connections", "max_digest_length",
	"max_error_count", "max_execution_time", "max_heap_table_size", "max_join_size", "max_length_for_sort_data", "max_points_in_geometry",
	"max_prepared_stmt_count", "max_seeks_for_key", "max_sort_length", "max_sp_recursion_depth", "max_user_connections", "min_examined_row_limit",
	"net_buffer_length", "net_read_timeout", "net_retry_count", "net_write_timeout", "ngram_token_size", "old_alter_table", "open_files_limit",
	"optimizer_prune_level", "optimizer_search_depth", "optimizer_switch", "optimizer_trace_limit", "optimizer_trace_max_mem_size", "performance_schema",
	"performance_schema_digests_size", "performance_schema_error_size", "performance_schema_events_stages_history_long_size",
	"performance_schema_events_statements_history_long_size", "performance_schema_events_transactions_history_long_size", "performance_schema_events_waits_history_long_size",
	"preload_buffer_size", "query_alloc_block_size", "query_prealloc_size", "range_alloc_block_size", "range_optimizer_max_mem_size", "read_buffer_size",
	"read_rnd_buffer_size", "regexp_stack_limit", "regexp_time_limit", "replica_parallel_workers", "schema_definition_cache", "select_into_buffer_size",
	"show_gipk_in_create_table_and_information_schema", "sort_buffer_size", "sql_mode", "sql_require_primary_key", "stored_program_cache",
	"stored_program_definition_cache", "table_definition_cache", "table_open_cache", "table_open_cache_instances", "tablespace_definition_cache",
	"temptable_max_mmap", "temptable_max_ram", "thread_cache_size", "thread_stack", "tmp_table_size", "transaction_alloc_block_size", "transaction_isolation",
	"transaction_prealloc_size", "updatable_views_with_limit", "wait_timeout", "windowing_use_high_precision",
}

// atStart are those of allowed that hold from the start of a server on. The server itself refuses to change
// most of them while it runs. The others are
//   - event_scheduler, which can be disabled only at the start,
//   - innodb_buffer_pool_size, whose value at the start decides how many instances there are,
//   - binlog_expire_logs_seconds: a server removes logs as it starts,
//   - replica_parallel_workers, and what the threads that apply the primary's transactions have as session
//     variables from their start on: with another value they could refuse a table that the primary has
//     created.
var atStart = []string{
	"binlog_expire_logs_seconds", "event_scheduler", "explicit_defaults_for_timestamp", "ft_max_word_len", "ft_min_word_len", "ft_query_expansion_limit",
	"innodb_adaptive_hash_index_parts", "innodb_autoinc_lock_mode", "innodb_buffer_pool_chunk_size", "innodb_buffer_pool_instances",
	"innodb_buffer_pool_load_at_startup", "innodb_buffer_pool_size", "innodb_ft_cache_size", "innodb_ft_enable_stopword", "innodb_ft_max_token_size",
	"innodb_ft_min_token_size", "innodb_ft_sort_pll_degree", "innodb_ft_total_cache_size", "innodb_open_files", "innodb_page_cleaners", "innodb_purge_threads",
	"innodb_read_io_threads", "innodb_rollback_on_timeout", "innodb_sort_buffer_size", "innodb_strict_mode", "innodb_sync_array_size",
	"innodb_write_io_threads", "max_binlog_cache_size", "max_digest_length", "ngram_token_size", "open_files_limit", "performance_schema",
	"performance_schema_digests_size", "performance_schema_error_size", "performance_schema_events_stages_history_long_size",
	"performance_schema_events_statements_history_long_size", "performance_schema_events_transactions_history_long_size", "performance_schema_events_waits_history_long_size", "replica_parallel_workers",
	"sql_require_primary_key", "table_open_cache_instances", "thread_stack",
}

// All returns the options that a claim may set.
func All() []string { return slices.Clone(allowed) }

// Settable returns the options that need no start.
func Settable() []string { return slices.DeleteFunc(All(), NeedsStart) }

// Allowed reports whether a claim may set an option.
func Allowed(option string) bool { return slices.Contains(allowed, option) }

// NeedsStart reports whether an option holds from the next start of the server on. The others are global
// variables that a server can set while it runs.
func NeedsStart(option string) bool { return slices.Contains(atStart, option) }

// Variable returns the name of the global variable that an option sets.
func Variable(option string) string {
	if option == "default_time_zone" {
		return "time_zone"
	}
	return option
}
