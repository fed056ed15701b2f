package api

import (
	"context"
	"net/http"

	"github.com/storeplane/storeplane/examples/shop/internal/serve"
	"github.com/storeplane/storeplane/examples/shop/internal/shop"
)

// A pick is a product and its quantity.
type pick struct {
	ProductID string `json:"productId"`
	Quantity  *int64 `json:"quantity"`
}

func (s *Server) getCart(w http.ResponseWriter, r *http.Request) {
	session := session(w, r)
	if cart, ok := s.Cache.Get(r.Context(), session); ok {
		serve.JSON(w, http.StatusOK, cart)
		return
	}
	cart, err := s.Store.Cart(r.Context(), session)
	s.answerCart(w, r, session, cart, err)
}

// addToCart adds to the quantity in the cart, by default one.
func (s *Server) addToCart(w http.ResponseWriter, r *http.Request) {
	s.changeCart(w, r, func(ctx context.Context, session string, p pick) (shop.Cart, error) {
		quantity := int64(1)
		if p.Quantity != nil {
			quantity = *p.Quantity
		}
		return s.Store.AddToCart(ctx, session, p.ProductID, quantity)
	})
}

// setInCart sets the quantity in the cart, and may be repeated safely.
func (s *Server) setInCart(w http.ResponseWriter, r *http.Request) {
	s.changeCart(w, r, func(ctx context.Context, session string, p pick) (shop.Cart, error) {
		if p.Quantity == nil {
			return shop.Cart{}, shop.ErrQuantity
		}
		return s.Store.SetInCart(ctx, session, p.ProductID, *p.Quantity)
	})
}

func (s *Server) changeCart(w http.ResponseWriter, r *http.Request, change func(ctx context.Context, session string, p pick) (shop.Cart, error)) {
	var p pick
	if err := decode(w, r, &p); err != nil {
		s.fail(w, r, err)
		return
	}
	session := session(w, r)
	cart, err := change(r.Context(), session, p)
	s.answerCart(w, r, session, cart, err)
}

// deleteFromCart removes one product, or all products if none is named.
func (s *Server) deleteFromCart(w http.ResponseWriter, r *http.Request) {
	session := session(w, r)
	var cart shop.Cart
	var err error
	if product := r.URL.Query().Get("productId"); product != "" {
		cart, err = s.Store.SetInCart(r.Context(), session, product, 0)
	} else {
		cart, err = s.Store.EmptyCart(r.Context(), session)
	}
	s.answerCart(w, r, session, cart, err)
}

// answerCart answers with a cart from the database, and stores it in the cache.
func (s *Server) answerCart(w http.ResponseWriter, r *http.Request, session string, cart shop.Cart, err error) {
	if err != nil {
		// Whether the change was made may be unknown: the next request must not get a copy from
		// before it.
		s.Cache.Drop(context.WithoutCancel(r.Context()), session)
		s.fail(w, r, err)
		return
	}
	s.Cache.Put(context.WithoutCancel(r.Context()), session, cart)
	serve.JSON(w, http.StatusOK, cart)
}
