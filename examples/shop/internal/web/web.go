// Package web serves the shop's pages: they are rendered here, work without JavaScript and need no
// other address. It stores nothing: every cart and order is the backend's.
package web

import (
	"context"
	"errors"
	"log/slog"
	"net/http"
	"net/url"
	"strconv"
	"time"

	"github.com/storeplane/storeplane/examples/shop/internal/serve"
	"github.com/storeplane/storeplane/examples/shop/internal/shop"
)

// readyWithin is more than the 2 s that the backend gives its own checks.
const readyWithin = 3 * time.Second

// maxForm is far more than any form of the shop contains.
const maxForm = 16 << 10

// A Server answers the requests of visitors.
type Server struct {
	Backend  *Backend
	Log      *slog.Logger
	Draining func() bool
}

// Handler returns the shop's pages, and the API under /api/.
func (s *Server) Handler() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /healthz", func(w http.ResponseWriter, _ *http.Request) {
		serve.JSON(w, http.StatusOK, map[string]bool{"alive": true})
	})
	mux.HandleFunc("GET /readyz", s.ready)
	mux.Handle("/api/", s.Backend.proxy(s.Log))
	mux.HandleFunc("GET /{$}", s.products)
	mux.HandleFunc("GET /cart", s.cart)
	mux.HandleFunc("POST /cart", s.add)
	mux.HandleFunc("POST /cart/{product}", s.set)
	mux.HandleFunc("POST /orders", s.placeOrder)
	mux.HandleFunc("GET /orders", s.orders)
	mux.HandleFunc("GET /orders/{id}", s.order)
	mux.HandleFunc("/", func(w http.ResponseWriter, _ *http.Request) {
		s.show(w, http.StatusNotFound, "error", page{Title: "There is nothing here", Message: "The address may be old, or mistyped."})
	})

	// A second guard beside the cookie's SameSite=Lax: a browser reports the origin of a request,
	// and changes that another origin caused are refused. Programs such as curl report no origin,
	// and are let through.
	guard := http.NewCrossOriginProtection()
	return secure(guard.Handler(mux))
}

// secure sets the headers that every answer should have. Pages add a policy for their content.
func secure(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		h := w.Header()
		h.Set("X-Content-Type-Options", "nosniff")
		h.Set("X-Frame-Options", "DENY")
		h.Set("Referrer-Policy", "same-origin")
		h.Set("Cross-Origin-Opener-Policy", "same-origin")
		h.Set("Permissions-Policy", "camera=(), geolocation=(), microphone=(), payment=()")
		next.ServeHTTP(w, r)
	})
}

func (s *Server) ready(w http.ResponseWriter, r *http.Request) {
	if s.Draining() {
		serve.Readiness{Reason: "shutting down"}.Write(w)
		return
	}
	ctx, cancel := context.WithTimeout(r.Context(), readyWithin)
	defer cancel()

	backend, err := s.Backend.ready(ctx)
	check := serve.Check{OK: backend.Ready, Required: true, Message: backend.Reason}
	if err != nil {
		check = serve.Check{Required: true, Message: "the backend does not answer"}
	}
	out := serve.Readiness{Ready: check.OK, Checks: map[string]serve.Check{"backend": check}}
	if !out.Ready {
		out.Reason = "backend: " + check.Message
	}
	out.Write(w)
}

func (s *Server) products(w http.ResponseWriter, r *http.Request) {
	products, err := s.Backend.products(r.Context())
	if err != nil {
		s.fail(w, r, err)
		return
	}
	p := page{Title: "Products", Products: products}
	// A cart that cannot be read is no reason to hide the products.
	if cart, err := s.Backend.cart(r.Context(), session(r)); err == nil {
		p.Cart = &cart
	}
	for i := range products {
		if products[i].ID == r.URL.Query().Get("added") {
			p.Added = &products[i]
		}
	}
	s.show(w, http.StatusOK, "products", p)
}

func (s *Server) cart(w http.ResponseWriter, r *http.Request) {
	cart, err := s.Backend.cart(r.Context(), session(r))
	if err != nil {
		s.fail(w, r, err)
		return
	}
	// The key is part of the form: a form that is sent twice places one order.
	s.show(w, http.StatusOK, "cart", page{Title: "Cart", Cart: &cart, Key: shop.NewToken()})
}

func (s *Server) add(w http.ResponseWriter, r *http.Request) {
	session := session(r)
	if session == "" {
		// There is nothing to store for a visitor before this request.
		session = shop.NewToken()
	}
	product := formValue(w, r, "product")
	if err := s.Backend.add(r.Context(), session, product); err != nil {
		s.fail(w, r, err)
		return
	}
	shop.SetSession(w, r, session)
	http.Redirect(w, r, "/?added="+url.QueryEscape(product), http.StatusSeeOther)
}

func (s *Server) set(w http.ResponseWriter, r *http.Request) {
	var quantity int64
	if formValue(w, r, "remove") == "" {
		n, err := strconv.ParseInt(formValue(w, r, "quantity"), 10, 64)
		if err != nil {
			s.fail(w, r, &errStatus{status: http.StatusBadRequest, code: "bad_quantity"})
			return
		}
		quantity = n
	}
	if session := session(r); session != "" {
		if err := s.Backend.set(r.Context(), session, r.PathValue("product"), quantity); err != nil {
			s.fail(w, r, err)
			return
		}
	}
	http.Redirect(w, r, "/cart", http.StatusSeeOther)
}

func (s *Server) placeOrder(w http.ResponseWriter, r *http.Request) {
	key := formValue(w, r, "key")
	session := session(r)
	if session == "" {
		http.Redirect(w, r, "/cart", http.StatusSeeOther)
		return
	}
	order, err := s.Backend.placeOrder(r.Context(), session, key)
	switch {
	case code(err) == "empty_cart":
		http.Redirect(w, r, "/cart", http.StatusSeeOther)
	case err != nil:
		s.fail(w, r, err)
	default:
		http.Redirect(w, r, "/orders/"+order.ID, http.StatusSeeOther)
	}
}

func (s *Server) order(w http.ResponseWriter, r *http.Request) {
	session := session(r)
	order, err := s.Backend.order(r.Context(), session, r.PathValue("id"))
	if err != nil {
		s.fail(w, r, err)
		return
	}
	p := page{Title: "Order", Narrow: true, Order: &order}
	if cart, err := s.Backend.cart(r.Context(), session); err == nil {
		p.Cart = &cart
	}
	s.show(w, http.StatusOK, "order", p)
}

func (s *Server) orders(w http.ResponseWriter, r *http.Request) {
	session := session(r)
	orders, err := s.Backend.orders(r.Context(), session)
	if err != nil {
		s.fail(w, r, err)
		return
	}
	p := page{Title: "Orders", Narrow: true, Orders: orders}
	if cart, err := s.Backend.cart(r.Context(), session); err == nil {
		p.Cart = &cart
	}
	s.show(w, http.StatusOK, "orders", p)
}

// session returns the visitor's session, or "".
func session(r *http.Request) string {
	if token, ok := shop.Session(r); ok {
		return token
	}
	return ""
}

func formValue(w http.ResponseWriter, r *http.Request, name string) string {
	r.Body = http.MaxBytesReader(w, r.Body, maxForm)
	return r.PostFormValue(name)
}

func (s *Server) show(w http.ResponseWriter, status int, name string, p page) {
	if err := render(w, status, name, p); err != nil {
		s.Log.Error("Cannot show a page", "error", err)
		http.Error(w, "something went wrong", http.StatusInternalServerError)
	}
}

// messages are shown to a visitor for the backend's errors.
var messages = map[string]page{
	"no_such_product":     {Title: "We do not have that", Message: "The product may have left the shelves."},
	"no_such_order":       {Title: "There is no such order", Message: "Orders show up only in the browser that placed them."},
	"bad_quantity":        {Title: "That is not a quantity", Message: "Please choose a whole number from 0 to 99."},
	"bad_idempotency_key": {Title: "That form is not ours", Message: "Please go to your cart and place the order from there."},
}

func (s *Server) fail(w http.ResponseWriter, r *http.Request, err error) {
	var refusal *errStatus
	if p, known := messages[code(err)]; known && errors.As(err, &refusal) {
		s.show(w, refusal.status, "error", p)
		return
	}
	if r.Context().Err() == nil {
		s.Log.Info("Cannot answer", "method", r.Method, "path", r.URL.Path, "error", err)
	}
	w.Header().Set("Retry-After", "1")
	s.show(w, http.StatusServiceUnavailable, "error", page{
		Title: "The shop needs a moment", Message: "Something behind the counter is not answering. Your cart is safe, please try again.",
	})
}
