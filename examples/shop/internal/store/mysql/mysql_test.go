package mysql_test

import (
	"errors"
	"os"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/storeplane/storeplane/examples/shop/internal/mysqltest"
	"github.com/storeplane/storeplane/examples/shop/internal/shop"
	"github.com/storeplane/storeplane/examples/shop/internal/store/engine"
	"github.com/storeplane/storeplane/examples/shop/internal/store/mysql"
)

func open(t *testing.T, uri string) *mysql.Database {
	t.Helper()
	db, err := mysql.Open(uri)
	if err != nil {
		t.Fatalf("Open(...): %v", err)
	}
	t.Cleanup(db.Close)
	return db
}

// TestServer: the database as it is seen through connections of every kind, while it is read-only,
// and after a migration that was cut off.
func TestServer(t *testing.T) {
	srv := mysqltest.Start(t)
	admin := srv.DB()
	t.Cleanup(func() { _ = admin.Close() })
	exec := func(t *testing.T, statement string) {
		t.Helper()
		if _, err := admin.ExecContext(t.Context(), statement); err != nil {
			t.Fatal(err)
		}
	}
	db := open(t, srv.URI)
	all, err := db.Migrations()
	if err != nil {
		t.Fatal(err)
	}
	if _, err := db.Migrate(t.Context(), all); err != nil {
		t.Fatalf("Migrate(...): %v", err)
	}

	t.Run("CutOff", func(t *testing.T) {
		// All of it was done, and none of it recorded.
		exec(t, `DELETE FROM schema_migrations`)
		names, err := db.Migrate(t.Context(), all)
		if len(names) != len(all) || err != nil {
			t.Errorf("Migrate(...): want %d migrations, got %v, %v", len(all), names, err)
		}
	})

	t.Run("Encryption", func(t *testing.T) {
		// The server made its certificate, which has no host's name, and the authority of it.
		other := filepath.Join(t.TempDir(), "other.pem")
		pem, err := os.ReadFile(filepath.Join(filepath.Dir(srv.Authority), "client-cert.pem"))
		if err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(other, pem, 0o600); err != nil {
			t.Fatal(err)
		}
		cases := map[string]struct {
			reason string
			query  string
			want   error
		}{
			"Disabled":       {reason: "The network may be trusted", query: "?ssl-mode=DISABLED"},
			"Preferred":      {reason: "The authority is not asked for", query: "?ssl-mode=PREFERRED"},
			"Required":       {reason: "Neither here", query: "?ssl-mode=required"},
			"VerifyCA":       {reason: "The authority vouches for a server of any name", query: "?ssl-mode=VERIFY_CA&ssl-ca=" + srv.Authority},
			"Implied":        {reason: "An authority means that it is verified", query: "?ssl-ca=" + other, want: engine.ErrNoAnswer},
			"OtherCA":        {reason: "Another authority does not vouch", query: "?ssl-mode=VERIFY_CA&ssl-ca=" + other, want: engine.ErrNoAnswer},
			"SystemCA":       {reason: "Neither do those of the system", query: "?ssl-mode=VERIFY_CA", want: engine.ErrNoAnswer},
			"VerifyIdentity": {reason: "A certificate without the host's name is not the host's", query: "?ssl-mode=VERIFY_IDENTITY&ssl-ca=" + srv.Authority, want: engine.ErrNoAnswer},
		}
		for name, tc := range cases {
			t.Run(name, func(t *testing.T) {
				_, err := open(t, srv.URI+tc.query).Ready(t.Context())
				if diff := cmp.Diff(tc.want, err, cmpopts.EquateErrors()); diff != "" {
					t.Errorf("\n%s\nReady(...): -want, +got:\n%s", tc.reason, diff)
				}
			})
		}
	})

	t.Run("ReadOnly", func(t *testing.T) {
		exec(t, `SET GLOBAL super_read_only = ON`)
		if _, err := db.Ready(t.Context()); !errors.Is(err, engine.ErrReadOnly) {
			t.Errorf("Ready(...) of a replica: want %v, got %v", engine.ErrReadOnly, err)
		}
		if _, err := db.Cart(t.Context(), shop.NewToken()); !errors.Is(err, engine.ErrReadOnly) || !db.Retryable(err) {
			t.Errorf("Cart(...) of a replica, which may be old: want %v, which may pass, got %v", engine.ErrReadOnly, err)
		}
		_, err := db.AddToCart(t.Context(), shop.NewToken(), "mug", 1)
		if !db.Retryable(err) {
			t.Errorf("AddToCart(...) on a replica: want an error that may pass, got %v", err)
		}
		exec(t, `SET GLOBAL super_read_only = OFF, read_only = OFF`)
		if _, err := db.AddToCart(t.Context(), shop.NewToken(), "mug", 1); err != nil {
			t.Errorf("AddToCart(...) on the primary: %v", err)
		}
	})

	t.Run("Down", func(t *testing.T) {
		srv.Own(t)
		srv.Down(syscall.SIGKILL)
		if _, err := db.Ready(t.Context()); !errors.Is(err, engine.ErrNoAnswer) {
			t.Errorf("Ready(...): want %v, got %v", engine.ErrNoAnswer, err)
		}
	})
}
