package postgres

import (
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/storeplane/storeplane/internal/instance"
	"github.com/storeplane/storeplane/internal/instance/manager/pgdata/pgdatatest"
	"github.com/storeplane/storeplane/internal/instance/manager/scram"
)

// TestServer: a running server follows the changes that a claim may go through.
func TestServer(t *testing.T) {
	s := serve(t, pgdatatest.New(t).Begin())
	ctx := t.Context()

	roles := func(want []instance.Problem, desired ...Login) {
		t.Helper()
		got, err := s.Roles(ctx, desired)
		if err != nil {
			t.Fatalf("Roles(...): %v", err)
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("Roles(...): -want problems, +got:\n%s", diff)
		}
	}
	databases := func(want []instance.Problem, users []string, desired ...instance.Database) {
		t.Helper()
		got, err := s.Databases(ctx, desired, users)
		if err != nil {
			t.Fatalf("Databases(...): %v", err)
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("Databases(...): -want problems, +got:\n%s", diff)
		}
	}
	is := func(reason, sql, want string) {
		t.Helper()
		if got := ask(t, s, "postgres", sql); got != want {
			t.Errorf("%s: %s: got %q, want %q", reason, sql, got, want)
		}
	}
	verifier := func(role string) string {
		return ask(t, s, "postgres", "SELECT rolpassword FROM pg_authid WHERE rolname = '"+role+"'")
	}

	ask(t, s, "postgres", `CREATE ROLE standby LOGIN REPLICATION; CREATE ROLE old NOLOGIN; CREATE ROLE boss SUPERUSER`)
	system := []Login{{Name: Superuser, Password: "super", System: true}, {Name: "standby", Password: "stream", System: true}, {Name: "rewind", Password: "back", System: true}}
	app := Login{Name: "app", Password: "it's"}

	roles(nil, append(system, app, Login{Name: "old", Password: "o"}, Login{Name: `we"ird`, Password: "w"})...)
	is("Users may log in, and a system role that is not there is not made", "SELECT string_agg(rolname, ',' ORDER BY rolname) FROM pg_roles WHERE rolcanlogin", `app,old,postgres,standby,we"ird`)
	for role, password := range map[string]string{"app": "it's", Superuser: "super", "standby": "stream", "old": "o"} {
		if !scram.Matches(verifier(role), password) {
			t.Errorf("role %s does not have its password", role)
		}
	}

	system[1].Create, system[2].Create = "LOGIN REPLICATION", "LOGIN"
	system[2].Executes = []string{"pg_ls_dir(text, boolean, boolean)", "pg_read_binary_file(text)"}
	ask(t, s, "postgres", "DROP ROLE standby")
	roles(nil, system...)
	is("One that is to be made can stream", "SELECT rolcanlogin AND rolreplication AND NOT rolsuper FROM pg_roles WHERE rolname = 'standby'", "t")
	is("One that is to be made may execute what it has to", "SELECT has_function_privilege('rewind', 'pg_ls_dir(text, boolean, boolean)', 'EXECUTE') AND has_function_privilege('rewind', 'pg_read_binary_file(text)', 'EXECUTE') AND rolcanlogin AND NOT rolreplication FROM pg_roles WHERE rolname = 'rewind'", "t")
	if !scram.Matches(verifier("standby"), "stream") || !scram.Matches(verifier("rewind"), "back") {
		t.Error("a system role that was made does not have its password")
	}
	roles(nil, append(system, app)...)

	before := verifier("app")
	roles(nil, append(system, app)...)
	if verifier("app") != before {
		t.Error("a password that is set already was set again")
	}
	is("A user that is not desired any more cannot log in", "SELECT rolcanlogin FROM pg_roles WHERE rolname = 'old'", "f")
	roles(nil, append(system, app, Login{Name: "old", Password: "o"})...)
	is("One that is desired again can", "SELECT rolcanlogin FROM pg_roles WHERE rolname = 'old'", "t")
	roles(nil, append(system, Login{Name: "app", Password: "new"})...)
	if !scram.Matches(verifier("app"), "new") {
		t.Error("a password that changed was not set")
	}
	roles([]instance.Problem{
		{Subject: instance.SubjectUser, Name: "boss", Message: "user boss exists and is a superuser, so it stays as it is: choose another name"},
		{Subject: instance.SubjectUser, Name: "standby", Message: "user standby is the servers' own: choose another name"},
		{Subject: instance.SubjectUser, Name: "pg_me", Message: `cannot set up user pg_me: role name "pg_me" is reserved`},
	}, append(system, app, Login{Name: "boss", Password: "b"}, Login{Name: "standby", Password: "s"}, Login{Name: "pg_me", Password: "p"}, Login{Name: "other", Password: "o"})...)
	is("A problem does not stop the rest", "SELECT count(*) FROM pg_roles WHERE rolname = 'other'", "1")

	users := []string{"app", "other"}
	databases(nil, users, instance.Database{Name: "app", Owner: "app", Extensions: []string{"plpgsql"}})
	is("The owner is the user", "SELECT pg_get_userbyid(datdba) FROM pg_database WHERE datname = 'app'", "app")
	is("No other user may connect", "SELECT has_database_privilege('other', 'app', 'CONNECT')", "f")
	ask(t, s, "postgres", "GRANT CONNECT ON DATABASE app TO PUBLIC")
	databases([]instance.Problem{
		{Subject: instance.SubjectDatabase, Name: "postgres", Message: "database postgres is PostgreSQL's own: choose another name"},
		{Subject: instance.SubjectDatabase, Name: "lost", Message: "owner nobody of database lost is not among the users"},
		{Subject: instance.SubjectDatabase, Name: "app", Message: "cannot create extension no such: " + `extension "no such" is not available`},
	}, users,
		instance.Database{Name: "postgres", Owner: "app"},
		instance.Database{Name: "lost", Owner: "nobody"},
		instance.Database{Name: "app", Owner: "other", Extensions: []string{"no such", "pg_trgm"}})
	is("The owner follows", "SELECT pg_get_userbyid(datdba) FROM pg_database WHERE datname = 'app'", "other")
	is("A later grant stays", "SELECT has_database_privilege('app', 'app', 'CONNECT')", "t")
	if got := ask(t, s, "app", "SELECT extnamespace::regnamespace FROM pg_extension WHERE extname = 'pg_trgm'"); got != "public" {
		t.Errorf("pg_trgm: got schema %q, want public", got)
	}

	if got, err := s.Followers(ctx); err != nil || len(got) != 0 {
		t.Errorf("Followers(): got %v, %v, want none", got, err)
	}
	if got, err := s.Receiving(ctx); err != nil || got {
		t.Errorf("Receiving(): got %t, %v, want false: it is a primary", got, err)
	}
	if err := s.Checkpoint(ctx); err != nil {
		t.Errorf("Checkpoint(): %v", err)
	}
	programs, err := s.Programs(ctx)
	if err != nil || programs.BinDir != pgdatatest.BinDir(t) {
		t.Errorf("Programs(): got %v, %v, want %s", programs, err, pgdatatest.BinDir(t))
	}
}

func TestReplication(t *testing.T) {
	volume := pgdatatest.New(t).Begin()
	primary := serve(t, volume)
	follower := pgdatatest.New(t).Copy(volume)
	follower.Configure("cluster_name = 'db-1'")
	standby := serve(t, follower)
	ctx := t.Context()

	eventually(t, "the standby streams", func() bool {
		got, err := primary.Followers(ctx)
		return err == nil && got["db-1"].Streaming && got["db-1"].Lag == 0
	})
	if got, err := standby.Receiving(ctx); err != nil || !got {
		t.Errorf("Receiving(): got %t, %v, want true", got, err)
	}
	if _, err := standby.Followers(ctx); err == nil {
		t.Error("Followers(): want an error on a standby")
	}

	ask(t, primary, "postgres", "ALTER SYSTEM SET synchronous_standby_names = 'ANY 1 (\"db-1\")'")
	if err := primary.Reload(ctx); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the standby is synchronous", func() bool {
		got, err := primary.Followers(ctx)
		return err == nil && got["db-1"].Synchronous
	})

	ask(t, standby, "postgres", "SELECT pg_wal_replay_pause()")
	ask(t, primary, "postgres", "SELECT pg_logical_emit_message(false, '', repeat('x', 1000000))")
	eventually(t, "the standby lags", func() bool {
		got, err := primary.Followers(ctx)
		return err == nil && got["db-1"].Lag > 1000000
	})
	ask(t, standby, "postgres", "SELECT pg_wal_replay_resume()")

	ask(t, primary, "postgres", "ALTER SYSTEM SET synchronous_standby_names = 'nobody'")
	if err := primary.Reload(ctx); err != nil {
		t.Fatal(err)
	}
	if _, err := primary.Roles(ctx, []Login{{Name: "app", Password: "p"}}); err != nil {
		t.Errorf("Roles(...) while no standby acknowledges: %v", err)
	}
	if _, err := primary.Databases(ctx, []instance.Database{{Name: "app", Owner: "app", Extensions: []string{"pg_trgm"}}}, []string{"app"}); err != nil {
		t.Errorf("Databases(...) while no standby acknowledges: %v", err)
	}
}

func TestCheckParameters(t *testing.T) {
	bin := pgdatatest.BinDir(t)
	lib, err := exec.CommandContext(t.Context(), filepath.Join(bin, "pg_config"), "--pkglibdir").Output()
	if err != nil {
		t.Fatalf("a PostgreSQL without its pg_config: %v", err)
	}
	programs := Programs{BinDir: bin, LibDir: strings.TrimSpace(string(lib))}
	cases := map[string]struct{ reason, name, value, want string }{
		"Fine":       {reason: "A value is fine", name: "work_mem", value: "8MB"},
		"Restart":    {reason: "So is one that needs a restart", name: "shared_buffers", value: "64MB"},
		"Extension":  {reason: "A library judges its own", name: "pg_stat_statements.max", value: "100"},
		"Unknown":    {reason: "There is no such", name: "work_men", value: "8MB", want: `unrecognized configuration parameter "work_men"`},
		"Unit":       {reason: "A unit is wrong", name: "work_mem", value: "8 pounds", want: `invalid value for parameter "work_mem": "8 pounds": Valid units for this parameter are "B", "kB", "MB", "GB", and "TB".`},
		"Range":      {reason: "Too much", name: "max_connections", value: "1000000", want: `1000000 is outside the valid range for parameter "max_connections" (1 .. 262143)`},
		"Enum":       {reason: "None of the words", name: "wal_level", value: "much", want: `invalid value for parameter "wal_level": "much": Available values: minimal, replica, logical.`},
		"Library":    {reason: "A library that is there", name: Libraries, value: "auto_explain, pg_stat_statements"},
		"NoLibrary":  {reason: "A server does not start without it", name: Libraries, value: "auto_explain,nothing", want: `could not access file "nothing": No such file or directory`},
		"Arithmetic": {reason: "A value is no option", name: "application_name", value: "x -c fsync=off"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			got, err := CheckParameters(t.Context(), programs, map[string]string{tc.name: tc.value})
			if err != nil {
				t.Fatal(err)
			}
			var want []instance.Problem
			if tc.want != "" {
				want = []instance.Problem{{Subject: instance.SubjectParameter, Name: tc.name, Message: tc.want}}
			}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("%s: CheckParameters(...): -want, +got:\n%s", tc.reason, diff)
			}
		})
	}
}
