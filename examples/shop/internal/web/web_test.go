package web

import (
	"encoding/json"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/storeplane/storeplane/examples/shop/internal/serve"
	"github.com/storeplane/storeplane/examples/shop/internal/shop"
)

const token = "0123456789abcdef"

// frontend starts a backend with the given handler and returns a frontend for it.
func frontend(t *testing.T, backend http.Handler) http.Handler {
	t.Helper()
	srv := httptest.NewServer(backend)
	t.Cleanup(srv.Close)
	return frontendOf(t, srv.URL)
}

func frontendOf(t *testing.T, address string) http.Handler {
	t.Helper()
	b, err := NewBackend(address)
	if err != nil {
		t.Fatal(err)
	}
	s := &Server{Backend: b, Log: slog.New(slog.DiscardHandler), Draining: func() bool { return false }}
	return s.Handler()
}

func do(h http.Handler, method, target string, form url.Values, headers ...string) *http.Response {
	r := httptest.NewRequest(method, target, strings.NewReader(form.Encode()))
	if form != nil {
		r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	}
	for i := 0; i+1 < len(headers); i += 2 {
		r.Header.Set(headers[i], headers[i+1])
	}
	w := httptest.NewRecorder()
	h.ServeHTTP(w, r)
	return w.Result()
}

func text(t *testing.T, res *http.Response) string {
	t.Helper()
	b, err := io.ReadAll(res.Body)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

// answers returns a backend with a fixed response for each route: a body, or the status of an
// error.
func answers(routes map[string]any) http.Handler {
	mux := http.NewServeMux()
	for route, v := range routes {
		mux.HandleFunc(route, func(w http.ResponseWriter, _ *http.Request) {
			switch v {
			case http.StatusNotFound:
				serve.JSON(w, http.StatusNotFound, map[string]any{"error": map[string]string{"code": "no_such_order"}})
				return
			case http.StatusServiceUnavailable:
				serve.JSON(w, http.StatusServiceUnavailable, map[string]any{"error": map[string]string{"code": "unavailable"}})
				return
			}
			serve.JSON(w, http.StatusOK, v)
		})
	}
	return mux
}

func TestPages(t *testing.T) {
	mug := shop.Line{ProductID: "mug", Name: "Mug", Price: 1600, Quantity: 2}
	full := answers(map[string]any{
		"GET /api/products":      map[string]any{"products": []shop.Product{{ID: "x", Name: "<script>alert(1)</script>", Price: 1605, Currency: "EUR"}}},
		"GET /api/cart":          shop.NewCart(1, []shop.Line{mug}),
		"GET /api/orders/{id}":   shop.Order{ID: "order-1", Items: []shop.Line{mug}, Total: 3200, Currency: "EUR"},
		"GET /api/orders":        map[string]any{"orders": []shop.Order{{ID: "order-1", Items: []shop.Line{mug}, Total: 3200, Currency: "EUR"}}},
		"GET /api/orders/theirs": 404,
	})
	type want struct {
		Status  int
		Holds   []string
		Without []string
	}
	cases := map[string]struct {
		reason  string
		backend http.Handler
		path    string
		want    want
	}{
		"Products": {
			reason:  "What the backend says is text and never markup",
			backend: full, path: "/",
			want: want{Status: 200, Holds: []string{"&lt;script&gt;", "€16.05", `class="badge full">2`}, Without: []string{"<script"}},
		},
		"Added": {
			reason:  "A product that was just added is named",
			backend: full, path: "/?added=x",
			want: want{Status: 200, Holds: []string{"is in your cart"}},
		},
		"AddedForged": {
			reason:  "A forged address puts no text on our page",
			backend: full, path: "/?added=free+money",
			want: want{Status: 200, Without: []string{"is in your cart", "free money"}},
		},
		"Cart": {
			reason:  "The form that orders holds a key, so that sending it twice makes one order",
			backend: full, path: "/cart",
			want: want{Status: 200, Holds: []string{"€32.00", `name="key" value="`}},
		},
		"Order": {
			reason:  "An order shows what was bought",
			backend: full, path: "/orders/order-1",
			want: want{Status: 200, Holds: []string{"order-1", "2 × €16.00", "€32.00"}},
		},
		"Orders": {
			reason:  "The orders lead to each one",
			backend: full, path: "/orders",
			want: want{Status: 200, Holds: []string{`href="/orders/order-1"`}},
		},
		"NotTheirs": {
			reason:  "What the backend does not find is a page, too",
			backend: full, path: "/orders/theirs",
			want: want{Status: 404, Holds: []string{"There is no such order"}},
		},
		"Nothing": {
			reason:  "So is an address that leads nowhere",
			backend: full, path: "/wp-admin",
			want: want{Status: 404, Holds: []string{"There is nothing here"}},
		},
		"CartDown": {
			reason:  "Products are shown though the cart cannot be read",
			backend: answers(map[string]any{"GET /api/products": map[string]any{"products": []shop.Product{{ID: "mug", Name: "Mug", Price: 1, Currency: "EUR"}}}, "GET /api/cart": 503}),
			path:    "/",
			want:    want{Status: 200, Holds: []string{"Mug", "€0.01"}, Without: []string{"badge full"}},
		},
		"BackendDown": {
			reason:  "A visitor is told to come back, and not why",
			backend: answers(map[string]any{"GET /api/products": 503}),
			path:    "/",
			want:    want{Status: 503, Holds: []string{"The shop needs a moment"}, Without: []string{"http://127"}},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			res := do(frontend(t, tc.backend), "GET", tc.path, nil, shop.SessionHeader, token)
			body := text(t, res)
			got := want{Status: res.StatusCode}
			for _, s := range tc.want.Holds {
				if strings.Contains(body, s) {
					got.Holds = append(got.Holds, s)
				}
			}
			for _, s := range tc.want.Without {
				if !strings.Contains(body, s) {
					got.Without = append(got.Without, s)
				}
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("\n%s\nGET %s: -want, +got:\n%s", tc.reason, tc.path, diff)
			}
			for _, h := range []string{"Content-Security-Policy", "X-Content-Type-Options", "X-Frame-Options", "Referrer-Policy"} {
				if res.Header.Get(h) == "" {
					t.Errorf("\n%s\nGET %s: want the header %s", tc.reason, tc.path, h)
				}
			}
			// html/template must not change the style, or its hash would not match.
			if !strings.Contains(body, "<style>"+css+"</style>") {
				t.Errorf("\n%s\nGET %s: the style differs from the one that the policy allows", tc.reason, tc.path)
			}
		})
	}
}

func TestForms(t *testing.T) {
	// reached are the requests to the backend, as method, path, session, key and body.
	var reached []string
	backend := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		b, _ := io.ReadAll(r.Body)
		reached = append(reached, strings.Join([]string{r.Method, r.URL.Path, r.Header.Get(shop.SessionHeader), r.Header.Get(shop.KeyHeader), string(b)}, " "))
		serve.JSON(w, http.StatusOK, shop.Order{ID: "order-1"})
	})
	type want struct {
		Status   int
		Location string
		Reached  []string
	}
	cases := map[string]struct {
		reason  string
		path    string
		form    url.Values
		headers []string
		want    want
	}{
		"Add": {
			reason: "A product is added, and the visitor stays at the shelves",
			path:   "/cart", form: url.Values{"product": {"mug"}},
			want: want{Status: 303, Location: "/?added=mug", Reached: []string{`POST /api/cart 0123456789abcdef  {"productId":"mug","quantity":1}`}},
		},
		"Update": {
			reason: "A quantity is set",
			path:   "/cart/mug", form: url.Values{"quantity": {"3"}},
			want: want{Status: 303, Location: "/cart", Reached: []string{`PUT /api/cart 0123456789abcdef  {"productId":"mug","quantity":3}`}},
		},
		"Remove": {
			reason: "The button that removes wins over the quantity beside it",
			path:   "/cart/mug", form: url.Values{"quantity": {"3"}, "remove": {"yes"}},
			want: want{Status: 303, Location: "/cart", Reached: []string{`PUT /api/cart 0123456789abcdef  {"productId":"mug","quantity":0}`}},
		},
		"BadQuantity": {
			reason: "What is no number goes nowhere",
			path:   "/cart/mug", form: url.Values{"quantity": {"many"}},
			want: want{Status: 400},
		},
		"Order": {
			reason: "The form's key goes with the order",
			path:   "/orders", form: url.Values{"key": {"key-0123456789abc"}},
			want: want{Status: 303, Location: "/orders/order-1", Reached: []string{`POST /api/orders 0123456789abcdef key-0123456789abc `}},
		},
		"CrossSite": {
			reason: "A form on another site changes nothing",
			path:   "/orders", form: url.Values{"key": {"key-0123456789abc"}}, headers: []string{"Sec-Fetch-Site", "cross-site"},
			want: want{Status: 403},
		},
		"CrossOriginOldBrowser": {
			reason: "Nor when the browser only says its origin",
			path:   "/cart", form: url.Values{"product": {"mug"}}, headers: []string{"Origin", "https://other.example"},
			want: want{Status: 403},
		},
		"SameOrigin": {
			reason: "Our own form does",
			path:   "/cart", form: url.Values{"product": {"mug"}}, headers: []string{"Sec-Fetch-Site", "same-origin"},
			want: want{Status: 303, Location: "/?added=mug", Reached: []string{`POST /api/cart 0123456789abcdef  {"productId":"mug","quantity":1}`}},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			reached = nil
			res := do(frontend(t, backend), "POST", tc.path, tc.form, append(tc.headers, "Cookie", shop.SessionCookie+"="+token)...)
			got := want{Status: res.StatusCode, Location: res.Header.Get("Location"), Reached: reached}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("\n%s\nPOST %s: -want, +got:\n%s", tc.reason, tc.path, diff)
			}
		})
	}
}

func TestReady(t *testing.T) {
	down := httptest.NewServer(nil)
	down.Close()
	cases := map[string]struct {
		reason  string
		backend *serve.Readiness // Nil when the backend does not answer.
		want    serve.Readiness
	}{
		"Ready": {
			reason:  "A frontend is ready when its backend is",
			backend: &serve.Readiness{Ready: true},
			want:    serve.Readiness{Ready: true, Checks: map[string]serve.Check{"backend": {OK: true, Required: true}}},
		},
		"BackendNotReady": {
			reason:  "The backend's reason is passed on",
			backend: &serve.Readiness{Reason: "database: down"},
			want: serve.Readiness{Reason: "backend: database: down", Checks: map[string]serve.Check{
				"backend": {Required: true, Message: "database: down"},
			}},
		},
		"BackendGone": {
			reason: "A backend that does not answer is a reason, too",
			want: serve.Readiness{Reason: "backend: the backend does not answer", Checks: map[string]serve.Check{
				"backend": {Required: true, Message: "the backend does not answer"},
			}},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			h := frontendOf(t, down.URL)
			if tc.backend != nil {
				h = frontend(t, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { tc.backend.Write(w) }))
			}
			res := do(h, "GET", "/readyz", nil)
			var got serve.Readiness
			if err := json.NewDecoder(res.Body).Decode(&got); err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tc.want, got); diff != "" || (res.StatusCode == 200) != tc.want.Ready {
				t.Errorf("\n%s\nGET /readyz: %d, -want, +got:\n%s", tc.reason, res.StatusCode, diff)
			}
		})
	}
}

// TestRetry: when the backend aborts the first connection, only requests that are safe to repeat
// are retried.
func TestRetry(t *testing.T) {
	cases := map[string]struct {
		reason  string
		method  string
		path    string
		form    url.Values
		headers []string
		want    int32
	}{
		"Read":        {reason: "What only reads is read again", method: "GET", path: "/api/products", want: 2},
		"Page":        {reason: "Pages are read, too", method: "GET", path: "/orders", headers: []string{shop.SessionHeader, token}, want: 3},
		"OrderKeyed":  {reason: "An order with a key is the same order again", method: "POST", path: "/orders", form: url.Values{"key": {token}}, headers: []string{shop.SessionHeader, token}, want: 2},
		"Add":         {reason: "What would add twice is not repeated", method: "POST", path: "/cart", form: url.Values{"product": {"mug"}}, headers: []string{shop.SessionHeader, token}, want: 1},
		"OrderNoKey":  {reason: "Nor an order that could not be told from another", method: "POST", path: "/orders", form: url.Values{"key": {""}}, headers: []string{shop.SessionHeader, token}, want: 1},
		"PassThrough": {reason: "Nor a change that is passed through", method: "PUT", path: "/api/cart", form: url.Values{"a": {"b"}}, want: 1},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			var requests atomic.Int32
			h := frontend(t, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
				if requests.Add(1) == 1 {
					panic(http.ErrAbortHandler)
				}
				serve.JSON(w, http.StatusOK, map[string]any{"id": "order-1"})
			}))
			res := do(h, tc.method, tc.path, tc.form, tc.headers...)
			if got := requests.Load(); got != tc.want || (res.StatusCode < 400) != (tc.want > 1) {
				t.Errorf("\n%s\n%s %s: want %d requests, got %d and status %d", tc.reason, tc.method, tc.path, tc.want, got, res.StatusCode)
			}
		})
	}
}

func TestMoney(t *testing.T) {
	cases := map[string]struct {
		reason   string
		cents    int64
		currency string
		want     string
	}{
		"Cents": {reason: "Small cents keep their zero", cents: 1605, currency: "EUR", want: "€16.05"},
		"Other": {reason: "A currency without a sign of its own is named", cents: 99, currency: "CHF", want: "CHF 0.99"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if got := money(tc.cents, tc.currency); got != tc.want {
				t.Errorf("\n%s\nmoney(...): want %s, got %s", tc.reason, tc.want, got)
			}
		})
	}
}
