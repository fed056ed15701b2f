package store

import (
	"context"
	"database/sql"
	"errors"
	"log/slog"
	"os"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/storeplane/storeplane/examples/shop/internal/mysqltest"
	"github.com/storeplane/storeplane/examples/shop/internal/pgtest"
	"github.com/storeplane/storeplane/examples/shop/internal/shop"
)

var (
	allMigrations = []string{"0001_products", "0002_carts", "0003_orders", "0004_seed_products"}
	discard       = slog.New(slog.DiscardHandler)
)

// server is a real database with nothing in it.
type server interface {
	Own(t *testing.T)
	Up()
	Down(sig os.Signal)
	DB() *sql.DB
}

// database is a server of one engine, and how it is stopped.
type database struct {
	server

	uri         string
	stop, crash os.Signal
}

// exec runs statements on the database, beside the store.
func (d database) exec(t *testing.T, statements ...string) {
	t.Helper()
	db := d.DB()
	defer func() { _ = db.Close() }()
	for _, statement := range statements {
		if _, err := db.ExecContext(t.Context(), statement); err != nil {
			t.Fatal(err)
		}
	}
}

// onEach runs a test on a database of each engine.
func onEach(t *testing.T, test func(t *testing.T, db database)) {
	engines := map[string]func(t *testing.T) database{
		"PostgreSQL": func(t *testing.T) database {
			srv := pgtest.Start(t)
			return database{server: srv, uri: srv.URI, stop: syscall.SIGINT, crash: syscall.SIGQUIT}
		},
		"MySQL": func(t *testing.T) database {
			srv := mysqltest.Start(t)
			return database{server: srv, uri: srv.URI, stop: syscall.SIGTERM, crash: syscall.SIGKILL}
		},
	}
	for name, start := range engines {
		t.Run(name, func(t *testing.T) { test(t, start(t)) })
	}
}

func open(t *testing.T, uri string) *Store {
	t.Helper()
	s, err := Open(t.Context(), uri)
	if err != nil {
		t.Fatalf("Open(...): %v", err)
	}
	t.Cleanup(s.Close)
	return s
}

// migrated returns a store whose schema is up to date.
func migrated(t *testing.T, db database) *Store {
	t.Helper()
	s := open(t, db.uri)
	if _, err := s.Migrate(t.Context(), discard); err != nil {
		t.Fatalf("Migrate(...): %v", err)
	}
	return s
}

func TestMigrate(t *testing.T) { onEach(t, testMigrate) }

func testMigrate(t *testing.T, db database) {
	s := open(t, db.uri)

	if err := s.Ready(t.Context()); err == nil {
		t.Error("Ready(...): a database without a schema should not be ready")
	}

	// Several migrate at once, as when two Jobs overlap. Each migration is applied once.
	var wg sync.WaitGroup
	var mu sync.Mutex
	var applied []string
	for range 4 {
		wg.Go(func() {
			names, err := s.Migrate(t.Context(), discard)
			if err != nil {
				t.Errorf("Migrate(...): %v", err)
			}
			mu.Lock()
			defer mu.Unlock()
			applied = append(applied, names...)
		})
	}
	wg.Wait()
	if diff := cmp.Diff(allMigrations, applied); diff != "" {
		t.Errorf("Migrate(...) four times at once: -want, +got:\n%s", diff)
	}
	if err := s.Ready(t.Context()); err != nil {
		t.Errorf("Ready(...): %v", err)
	}

	// A deleted product is not created again, and a newer schema is not changed.
	db.exec(t, `DELETE FROM products WHERE id = 'lamp'`,
		`INSERT INTO schema_migrations (version, name) VALUES (99, '0099_from_the_future')`)
	again, err := s.Migrate(t.Context(), discard)
	if diff := cmp.Diff([]string(nil), again); diff != "" || err != nil {
		t.Errorf("Migrate(...) again: %v, -want, +got:\n%s", err, diff)
	}
	products, err := s.Products(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	var ids []string
	for _, p := range products {
		ids = append(ids, p.ID)
	}
	if diff := cmp.Diff([]string{"mug", "notebook", "tote", "beanie", "plant", "candle", "print"}, ids); diff != "" {
		t.Errorf("Products(...): -want, +got:\n%s", diff)
	}
	if err := s.Ready(t.Context()); err != nil {
		t.Errorf("Ready(...) with a newer schema: %v", err)
	}
}

func TestMigrateWaitsForTheDatabase(t *testing.T) { onEach(t, testMigrateWaitsForTheDatabase) }

func testMigrateWaitsForTheDatabase(t *testing.T, db database) {
	db.Own(t)
	db.Down(db.stop)
	s := open(t, db.uri)

	ctx, cancel := context.WithTimeout(t.Context(), 200*time.Millisecond)
	defer cancel()
	if _, err := s.Migrate(ctx, discard); err == nil {
		t.Error("Migrate(...): want an error while there is no database")
	}

	done := make(chan error, 1)
	go func() {
		_, err := s.Migrate(t.Context(), discard)
		done <- err
	}()
	db.Up()
	if err := <-done; err != nil {
		t.Errorf("Migrate(...): %v", err)
	}
}

func TestCart(t *testing.T) { onEach(t, testCart) }

func testCart(t *testing.T, db database) {
	s := migrated(t, db)

	type step func(ctx context.Context, session string) (shop.Cart, error)
	add := func(product string, quantity int64) step {
		return func(ctx context.Context, session string) (shop.Cart, error) {
			return s.AddToCart(ctx, session, product, quantity)
		}
	}
	set := func(product string, quantity int64) step {
		return func(ctx context.Context, session string) (shop.Cart, error) {
			return s.SetInCart(ctx, session, product, quantity)
		}
	}
	mug := func(n int64) shop.Line {
		return shop.Line{ProductID: "mug", Name: "Stoneware mug", Price: 1600, Quantity: n, Total: n * 1600}
	}
	tote := shop.Line{ProductID: "tote", Name: "Canvas tote", Price: 2400, Quantity: 2, Total: 4800}

	type want struct {
		Cart shop.Cart
		Err  error
	}
	cases := map[string]struct {
		reason string
		steps  []step
		want   want
	}{
		"Untouched": {
			reason: "A cart that was never filled is empty",
			want:   want{Cart: shop.Cart{Items: []shop.Line{}, Currency: "EUR"}},
		},
		"AddTwice": {
			reason: "What is added to the same product adds up, and products keep their order",
			steps:  []step{add("mug", 1), add("tote", 2), add("mug", 2)},
			want:   want{Cart: shop.Cart{Version: 3, Items: []shop.Line{mug(3), tote}, Count: 5, Total: 9600, Currency: "EUR"}},
		},
		"AddTooMuch": {
			reason: "A cart holds no more than it may",
			steps:  []step{add("mug", 60), add("mug", 60)},
			want:   want{Cart: shop.Cart{Version: 2, Items: []shop.Line{mug(99)}, Count: 99, Total: 158400, Currency: "EUR"}},
		},
		"SetAndTakeOut": {
			reason: "A quantity of 0 takes a product out",
			steps:  []step{set("mug", 5), set("tote", 1), set("mug", 2), set("tote", 0)},
			want:   want{Cart: shop.Cart{Version: 4, Items: []shop.Line{mug(2)}, Count: 2, Total: 3200, Currency: "EUR"}},
		},
		"Empty": {
			reason: "An emptied cart keeps counting its versions, so that a cached copy is known to be old",
			steps: []step{add("mug", 1), func(ctx context.Context, session string) (shop.Cart, error) {
				return s.EmptyCart(ctx, session)
			}},
			want: want{Cart: shop.Cart{Version: 2, Items: []shop.Line{}, Currency: "EUR"}},
		},
		"NoSuchProduct": {
			reason: "A product that does not exist cannot be added, and the cart stays as it was",
			steps:  []step{add("mug", 1), add("moon", 1)},
			want:   want{Cart: shop.Cart{Version: 1, Items: []shop.Line{mug(1)}, Count: 1, Total: 1600, Currency: "EUR"}, Err: shop.ErrNoSuchProduct},
		},
		"OtherCase": {
			reason: "Ids are compared by their bytes",
			steps:  []step{add("mug", 1), add("MUG", 1)},
			want:   want{Cart: shop.Cart{Version: 1, Items: []shop.Line{mug(1)}, Count: 1, Total: 1600, Currency: "EUR"}, Err: shop.ErrNoSuchProduct},
		},
		"TrailingSpace": {
			reason: "A space is a byte, also at the end",
			steps:  []step{add("mug", 1), set("mug ", 0)},
			want:   want{Cart: shop.Cart{Version: 2, Items: []shop.Line{mug(1)}, Count: 1, Total: 1600, Currency: "EUR"}},
		},
		"LongId": {
			reason: "An id of any length and alphabet is one of no product",
			steps:  []step{add("mug", 1), add(strings.Repeat("ü", 1000), 1)},
			want:   want{Cart: shop.Cart{Version: 1, Items: []shop.Line{mug(1)}, Count: 1, Total: 1600, Currency: "EUR"}, Err: shop.ErrNoSuchProduct},
		},
		"Negative": {
			reason: "A quantity below zero is refused",
			steps:  []step{add("mug", -1)},
			want:   want{Cart: shop.Cart{Items: []shop.Line{}, Currency: "EUR"}, Err: shop.ErrQuantity},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			session := shop.NewToken()
			var err error
			for _, step := range tc.steps {
				_, err = step(t.Context(), session)
			}
			cart, errRead := s.Cart(t.Context(), session)
			if errRead != nil {
				t.Fatal(errRead)
			}
			if diff := cmp.Diff(tc.want, want{Cart: cart, Err: err}, cmpopts.EquateErrors()); diff != "" {
				t.Errorf("\n%s\nCart(...): -want, +got:\n%s", tc.reason, diff)
			}
		})
	}
}

func TestPlaceOrder(t *testing.T) { onEach(t, testPlaceOrder) }

func testPlaceOrder(t *testing.T, db database) {
	s := migrated(t, db)
	ctx := t.Context()

	filled := func(t *testing.T) string {
		t.Helper()
		session := shop.NewToken()
		if _, err := s.AddToCart(ctx, session, "mug", 2); err != nil {
			t.Fatal(err)
		}
		return session
	}
	place := func(t *testing.T, session, id, key string) shop.Placement {
		t.Helper()
		p, err := s.PlaceOrder(ctx, session, id, key)
		if err != nil {
			t.Fatalf("PlaceOrder(...): %v", err)
		}
		return p
	}

	t.Run("EmptiesTheCartAndKeepsPrices", func(t *testing.T) {
		session := filled(t)
		id := shop.NewToken()
		placed := place(t, session, id, "")
		db.exec(t, `UPDATE products SET price = price + 1 WHERE id = 'mug'`)
		defer db.exec(t, `UPDATE products SET price = price - 1 WHERE id = 'mug'`)

		want := shop.Order{
			ID: id, Total: 3200, Currency: "EUR", CreatedAt: placed.Order.CreatedAt,
			Items: []shop.Line{{ProductID: "mug", Name: "Stoneware mug", Price: 1600, Quantity: 2, Total: 3200}},
		}
		got, err := s.Order(ctx, session, id)
		if diff := cmp.Diff(want, got); diff != "" || err != nil {
			t.Errorf("Order(...): %v, -want, +got:\n%s", err, diff)
		}
		if diff := cmp.Diff(want, placed.Order); diff != "" {
			t.Errorf("PlaceOrder(...): -want, +got:\n%s", diff)
		}
		cart, err := s.Cart(ctx, session)
		if diff := cmp.Diff(placed.Cart, cart); diff != "" || err != nil || cart.Count != 0 {
			t.Errorf("Cart(...): %v, -placed, +got:\n%s", err, diff)
		}
	})

	t.Run("RepeatedByKeyAndById", func(t *testing.T) {
		session := filled(t)
		id, key := shop.NewToken(), shop.NewToken()
		first := place(t, session, id, key)
		if _, err := s.AddToCart(ctx, session, "tote", 1); err != nil {
			t.Fatal(err)
		}
		for _, again := range []shop.Placement{place(t, session, shop.NewToken(), key), place(t, session, id, "")} {
			if again.Made {
				t.Error("PlaceOrder(...) again: want the first order, got a new one")
			}
			if diff := cmp.Diff(first.Order, again.Order); diff != "" {
				t.Errorf("PlaceOrder(...) again: -first, +again:\n%s", diff)
			}
			if again.Cart.Count != 1 {
				t.Errorf("PlaceOrder(...) again: the cart should be left alone, it holds %d", again.Cart.Count)
			}
		}
	})

	t.Run("SameKeyAtOnce", func(t *testing.T) {
		session, key := filled(t), shop.NewToken()
		var wg sync.WaitGroup
		made := make(chan bool, 8)
		for range cap(made) {
			wg.Go(func() { made <- place(t, session, shop.NewToken(), key).Made })
		}
		wg.Wait()
		close(made)
		count := 0
		for m := range made {
			if m {
				count++
			}
		}
		orders, err := s.Orders(ctx, session, 100)
		if count != 1 || len(orders) != 1 || err != nil {
			t.Errorf("8 requests with one key: want 1 order, got %d made and %d stored (%v)", count, len(orders), err)
		}
	})

	t.Run("Refusals", func(t *testing.T) {
		if _, err := s.PlaceOrder(ctx, shop.NewToken(), shop.NewToken(), ""); !errors.Is(err, shop.ErrEmptyCart) {
			t.Errorf("PlaceOrder(...) of an empty cart: %v", err)
		}
		session, id := filled(t), shop.NewToken()
		place(t, session, id, "")
		if _, err := s.Order(ctx, shop.NewToken(), id); !errors.Is(err, shop.ErrNoSuchOrder) {
			t.Errorf("Order(...) of another session: %v", err)
		}
	})

	t.Run("LatestFirst", func(t *testing.T) {
		session := shop.NewToken()
		var want []string
		for i := range 3 {
			if _, err := s.SetInCart(ctx, session, "mug", int64(i+1)); err != nil {
				t.Fatal(err)
			}
			id := strconv.Itoa(i) + shop.NewToken()
			place(t, session, id, "")
			want = append([]string{id}, want...)
		}
		orders, err := s.Orders(ctx, session, 2)
		if err != nil {
			t.Fatal(err)
		}
		var got []string
		for _, o := range orders {
			got = append(got, o.ID)
		}
		if diff := cmp.Diff(want[:2], got); diff != "" {
			t.Errorf("Orders(...): -want, +got:\n%s", diff)
		}
	})
}

func TestPruneCarts(t *testing.T) { onEach(t, testPruneCarts) }

func testPruneCarts(t *testing.T, db database) {
	s := migrated(t, db)
	ctx := t.Context()
	old, fresh := shop.NewToken(), shop.NewToken()
	for _, session := range []string{old, fresh} {
		if _, err := s.AddToCart(ctx, session, "mug", 1); err != nil {
			t.Fatal(err)
		}
	}
	db.exec(t, `UPDATE carts SET updated_at = now() - interval '31' day WHERE session = '`+old+`'`)
	if n, err := s.PruneCarts(ctx, 30*24*time.Hour); n != 1 || err != nil {
		t.Errorf("PruneCarts(...): want 1 cart, got %d, %v", n, err)
	}
	if cart, err := s.Cart(ctx, fresh); cart.Count != 1 || err != nil {
		t.Errorf("Cart(...): the fresh cart should stay, got %d, %v", cart.Count, err)
	}
}

// TestCrash: when the database crashes and restarts while orders are placed, every acknowledged
// order is stored exactly once.
func TestCrash(t *testing.T) { onEach(t, testCrash) }

func testCrash(t *testing.T, db database) {
	db.Own(t)
	s := migrated(t, db)
	const workers, each = 4, 25

	var wg sync.WaitGroup
	var mu sync.Mutex
	acknowledged := map[string]int{}
	halfway := make(chan struct{}, workers)
	for range workers {
		wg.Go(func() {
			session := shop.NewToken()
			for i := range each {
				if i == each/2 {
					halfway <- struct{}{}
				}
				if _, err := s.SetInCart(t.Context(), session, "mug", 1); err != nil {
					t.Errorf("SetInCart(...): %v", err)
					continue
				}
				p, err := s.PlaceOrder(t.Context(), session, shop.NewToken(), "")
				if err != nil {
					t.Errorf("PlaceOrder(...): %v", err)
					continue
				}
				mu.Lock()
				acknowledged[p.Order.ID]++
				mu.Unlock()
			}
		})
	}
	<-halfway
	db.Down(db.crash)
	if err := s.Ready(t.Context()); err == nil {
		t.Error("Ready(...): want an error while the database is down")
	}
	db.Up()
	wg.Wait()

	stored := map[string]int{}
	direct := db.DB()
	defer func() { _ = direct.Close() }()
	rows, err := direct.QueryContext(t.Context(), `SELECT id FROM orders`)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = rows.Close() }()
	for rows.Next() {
		var id string
		if err := rows.Scan(&id); err != nil {
			t.Fatal(err)
		}
		stored[id]++
	}
	if diff := cmp.Diff(acknowledged, stored); diff != "" || len(stored) != workers*each {
		t.Errorf("orders: want %d, got %d; -acknowledged, +stored:\n%s", workers*each, len(stored), diff)
	}
}

func TestOpenHidesSecrets(t *testing.T) {
	cases := map[string]struct {
		reason string
		uri    string
	}{
		"BrokenEscape": {reason: "A password that was not escaped should not be printed", uri: "postgres://shop:hunter%2@db/shop"},
		"BadPort":      {reason: "Neither with a bad port", uri: "postgres://shop:hunter2@db:none/shop"},
		"OtherScheme":  {reason: "Nor for another database", uri: "mongodb://shop:hunter2@db/shop"},
		"MySQLEscape":  {reason: "MySQL's URI holds a password as well", uri: "mysql://shop:hunter%2@db/shop"},
		"MySQLPort":    {reason: "Neither with a bad port", uri: "mysql://shop:hunter2@db:none/shop"},
		"MySQLMode":    {reason: "Nor with a mode that does not exist", uri: "mysql://shop:pw@db/shop?ssl-mode=hunter2"},
		"MySQLSetting": {reason: "Nor with another parameter", uri: "mysql://shop:pw@db/shop?hunter=2"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			_, err := Open(t.Context(), tc.uri)
			if err == nil || strings.Contains(err.Error(), "hunter") {
				t.Errorf("\n%s\nOpen(...): want an error without the password, got: %v", tc.reason, err)
			}
		})
	}
}
