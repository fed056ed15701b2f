package api

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/storeplane/storeplane/examples/shop/internal/cache"
	"github.com/storeplane/storeplane/examples/shop/internal/shop"
	"github.com/storeplane/storeplane/examples/shop/internal/store"
)

const token = "0123456789abcdef"

// A fakeStore returns the same results for every request.
type fakeStore struct {
	cart  shop.Cart
	made  bool
	err   error
	ready error
}

func (f *fakeStore) Ready(context.Context) error { return f.ready }

func (f *fakeStore) Products(context.Context) ([]shop.Product, error) {
	return []shop.Product{{ID: "mug", Name: "Mug", Price: 1600, Currency: "EUR"}}, f.err
}
func (f *fakeStore) Cart(context.Context, string) (shop.Cart, error) { return f.cart, f.err }
func (f *fakeStore) AddToCart(_ context.Context, _, product string, quantity int64) (shop.Cart, error) {
	return shop.NewCart(1, []shop.Line{{ProductID: product, Quantity: quantity}}), f.err
}

func (f *fakeStore) SetInCart(_ context.Context, _, product string, quantity int64) (shop.Cart, error) {
	return shop.NewCart(2, []shop.Line{{ProductID: product, Quantity: quantity}}), f.err
}

func (f *fakeStore) EmptyCart(context.Context, string) (shop.Cart, error) {
	return shop.NewCart(3, nil), f.err
}

func (f *fakeStore) PlaceOrder(_ context.Context, _, _, key string) (shop.Placement, error) {
	return shop.Placement{Order: shop.Order{ID: "of-" + key, Total: 1600}, Made: f.made}, f.err
}

func (f *fakeStore) Order(_ context.Context, _, id string) (shop.Order, error) {
	return shop.Order{ID: id}, f.err
}

func (f *fakeStore) Orders(_ context.Context, _ string, limit int) ([]shop.Order, error) {
	return make([]shop.Order, min(limit, 3)), f.err
}

func TestHandler(t *testing.T) {
	type want struct {
		Status int
		Body   map[string]any // The fields of the response that are compared.
	}
	problem := func(code string) map[string]any { return map[string]any{"error.code": code} }
	cases := map[string]struct {
		reason string
		store  fakeStore
		method string
		path   string
		key    string
		body   string
		want   want
	}{
		"Alive": {
			reason: "A process without its database is alive: to restart it would not help",
			store:  fakeStore{ready: errors.New("down"), err: store.ErrUnavailable},
			method: "GET", path: "/healthz",
			want: want{Status: 200, Body: map[string]any{"alive": true}},
		},
		"Ready": {
			reason: "A shop without a cache is ready",
			method: "GET", path: "/readyz",
			want: want{Status: 200, Body: map[string]any{"ready": true, "checks.database.ok": true, "checks.cache": nil}},
		},
		"NotReady": {
			reason: "Which dependency is down should be said",
			store:  fakeStore{ready: errors.New("the database does not answer in time")},
			method: "GET", path: "/readyz",
			want: want{Status: 503, Body: map[string]any{"ready": false, "reason": "database: the database does not answer in time", "checks.database.required": true}},
		},
		"Products": {
			reason: "Amounts are in cents",
			method: "GET", path: "/api/products",
			want: want{Status: 200, Body: map[string]any{"products.0.id": "mug", "products.0.price": 1600.0}},
		},
		"AddOne": {
			reason: "Without a quantity, one piece is meant",
			method: "POST", path: "/api/cart", body: `{"productId":"mug"}`,
			want: want{Status: 200, Body: map[string]any{"items.0.productId": "mug", "items.0.quantity": 1.0}},
		},
		"Set": {
			reason: "PUT says how much there is",
			method: "PUT", path: "/api/cart", body: `{"productId":"mug","quantity":4}`,
			want: want{Status: 200, Body: map[string]any{"items.0.quantity": 4.0, "version": 2.0}},
		},
		"SetWithoutQuantity": {
			reason: "To set a quantity that was not given could only be a guess",
			method: "PUT", path: "/api/cart", body: `{"productId":"mug"}`,
			want: want{Status: 400, Body: problem("bad_quantity")},
		},
		"TakeOut": {
			reason: "DELETE with a product takes out that product",
			method: "DELETE", path: "/api/cart?productId=tote",
			want: want{Status: 200, Body: map[string]any{"items.0.productId": "tote", "items.0.quantity": 0.0}},
		},
		"Empty": {
			reason: "DELETE takes out everything",
			method: "DELETE", path: "/api/cart",
			want: want{Status: 200, Body: map[string]any{"version": 3.0, "count": 0.0}},
		},
		"NotJSON": {
			reason: "A body that is no JSON is the client's mistake",
			method: "POST", path: "/api/cart", body: `productId=mug`,
			want: want{Status: 400, Body: problem("bad_body")},
		},
		"UnknownField": {
			reason: "A misspelt field should not be ignored",
			method: "POST", path: "/api/cart", body: `{"product":"mug"}`,
			want: want{Status: 400, Body: problem("bad_body")},
		},
		"HugeBody": {
			reason: "A body has a bound",
			method: "POST", path: "/api/cart", body: `{"productId":"` + strings.Repeat("m", maxBody) + `"}`,
			want: want{Status: 400, Body: problem("bad_body")},
		},
		"NoSuchProduct": {
			reason: "What does not exist is not found",
			store:  fakeStore{err: shop.ErrNoSuchProduct},
			method: "POST", path: "/api/cart", body: `{"productId":"moon"}`,
			want: want{Status: 404, Body: problem("no_such_product")},
		},
		"OrderMade": {
			reason: "A new order is created",
			store:  fakeStore{made: true},
			method: "POST", path: "/api/orders", key: token,
			want: want{Status: 201, Body: map[string]any{"id": "of-" + token, "total": 1600.0}},
		},
		"OrderRepeated": {
			reason: "An order that was there is returned, and not called created",
			method: "POST", path: "/api/orders", key: token,
			want: want{Status: 200, Body: map[string]any{"id": "of-" + token}},
		},
		"BadKey": {
			reason: "A key that is too short to be one is refused, rather than confused with another's",
			method: "POST", path: "/api/orders", key: "1",
			want: want{Status: 400, Body: problem("bad_idempotency_key")},
		},
		"EmptyCart": {
			reason: "There is nothing to order",
			store:  fakeStore{err: fmt.Errorf("cannot place the order: %w", shop.ErrEmptyCart)},
			method: "POST", path: "/api/orders",
			want: want{Status: 409, Body: problem("empty_cart")},
		},
		"Unavailable": {
			reason: "A client may try again, and learns no host name",
			store:  fakeStore{err: fmt.Errorf("%w: dial db.internal: refused", store.ErrUnavailable)},
			method: "POST", path: "/api/orders",
			want: want{Status: 503, Body: map[string]any{"error.code": "unavailable", "error.message": "the shop cannot reach its database, please try again"}},
		},
		"Internal": {
			reason: "What is wrong with the shop stays in its log",
			store:  fakeStore{err: errors.New("column secret does not exist")},
			method: "GET", path: "/api/products",
			want: want{Status: 500, Body: map[string]any{"error.code": "internal", "error.message": "something went wrong"}},
		},
		"Limit": {
			reason: "A list is as long as asked for",
			method: "GET", path: "/api/orders?limit=2",
			want: want{Status: 200, Body: map[string]any{"orders.1.total": 0.0, "orders.2": nil}},
		},
		"BadLimit": {
			reason: "A list has a bound",
			method: "GET", path: "/api/orders?limit=100000",
			want: want{Status: 400, Body: problem("bad_limit")},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			var none *cache.Carts
			s := &Server{Store: &tc.store, Cache: none, Log: slog.New(slog.DiscardHandler), Draining: func() bool { return false }}
			r := httptest.NewRequest(tc.method, tc.path, strings.NewReader(tc.body))
			r.Header.Set(shop.SessionHeader, token)
			if tc.key != "" {
				r.Header.Set(shop.KeyHeader, tc.key)
			}
			w := httptest.NewRecorder()
			s.Handler().ServeHTTP(w, r)

			var body any
			if err := json.Unmarshal(w.Body.Bytes(), &body); err != nil {
				t.Fatalf("\n%s\ncannot parse %q: %v", tc.reason, w.Body, err)
			}
			got := want{Status: w.Code, Body: map[string]any{}}
			for path := range tc.want.Body {
				got.Body[path] = field(body, path)
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("\n%s\n%s %s: -want, +got:\n%s", tc.reason, tc.method, tc.path, diff)
			}
		})
	}
}

// field returns the value at a path such as items.0.quantity, or nil.
func field(v any, path string) any {
	for name := range strings.SplitSeq(path, ".") {
		switch t := v.(type) {
		case map[string]any:
			v = t[name]
		case []any:
			i := int(name[0] - '0')
			if i >= len(t) {
				return nil
			}
			v = t[i]
		default:
			return nil
		}
	}
	return v
}

func TestDraining(t *testing.T) {
	var none *cache.Carts
	s := &Server{Store: &fakeStore{}, Cache: none, Log: slog.New(slog.DiscardHandler), Draining: func() bool { return true }}
	w := httptest.NewRecorder()
	s.Handler().ServeHTTP(w, httptest.NewRequest(http.MethodGet, "/readyz", nil))
	if w.Code != http.StatusServiceUnavailable {
		t.Errorf("/readyz while draining: want 503, got %d", w.Code)
	}
}

func TestSession(t *testing.T) {
	type want struct {
		Kept   bool
		Cookie bool
		Secure bool
	}
	cases := map[string]struct {
		reason string
		header string
		cookie string
		proto  string
		want   want
	}{
		"Header":     {reason: "A program brings its session in a header", header: token, want: want{Kept: true}},
		"Cookie":     {reason: "A browser brings it in a cookie", cookie: token, want: want{Kept: true}},
		"None":       {reason: "A new visitor gets one", want: want{Cookie: true}},
		"Malformed":  {reason: "What cannot be a session is replaced", header: "a b", want: want{Cookie: true}},
		"OverSecure": {reason: "A visitor who came by https never shows the session elsewhere", proto: "https", want: want{Cookie: true, Secure: true}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			var none *cache.Carts
			s := &Server{Store: &fakeStore{}, Cache: none, Log: slog.New(slog.DiscardHandler)}
			r := httptest.NewRequest(http.MethodGet, "/api/cart", nil)
			r.Header.Set(shop.SessionHeader, tc.header)
			r.Header.Set("X-Forwarded-Proto", tc.proto)
			if tc.cookie != "" {
				r.AddCookie(&http.Cookie{Name: shop.SessionCookie, Value: tc.cookie})
			}
			w := httptest.NewRecorder()
			s.Handler().ServeHTTP(w, r)

			got := want{Kept: w.Header().Get(shop.SessionHeader) == token}
			for _, c := range w.Result().Cookies() {
				got.Cookie = c.HttpOnly && c.SameSite == http.SameSiteLaxMode && shop.ValidToken(c.Value)
				got.Secure = c.Secure
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("\n%s\nGET /api/cart: -want, +got:\n%s", tc.reason, diff)
			}
		})
	}
}
