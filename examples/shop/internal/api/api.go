// Package api is the backend's HTTP interface: JSON in, JSON out. It handles requests, and leaves
// storage to the store and copies to the cache.
package api

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"

	"github.com/storeplane/storeplane/examples/shop/internal/serve"
	"github.com/storeplane/storeplane/examples/shop/internal/shop"
	"github.com/storeplane/storeplane/examples/shop/internal/store"
)

// A Store stores what must not be lost.
type Store interface {
	Ready(ctx context.Context) error
	Products(ctx context.Context) ([]shop.Product, error)
	Cart(ctx context.Context, session string) (shop.Cart, error)
	AddToCart(ctx context.Context, session, product string, quantity int64) (shop.Cart, error)
	SetInCart(ctx context.Context, session, product string, quantity int64) (shop.Cart, error)
	EmptyCart(ctx context.Context, session string) (shop.Cart, error)
	PlaceOrder(ctx context.Context, session, id, key string) (shop.Placement, error)
	Order(ctx context.Context, session, id string) (shop.Order, error)
	Orders(ctx context.Context, session string, limit int) ([]shop.Order, error)
}

// A Cache keeps copies of carts, and may lose them at any time.
type Cache interface {
	Enabled() bool
	Ready(ctx context.Context) bool
	Get(ctx context.Context, session string) (shop.Cart, bool)
	Put(ctx context.Context, session string, cart shop.Cart)
	Drop(ctx context.Context, session string)
}

// A Server answers the API's requests.
type Server struct {
	Store    Store
	Cache    Cache
	Log      *slog.Logger
	Draining func() bool
}

// Handler returns the API's routes.
func (s *Server) Handler() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /healthz", func(w http.ResponseWriter, _ *http.Request) {
		serve.JSON(w, http.StatusOK, map[string]bool{"alive": true})
	})
	mux.HandleFunc("GET /readyz", s.ready)
	mux.HandleFunc("GET /api/products", s.products)
	mux.HandleFunc("GET /api/cart", s.getCart)
	mux.HandleFunc("POST /api/cart", s.addToCart)
	mux.HandleFunc("PUT /api/cart", s.setInCart)
	mux.HandleFunc("DELETE /api/cart", s.deleteFromCart)
	mux.HandleFunc("POST /api/orders", s.placeOrder)
	mux.HandleFunc("GET /api/orders", s.orders)
	mux.HandleFunc("GET /api/orders/{id}", s.order)
	return mux
}

func (s *Server) products(w http.ResponseWriter, r *http.Request) {
	products, err := s.Store.Products(r.Context())
	if err != nil {
		s.fail(w, r, err)
		return
	}
	serve.JSON(w, http.StatusOK, map[string]any{"products": products})
}

// session returns the visitor's session, and generates one for a visitor without one. It returns a
// hash: with access to the database, its backups or the cache one cannot act as a visitor.
func session(w http.ResponseWriter, r *http.Request) string {
	token, ok := shop.Session(r)
	if !ok {
		token = shop.NewToken()
		shop.SetSession(w, r, token)
	}
	w.Header().Set(shop.SessionHeader, token)
	sum := sha256.Sum256([]byte(token))
	return hex.EncodeToString(sum[:])
}

// maxBody is far more than any request of this API needs.
const maxBody = 16 << 10

// errBody is the error about an invalid body.
var errBody = errors.New("cannot parse the body")

// decode reads a request's JSON body into v.
func decode(w http.ResponseWriter, r *http.Request, v any) error {
	d := json.NewDecoder(http.MaxBytesReader(w, r.Body, maxBody))
	d.DisallowUnknownFields()
	if err := d.Decode(v); err != nil {
		return fmt.Errorf("%w: %w", errBody, err)
	}
	if _, err := d.Token(); !errors.Is(err, io.EOF) {
		return fmt.Errorf("%w: it holds more than one JSON value", errBody)
	}
	return nil
}

// errKey is the error about an invalid idempotency key.
var errKey = fmt.Errorf("%s should be 16 to 128 letters, digits, - or _", shop.KeyHeader)

// A problem is the answer to a client for an error.
type problem struct {
	is     error
	status int
	code   string
}

// problems lists the errors that a client can correct.
var problems = []problem{
	{errBody, http.StatusBadRequest, "bad_body"},
	{errKey, http.StatusBadRequest, "bad_idempotency_key"},
	{shop.ErrQuantity, http.StatusBadRequest, "bad_quantity"},
	{shop.ErrNoSuchProduct, http.StatusNotFound, "no_such_product"},
	{shop.ErrNoSuchOrder, http.StatusNotFound, "no_such_order"},
	{shop.ErrEmptyCart, http.StatusConflict, "empty_cart"},
}

// fail answers with an error. The text of one that the client did not cause is only logged: it may
// contain hosts and users.
func (s *Server) fail(w http.ResponseWriter, r *http.Request, err error) {
	for _, p := range problems {
		if !errors.Is(err, p.is) {
			continue
		}
		message := p.is.Error()
		if p.is == errBody {
			message = err.Error()
		}
		writeError(w, p.status, p.code, message)
		return
	}
	if r.Context().Err() != nil {
		// The client disconnected and does not read the answer.
		writeError(w, http.StatusServiceUnavailable, "cancelled", "the request was cancelled")
		return
	}
	s.Log.Info("Cannot answer", "method", r.Method, "path", r.URL.Path, "error", err)
	if errors.Is(err, store.ErrUnavailable) {
		w.Header().Set("Retry-After", "1")
		writeError(w, http.StatusServiceUnavailable, "unavailable", "the shop cannot reach its database, please try again")
		return
	}
	writeError(w, http.StatusInternalServerError, "internal", "something went wrong")
}

func writeError(w http.ResponseWriter, status int, code, message string) {
	serve.JSON(w, status, map[string]any{"error": map[string]string{"code": code, "message": message}})
}
