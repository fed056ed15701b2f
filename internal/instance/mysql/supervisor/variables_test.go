package supervisor

import (
	"context"
	"os"
	"slices"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/storeplane/storeplane/internal/instance"
	"github.com/storeplane/storeplane/internal/instance/mysql/parameter"
	"github.com/storeplane/storeplane/internal/instance/mysql/server"
)

// global returns the value of a global variable.
func global(t *testing.T, s server.Server, option string) string {
	t.Helper()
	db, err := s.Pool(10 * time.Second)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = db.Close() }()
	var out string
	if err := db.QueryRowContext(t.Context(), "SELECT @@GLOBAL."+parameter.Variable(option)).Scan(&out); err != nil {
		t.Fatalf("%s: %v", option, err)
	}
	return out
}

// TestVariables: variables are set before the server joins its group, while it runs, and again when it is
// started again. One that is removed gets its default, and one that is refused stays as it is. The options
// that need a start are those that the server itself refuses to change, or that are said to.
func TestVariables(t *testing.T) {
	w := newWorld(t, 1)
	file := `{"max_connections": "77", "sort_buffer_size": "1M", "default_time_zone": "+02:00", "sql_mode": "ANSI", "long_query_time": "2.5", "innodb_print_all_deadlocks": "true", "thread_cache_size": "77",
		"character_set_server": "latin1", "collation_server": "latin1_german1_ci"}`
	if err := os.WriteFile(w.variablesFile(), []byte(file), 0o600); err != nil {
		t.Fatal(err)
	}
	w.start(0)
	w.until("a primary", upWithin, func() bool { return w.leader() != "" })
	s := w.server(pod(0))
	expect := func(when string, want map[string]string) {
		t.Helper()
		got := map[string]string{}
		for name := range want {
			got[name] = global(t, s.server, name)
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s: -want, +got:\n%s", when, diff)
		}
	}
	first := map[string]string{
		"max_connections": "77", "sort_buffer_size": "1048576", "default_time_zone": "+02:00",
		"sql_mode": "REAL_AS_FLOAT,PIPES_AS_CONCAT,ANSI_QUOTES,IGNORE_SPACE,ONLY_FULL_GROUP_BY,ANSI", "long_query_time": "2.5", "innodb_print_all_deadlocks": "1", "thread_cache_size": "77", "collation_server": "latin1_german1_ci",
	}
	expect("as it has joined", first)

	bring := func(file string) []instance.Problem {
		t.Helper()
		problems, err := s.SetVariables(t.Context(), file)
		if err != nil {
			t.Fatal(err)
		}
		return problems
	}
	if problems := bring(`{}`); len(problems) > 0 {
		t.Errorf("want nothing refused, got %v", problems)
	}
	expect("without any", map[string]string{"max_connections": "151", "character_set_server": "utf8mb4", "collation_server": "utf8mb4_0900_ai_ci", "thread_cache_size": "9"})
	refused := bring(`{"max_connections": "88", "sort_buffer_size": "much", "sql_mode": "ANSI", "transaction_isolation": "NEVER", "wait_timeout": "it's \\ \"x\"",
		"default_time_zone": "Europe/Nowhere", "character_set_server": "klingon", "collation_server": "klingon_ci", "lc_messages": "xx", "table_open_cache": "100000000"}`)
	want := []instance.Problem{
		{Subject: instance.SubjectParameter, Name: "character_set_server", Message: "Unknown character set: 'klingon'"},
		{Subject: instance.SubjectParameter, Name: "collation_server", Message: "Unknown collation: 'klingon_ci'"},
		{Subject: instance.SubjectParameter, Name: "default_time_zone", Message: "Unknown or incorrect time zone: 'Europe/Nowhere'"},
		{Subject: instance.SubjectParameter, Name: "lc_messages", Message: "Unknown locale: 'xx'"},
		{Subject: instance.SubjectParameter, Name: "sort_buffer_size", Message: "Incorrect argument type to variable 'sort_buffer_size'"},
		{Subject: instance.SubjectParameter, Name: "table_open_cache", Message: "100000000 is out of its bounds: MySQL takes 524288 for it"},
		{Subject: instance.SubjectParameter, Name: "transaction_isolation", Message: "Variable 'transaction_isolation' can't be set to the value of 'NEVER'"},
		{Subject: instance.SubjectParameter, Name: "wait_timeout", Message: "Incorrect argument type to variable 'wait_timeout'"},
	}
	if diff := cmp.Diff(want, refused); diff != "" {
		t.Errorf("refused: -want, +got:\n%s", diff)
	}
	// What is refused or removed is as it was before the first value.
	expect("after an edit", map[string]string{
		"max_connections": "88", "sort_buffer_size": "262144", "default_time_zone": "SYSTEM", "sql_mode": first["sql_mode"],
		"long_query_time": "10", "innodb_print_all_deadlocks": "0", "thread_cache_size": "9", "character_set_server": "utf8mb4", "collation_server": "utf8mb4_0900_ai_ci", "transaction_isolation": "REPEATABLE-READ",
	})
	if problems := bring(`{}`); len(problems) > 0 {
		t.Errorf("want nothing refused any more, got %v", problems)
	}
	bring(`{"max_allowed_packet": "100000000", "innodb_max_dirty_pages_pct": "5", "innodb_io_capacity": "30000", "innodb_io_capacity_max": "60000", "character_set_server": "latin1", "collation_server": "utf8mb4_bin"}`)
	expect("with bounds", map[string]string{
		"max_allowed_packet": "99999744", "innodb_max_dirty_pages_pct": "5", "innodb_max_dirty_pages_pct_lwm": "5", "innodb_io_capacity": "30000", "innodb_io_capacity_max": "60000",
		"character_set_server": "utf8mb4", "collation_server": "utf8mb4_bin",
	})
	bring(`{"innodb_io_capacity": "1000", "innodb_io_capacity_max": "2000"}`)
	expect("with lower bounds, and without others", map[string]string{
		"innodb_io_capacity": "1000", "innodb_io_capacity_max": "2000", "max_allowed_packet": "67108864", "innodb_max_dirty_pages_pct": "90",
		"innodb_max_dirty_pages_pct_lwm": "10", "character_set_server": "utf8mb4", "collation_server": "utf8mb4_0900_ai_ci",
	})
	if problems := bring(`{}`); len(problems) > 0 {
		t.Errorf("want nothing refused any more, got %v", problems)
	}
	expect("without any", map[string]string{"max_connections": "151", "sort_buffer_size": "262144"})

	if err := s.signal(syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	w.until("the server has what the file has again", upWithin, func() bool {
		return w.leader() != "" && s.server.Ping(context.Background()) == nil && global(t, s.server, "max_connections") == "77"
	})

	for _, option := range parameter.All() {
		value := global(t, s.server, option)
		refusal, err := s.server.SetVariable(t.Context(), option, value)
		if err != nil {
			t.Fatal(err)
		}
		switch {
		case parameter.NeedsStart(option) && refusal == "" && !slices.Contains(chosen, option):
			t.Errorf("%s counts as one that needs a start, and can be set", option)
		case !parameter.NeedsStart(option) && refusal != "":
			t.Errorf("%s counts as one that needs no start: %s", option, refusal)
		}
	}
}

// chosen are the options that count as such that need a start though the server can set them.
var chosen = []string{
	"binlog_expire_logs_seconds", "event_scheduler", "explicit_defaults_for_timestamp", "innodb_buffer_pool_size", "innodb_ft_enable_stopword",
	"innodb_strict_mode", "max_binlog_cache_size", "replica_parallel_workers", "sql_require_primary_key",
}
