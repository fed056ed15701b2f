package server

import (
	"regexp"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/storeplane/storeplane/internal/instance"
	"github.com/storeplane/storeplane/internal/instance/mysql/verifier"
)

// digest replaces verifiers, which have a random salt.
var digest = regexp.MustCompile(`0x[0-9a-f]{140}`)

func TestPlanUsers(t *testing.T) {
	of := func(password string) user {
		return user{marked: true, plugin: plugin, verifier: verifier.New(password)}
	}
	with := func(u user, change func(*user)) user { change(&u); return u }
	const marked = ` ACCOUNT UNLOCK ATTRIBUTE '{"managedBy": "Storeplane"}'`
	for name, c := range map[string]struct {
		reason   string
		existing map[string]user
		desired  []Login
		want     []string
		problems []string
	}{
		"New":      {reason: "A user that does not exist is created, without its password in the statement.", desired: []Login{{"app", "secret"}}, want: []string{"CREATE USER 'app'@'%' IDENTIFIED WITH caching_sha2_password AS DIGEST" + marked}},
		"Same":     {reason: "Nothing is written for one that is as desired.", existing: map[string]user{"app": of("secret")}, desired: []Login{{"app", "secret"}}},
		"Rotated":  {reason: "A password that has changed is set.", existing: map[string]user{"app": of("old")}, desired: []Login{{"app", "secret"}}, want: []string{"ALTER USER 'app'@'%' IDENTIFIED WITH caching_sha2_password AS DIGEST" + marked}},
		"Adopted":  {reason: "One that a user has created is adopted, with the password of the claim.", existing: map[string]user{"app": with(of("secret"), func(u *user) { u.marked = false })}, desired: []Login{{"app", "secret"}}, want: []string{"ALTER USER 'app'@'%'" + marked}},
		"Retired":  {reason: "One that is no longer desired cannot log in.", existing: map[string]user{"old": of("x"), "theirs": {plugin: plugin}}, want: []string{"ALTER USER 'old'@'%' ACCOUNT LOCK"}},
		"Returned": {reason: "One that is desired again can.", existing: map[string]user{"app": with(of("secret"), func(u *user) { u.locked = true })}, desired: []Login{{"app", "secret"}}, want: []string{"ALTER USER 'app'@'%'" + marked}},
		"Powerful": {reason: "An administrator's password is not replaced.", existing: map[string]user{"dba": {plugin: plugin, powerful: true}}, desired: []Login{{"dba", "secret"}}, problems: []string{"user dba exists and administers the server, so it stays as it is: choose another name"}},
		"Own":      {reason: "The servers' own users are not the claim's.", desired: []Login{{"root", "x"}, {User, "x"}, {"mysql.sys", "x"}}, problems: []string{"user root is the servers' own: choose another name", "user storeplane_replication is the servers' own: choose another name", "user mysql.sys is the servers' own: choose another name"}},
		"NoSecret": {reason: "A user without a password is not created.", desired: []Login{{"app", ""}}, problems: []string{"user app has no password in the credentials"}},
	} {
		t.Run(name, func(t *testing.T) {
			changes, problems := planUsers(c.existing, c.desired)
			var got, messages []string
			for _, change := range changes {
				got = append(got, digest.ReplaceAllString(change.sql, "DIGEST"))
			}
			for _, p := range problems {
				messages = append(messages, p.Message)
			}
			if diff := cmp.Diff(c.want, got); diff != "" {
				t.Errorf("%s\nplanUsers(...): -want, +got:\n%s", c.reason, diff)
			}
			if diff := cmp.Diff(c.problems, messages); diff != "" {
				t.Errorf("%s\nplanUsers(...): problems: -want, +got:\n%s", c.reason, diff)
			}
		})
	}
}

func TestPlanDatabase(t *testing.T) {
	users := []string{"app", "reports"}
	for name, c := range map[string]struct {
		reason   string
		database instance.Database
		existing map[string]database
		want     []string
		message  string
	}{
		"New":      {reason: "A database gets its owner.", database: instance.Database{Name: "orders", Owner: "app"}, want: []string{"CREATE DATABASE IF NOT EXISTS `orders`", "GRANT ALL ON `orders`.* TO 'app'@'%' WITH GRANT OPTION"}},
		"Same":     {reason: "Nothing is written for one that is as desired.", database: instance.Database{Name: "orders", Owner: "app"}, existing: map[string]database{"orders": {owners: []string{"app"}}}},
		"Wildcard": {reason: "A grant means this database alone.", database: instance.Database{Name: "a_b", Owner: "app"}, want: []string{"CREATE DATABASE IF NOT EXISTS `a_b`", "GRANT ALL ON `a\\_b`.* TO 'app'@'%' WITH GRANT OPTION"}},
		"Owner":    {reason: "The owner before may no longer grant.", database: instance.Database{Name: "orders", Owner: "reports"}, existing: map[string]database{"orders": {owners: []string{"app"}}}, want: []string{"GRANT ALL ON `orders`.* TO 'reports'@'%' WITH GRANT OPTION", "REVOKE ALL PRIVILEGES ON `orders`.* FROM 'app'@'%'", "REVOKE GRANT OPTION ON `orders`.* FROM 'app'@'%'"}},
		"Theirs":   {reason: "What a user has granted to others stays.", database: instance.Database{Name: "orders", Owner: "app"}, existing: map[string]database{"orders": {owners: []string{"app", "dba"}}}},
		"Own":      {reason: "MySQL's own databases are not the claim's.", database: instance.Database{Name: "mysql", Owner: "app"}, message: "database mysql is MySQL's own: choose another name"},
		"NoOwner":  {reason: "An owner has to be a user.", database: instance.Database{Name: "orders", Owner: "x"}, message: "owner x of database orders is not among the users"},
	} {
		t.Run(name, func(t *testing.T) {
			got, message := planDatabase(c.database, c.existing, users)
			if diff := cmp.Diff(c.want, got); diff != "" {
				t.Errorf("%s\nplanDatabase(...): -want, +got:\n%s", c.reason, diff)
			}
			if message != c.message {
				t.Errorf("%s\nplanDatabase(...): got message %q, want %q", c.reason, message, c.message)
			}
		})
	}
}

func TestPlanDumps(t *testing.T) {
	got := planDumps(map[string]database{"orders": {}, "a_b": {owners: []string{"app"}}, "done": {dumped: true}, "mysql": {}, "sys": {}})
	want := []string{
		"GRANT SELECT, SHOW VIEW, TRIGGER, EVENT ON `a\\_b`.* TO 'storeplane_backup'@'%'",
		"GRANT SELECT, SHOW VIEW, TRIGGER, EVENT ON `orders`.* TO 'storeplane_backup'@'%'",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("planDumps(...): -want, +got:\n%s", diff)
	}
}
