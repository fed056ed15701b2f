package web

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"time"

	"github.com/storeplane/storeplane/examples/shop/internal/serve"
	"github.com/storeplane/storeplane/examples/shop/internal/shop"
)

const (
	// answerWithin is more than the 10 s for which the backend retries during a failover.
	answerWithin = 15 * time.Second

	// maxAnswer is far more than any answer of the backend.
	maxAnswer = 8 << 20
)

// Backend is a client of the backend's API.
type Backend struct {
	url    *url.URL
	client *http.Client
}

// NewBackend returns a client of the backend at address, as in http://host:8080.
func NewBackend(address string) (*Backend, error) {
	u, err := url.Parse(address)
	if err != nil || (u.Scheme != "http" && u.Scheme != "https") || u.Host == "" {
		return nil, fmt.Errorf("cannot parse BACKEND_URL %q: it should read http://host:8080", address)
	}
	transport := &http.Transport{
		DialContext:           (&net.Dialer{Timeout: 2 * time.Second, KeepAlive: 15 * time.Second}).DialContext,
		TLSHandshakeTimeout:   5 * time.Second,
		ResponseHeaderTimeout: answerWithin,
		MaxIdleConns:          128,
		MaxIdleConnsPerHost:   128,
		// This is less than the backend's own, so that the backend never closes a connection which
		// a request is about to use.
		IdleConnTimeout: 60 * time.Second,
	}
	client := &http.Client{
		Transport: retrier{transport},
		Timeout:   answerWithin,
		// The backend sends no redirects.
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
	return &Backend{url: u, client: client}, nil
}

// A retrier repeats a request once when its connection broke, if a second request does no harm: it
// only reads, or has a key by which the backend recognizes it.
type retrier struct{ next http.RoundTripper }

func (t retrier) RoundTrip(r *http.Request) (*http.Response, error) {
	res, err := t.next.RoundTrip(r)
	if err == nil || !repeatable(r) || r.Context().Err() != nil {
		return res, err
	}
	return t.next.RoundTrip(r.Clone(r.Context()))
}

func repeatable(r *http.Request) bool {
	if r.Body != nil && r.Body != http.NoBody {
		return false
	}
	return r.Method == http.MethodGet || r.Method == http.MethodHead || r.Header.Get(shop.KeyHeader) != ""
}

// errStatus is an answer of the backend with an error.
type errStatus struct {
	status int
	code   string
}

func (e *errStatus) Error() string { return fmt.Sprintf("backend answers %d %s", e.status, e.code) }

// code returns the backend's code for the error, or "" if it sent none.
func code(err error) string {
	var s *errStatus
	if errors.As(err, &s) {
		return s.code
	}
	return ""
}

// call sends in as JSON, unless it is nil, and reads the answer into out.
func (b *Backend) call(ctx context.Context, method, path, session, key string, in, out any) error {
	var body io.Reader
	if in != nil {
		raw, err := json.Marshal(in)
		if err != nil {
			return fmt.Errorf("cannot encode the request: %w", err)
		}
		body = bytes.NewReader(raw)
	}
	req, err := http.NewRequestWithContext(ctx, method, b.url.JoinPath(path).String(), body)
	if err != nil {
		return fmt.Errorf("cannot make the request: %w", err)
	}
	req.Header.Set("Content-Type", "application/json")
	if session != "" {
		req.Header.Set(shop.SessionHeader, session)
	}
	if key != "" {
		req.Header.Set(shop.KeyHeader, key)
	}
	res, err := b.client.Do(req)
	if err != nil {
		return fmt.Errorf("cannot reach the backend: %w", err)
	}
	defer func() { _ = res.Body.Close() }()
	answer := json.NewDecoder(io.LimitReader(res.Body, maxAnswer))

	if res.StatusCode != http.StatusOK && res.StatusCode != http.StatusCreated {
		var e struct {
			Error struct {
				Code string `json:"code"`
			} `json:"error"`
		}
		// An answer that is no JSON is from a proxy in between. Its status is enough.
		_ = answer.Decode(&e)
		return &errStatus{status: res.StatusCode, code: e.Error.Code}
	}
	if err := answer.Decode(out); err != nil {
		return fmt.Errorf("cannot decode the backend's answer: %w", err)
	}
	return nil
}

func (b *Backend) products(ctx context.Context) ([]shop.Product, error) {
	var out struct {
		Products []shop.Product `json:"products"`
	}
	err := b.get(ctx, "/api/products", "", &out)
	return out.Products, err
}

func (b *Backend) get(ctx context.Context, path, session string, out any) error {
	return b.call(ctx, http.MethodGet, path, session, "", nil, out)
}

// cart returns the cart of a session, and an empty one without a session.
func (b *Backend) cart(ctx context.Context, session string) (shop.Cart, error) {
	cart := shop.NewCart(0, nil)
	if session == "" {
		return cart, nil
	}
	err := b.get(ctx, "/api/cart", session, &cart)
	return cart, err
}

// A pick is a product and its quantity, as the backend reads it.
type pick struct {
	ProductID string `json:"productId"`
	Quantity  int64  `json:"quantity"`
}

func (b *Backend) add(ctx context.Context, session, product string) error {
	return b.call(ctx, http.MethodPost, "/api/cart", session, "", pick{product, 1}, &shop.Cart{})
}

func (b *Backend) set(ctx context.Context, session, product string, quantity int64) error {
	return b.call(ctx, http.MethodPut, "/api/cart", session, "", pick{product, quantity}, &shop.Cart{})
}

func (b *Backend) placeOrder(ctx context.Context, session, key string) (shop.Order, error) {
	var order shop.Order
	err := b.call(ctx, http.MethodPost, "/api/orders", session, key, nil, &order)
	return order, err
}

func (b *Backend) order(ctx context.Context, session, id string) (shop.Order, error) {
	var order shop.Order
	err := b.get(ctx, "/api/orders/"+url.PathEscape(id), session, &order)
	return order, err
}

func (b *Backend) orders(ctx context.Context, session string) ([]shop.Order, error) {
	var out struct {
		Orders []shop.Order `json:"orders"`
	}
	if session == "" {
		return nil, nil
	}
	err := b.get(ctx, "/api/orders", session, &out)
	return out.Orders, err
}

// ready returns the readiness that the backend reports.
func (b *Backend) ready(ctx context.Context) (serve.Readiness, error) {
	var out serve.Readiness
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, b.url.JoinPath("/readyz").String(), nil)
	if err != nil {
		return out, fmt.Errorf("cannot make the request: %w", err)
	}
	res, err := b.client.Do(req)
	if err != nil {
		return out, fmt.Errorf("cannot reach the backend: %w", err)
	}
	defer func() { _ = res.Body.Close() }()
	if err := json.NewDecoder(io.LimitReader(res.Body, maxAnswer)).Decode(&out); err != nil {
		return out, fmt.Errorf("cannot decode the backend's answer: %w", err)
	}
	return out, nil
}
