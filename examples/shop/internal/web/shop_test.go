package web_test

import (
	"encoding/json"
	"io"
	"log/slog"
	"net/http"
	"net/http/cookiejar"
	"net/http/httptest"
	"net/url"
	"regexp"
	"strings"
	"syscall"
	"testing"

	"github.com/storeplane/storeplane/examples/shop/internal/api"
	"github.com/storeplane/storeplane/examples/shop/internal/cache"
	"github.com/storeplane/storeplane/examples/shop/internal/pgtest"
	"github.com/storeplane/storeplane/examples/shop/internal/shop"
	"github.com/storeplane/storeplane/examples/shop/internal/store"
	"github.com/storeplane/storeplane/examples/shop/internal/web"
)

// TestShop: a visitor can buy something in the whole shop, with the frontend, the backend and a
// real database, while the cache is down.
func TestShop(t *testing.T) {
	srv := pgtest.Start(t)
	log := slog.New(slog.DiscardHandler)
	never := func() bool { return false }

	db, err := store.Open(t.Context(), srv.URI)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(db.Close)
	if _, err := db.Migrate(t.Context(), log); err != nil {
		t.Fatal(err)
	}
	broken, err := cache.Open("redis://:pw@127.0.0.1:1/0", "", log)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(broken.Close)

	backend := httptest.NewServer((&api.Server{Store: db, Cache: broken, Log: log, Draining: never}).Handler())
	t.Cleanup(backend.Close)
	client, err := web.NewBackend(backend.URL)
	if err != nil {
		t.Fatal(err)
	}
	front := httptest.NewServer((&web.Server{Backend: client, Log: log, Draining: never}).Handler())
	t.Cleanup(front.Close)

	jar, err := cookiejar.New(nil)
	if err != nil {
		t.Fatal(err)
	}
	browser := &http.Client{Jar: jar}
	page := func(res *http.Response, err error) string {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = res.Body.Close() }()
		b, err := io.ReadAll(res.Body)
		if err != nil || res.StatusCode != http.StatusOK {
			t.Fatalf("%s: %s, %v\n%s", res.Request.URL, res.Status, err, b)
		}
		return res.Request.URL.Path + "\n" + string(b)
	}
	expect := func(got string, want ...string) {
		t.Helper()
		for _, s := range want {
			if !strings.Contains(got, s) {
				t.Fatalf("want %q in:\n%s", s, got)
			}
		}
	}

	expect(page(browser.Get(front.URL+"/")), "Stoneware mug", "€16.00")
	expect(page(browser.PostForm(front.URL+"/cart", url.Values{"product": {"mug"}})), "/\n", "is in your cart", `badge full">1`)
	expect(page(browser.PostForm(front.URL+"/cart", url.Values{"product": {"lamp"}})), `badge full">2`)
	expect(page(browser.PostForm(front.URL+"/cart/mug", url.Values{"quantity": {"3"}})), "/cart\n", "€112.00")

	cart := page(browser.Get(front.URL + "/cart"))
	key := regexp.MustCompile(`name="key" value="([^"]+)"`).FindStringSubmatch(cart)
	if key == nil {
		t.Fatalf("the cart has no form to order with:\n%s", cart)
	}
	first := page(browser.PostForm(front.URL+"/orders", url.Values{"key": {key[1]}}))
	expect(first, "/orders/", "Thank you for your order", "3 × €16.00", "€112.00", `badge">0`)
	again := page(browser.PostForm(front.URL+"/orders", url.Values{"key": {key[1]}}))
	if first != again {
		t.Errorf("the form sent twice: want the same order, got:\n%s\nand:\n%s", first, again)
	}
	path, _, _ := strings.Cut(first, "\n")
	expect(page(browser.Get(front.URL+"/orders")), `href="`+path+`"`)

	// The API returns the same order, through the frontend and with the browser's cookie.
	var order shop.Order
	raw := page(browser.Get(front.URL + "/api" + path))
	if err := json.Unmarshal([]byte(raw[strings.Index(raw, "\n"):]), &order); err != nil || order.Total != 11200 {
		t.Errorf("GET /api%s: want a total of 11200, got %d, %v", path, order.Total, err)
	}
	expect(page(browser.Get(front.URL+"/readyz")), `"ready":true`)
	expect(page(http.Get(backend.URL+"/readyz")), `"cache":{"ok":false,"required":false`)

	t.Run("DatabaseDown", func(t *testing.T) {
		srv.Own(t)
		srv.Down(syscall.SIGQUIT)
		res, err := browser.Get(front.URL + "/readyz")
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = res.Body.Close() }()
		b, _ := io.ReadAll(res.Body)
		if res.StatusCode != http.StatusServiceUnavailable || !strings.Contains(string(b), "database") {
			t.Errorf("/readyz without a database: %s\n%s", res.Status, b)
		}
		srv.Up()
		expect(page(browser.Get(front.URL+"/orders")), `href="`+path+`"`)
	})
}
