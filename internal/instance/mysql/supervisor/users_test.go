package supervisor

import (
	"context"
	"sync"
	"testing"

	"github.com/storeplane/storeplane/internal/instance"
	"github.com/storeplane/storeplane/internal/instance/mysql/server"
)

// TestOpens: a founder lets clients in although it refused that at first.
func TestOpens(t *testing.T) {
	w := newWorld(t, 1)
	var once sync.Once
	w.confirms = func(pod string) {
		once.Do(func() {
			if err := w.execute(pod, "SET GLOBAL super_read_only = ON"); err != nil {
				t.Error(err)
			}
		})
	}
	w.start(0)
	w.until("a confirmed founder", upWithin, func() bool { w.mu.Lock(); defer w.mu.Unlock(); return w.record.Confirmed })
	if err := w.execute(pod(0), "SET GLOBAL super_read_only = OFF"); err != nil {
		t.Fatal(err)
	}
	w.until("clients to be let in", upWithin, func() bool {
		// A subquery of two rows is an error, and is executed only while no clients are let in.
		return w.execute(pod(0), "DO IF(@@offline_mode, (SELECT 1 UNION SELECT 2), 0)") == nil
	})
}

// TestUsers: users and databases come as desired on a real server, a second pass changes nothing, and
// each user reaches its own database with its password, and no other.
func TestUsers(t *testing.T) {
	w := newWorld(t, 1)
	w.start(0)
	w.until("a primary", upWithin, func() bool { return w.leader() != "" })
	ctx, own := context.Background(), w.server(pod(0)).server
	users := []string{"app", "reports"}
	apply := func(password string) {
		t.Helper()
		problems, err := own.Users(ctx, []server.Login{{Name: "app", Password: password}, {Name: "reports", Password: "other"}})
		if err != nil || len(problems) > 0 {
			t.Fatalf("Users(...): %v, %v", problems, err)
		}
		problems, err = own.Databases(ctx, []instance.Database{{Name: "app", Owner: "app"}, {Name: "a_b", Owner: "reports"}}, users)
		if err != nil || len(problems) > 0 {
			t.Fatalf("Databases(...): %v, %v", problems, err)
		}
	}
	before := func() string {
		t.Helper()
		r, err := w.server(pod(0)).Report(ctx)
		if err != nil {
			t.Fatal(err)
		}
		return r.Transactions.String()
	}
	apply("first")
	was := before()
	apply("first")
	if now := before(); now != was {
		t.Errorf("a second pass has changed something: %s became %s", was, now)
	}
	apply("it's a \\ \"password\" äß€")

	ping := func(user, password, database string) error {
		db := w.open(pod(0), user, password, database)
		defer func() { _ = db.Close() }()
		return db.PingContext(ctx)
	}
	for _, c := range []struct {
		user, password, database string
		want                     bool
	}{
		{"app", "it's a \\ \"password\" äß€", "app", true},
		{"app", "first", "app", false},
		{"app", "it's a \\ \"password\" äß€", "a_b", false},
		{"reports", "other", "a_b", true},
		{"root", "", "mysql", false},
		{server.User, "", "mysql", false},
	} {
		if err := ping(c.user, c.password, c.database); (err == nil) != c.want {
			t.Errorf("%s connects to %s with %q: got %v", c.user, c.database, c.password, err)
		}
	}
	if err := w.execute(pod(0), "CREATE DATABASE axb"); err != nil {
		t.Fatal(err)
	}
	if err := ping("reports", "other", "axb"); err == nil {
		t.Error("reports connects to axb, which is not its own")
	}
}
