package mysql

import (
	"maps"
	"regexp"
	"slices"

	corev1 "k8s.io/api/core/v1"

	appsv1 "github.com/storeplane/storeplane/apis/apps/v1"
	backupv1 "github.com/storeplane/storeplane/apis/backup/v1"
	"github.com/storeplane/storeplane/functions/databasecluster/engine"
	"github.com/storeplane/storeplane/internal/compose"
	"github.com/storeplane/storeplane/internal/instance"
)

// maxSize is the largest number of servers of a group that stays odd and within MySQL's limit of nine
// (https://dev.mysql.com/doc/refman/9.7/en/group-replication-limitations.html).
const maxSize = 7

// Check returns an error for a spec that MySQL cannot have.
func (Engine) Check(s *appsv1.DatabaseClusterSpec) error {
	if _, err := parseVersion(s.Version); err != nil {
		return compose.Invalidf("%v", err)
	}
	switch {
	case s.Size > maxSize:
		return compose.Invalidf("size must be 1, 3, 5 or 7 with engine mysql, is %d", s.Size)
	case s.Size%2 == 0:
		return compose.Invalidf("size must be odd with engine mysql, is %d: a group of %d survives the loss of no more servers than one of %d, since a majority has to be left", s.Size, s.Size, s.Size-1)
	case s.Synchronous != nil && !*s.Synchronous && s.Size > 1:
		return compose.Invalidf("synchronous cannot be false with engine mysql: a majority of the servers has every write before it is acknowledged")
	case s.Synchronous != nil && *s.Synchronous && s.Size == 1:
		return compose.Invalidf("synchronous needs a size of at least 3 with engine mysql, is 1")
	case s.SynchronousMode == appsv1.Strict:
		return compose.Invalidf("synchronousMode strict is not available with engine mysql: a group continues as long as a majority of its servers is left: use quorum")
	}
	if err := validateRestore(s.RestoreFrom); err != nil {
		return err
	}
	if err := validateMemory(s.Resources); err != nil {
		return err
	}
	if err := validateParameters(s.Parameters); err != nil {
		return err
	}
	if err := validateExtensions(s); err != nil {
		return err
	}
	return names.Check(s, string(appsv1.MySQL))
}

// validateRestore refuses what cannot be restored from: servers cannot mount a volume with backups.
func validateRestore(from *appsv1.RestoreFrom) error {
	switch {
	case from == nil:
		return nil
	case from.Destination != nil && from.Destination.Type == string(backupv1.Volume):
		return compose.Invalidf("restoreFrom.destination.type volume is not available with engine mysql: create the claim again with a physical backup in an object store, or without restoreFrom to restore a dump with a Restore")
	}
	return nil
}

// validateMemory refuses a limit with which the kernel would kill each server as it joins its group.
func validateMemory(r *corev1.ResourceRequirements) error {
	if r == nil {
		return nil
	}
	if limit, ok := r.Limits[corev1.ResourceMemory]; ok && limit.Value() < leastMemory {
		return compose.Invalidf("resources.limits.memory must be at least %dMi with engine mysql, is %s", leastMemory/mebibyte, limit.String())
	}
	return nil
}

// names are those that MySQL or Storeplane use themselves. A user has at most 32 characters
// (https://dev.mysql.com/doc/refman/9.7/en/user-names.html).
var names = engine.Names{
	Users:       []string{engine.AppUser, instance.UserMonitoring, instance.MySQLSuperuser, "mysql", instance.MySQLBackupUser, instance.MySQLReplicationUser},
	LongestUser: 32,
	Databases:   append([]string{engine.AppDatabase}, instance.MySQLDatabases()...),
}

func validateExtensions(s *appsv1.DatabaseClusterSpec) error {
	for _, db := range s.Databases {
		if len(db.Extensions) > 0 {
			return compose.Invalidf("databases.%s.extensions is not available with engine mysql: leave it out", db.Name)
		}
	}
	return nil
}

// parameters are the options that a claim may set. Options can be written in several ways and abbreviated
// (https://dev.mysql.com/doc/refman/9.7/en/program-options.html), so those that would have the server
// leave its group, run programs or use other files cannot all be listed, and these are.
var parameters = []string{
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
	"preload_buffer_size", "query_alloc_block_size", "query_prealloc_size", "range_alloc_block_size", "range_optimizer_max_mem_size", "read_buffer_size",
	"read_rnd_buffer_size", "regexp_stack_limit", "regexp_time_limit", "replica_parallel_workers", "schema_definition_cache", "select_into_buffer_size",
	"show_gipk_in_create_table_and_information_schema", "sort_buffer_size", "sql_mode", "sql_require_primary_key", "stored_program_cache",
	"stored_program_definition_cache", "table_definition_cache", "table_open_cache", "table_open_cache_instances", "tablespace_definition_cache",
	"temptable_max_mmap", "temptable_max_ram", "thread_cache_size", "thread_stack", "tmp_table_size", "transaction_alloc_block_size", "transaction_isolation",
	"transaction_prealloc_size", "updatable_views_with_limit", "wait_timeout", "windowing_use_high_precision",
}

// value matches the value of an option: a file of options has one in a line.
var value = regexp.MustCompile(`^[^[:cntrl:]"]*$`)

func validateParameters(params map[string]string) error {
	for _, k := range slices.Sorted(maps.Keys(params)) {
		switch {
		case !slices.Contains(parameters, k):
			return compose.Invalidf("parameters.%s cannot be set with engine mysql: it is no option of MySQL, or one that Storeplane sets. Write options in lower case, with _", k)
		case !value.MatchString(params[k]):
			return compose.Invalidf("parameters.%s has a quotation mark or a control character, which no value of an option may have", k)
		}
	}
	return nil
}
