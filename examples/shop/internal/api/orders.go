package api

import (
	"context"
	"net/http"
	"strconv"

	"github.com/storeplane/storeplane/examples/shop/internal/serve"
	"github.com/storeplane/storeplane/examples/shop/internal/shop"
)

// placeOrder buys the cart: 201 for a new order, 200 for one that an earlier request with the same
// key placed.
func (s *Server) placeOrder(w http.ResponseWriter, r *http.Request) {
	key := r.Header.Get(shop.KeyHeader)
	if key != "" && !shop.ValidToken(key) {
		s.fail(w, r, errKey)
		return
	}
	session := session(w, r)
	// The id is generated before the first attempt: by it a second attempt finds the order of a
	// first one whose answer was lost.
	placed, err := s.Store.PlaceOrder(r.Context(), session, shop.NewToken(), key)
	if err != nil {
		// Whether the order was placed or not, the cart may have been emptied.
		s.Cache.Drop(context.WithoutCancel(r.Context()), session)
		s.fail(w, r, err)
		return
	}
	s.Cache.Put(context.WithoutCancel(r.Context()), session, placed.Cart)
	order := placed.Order
	w.Header().Set("Location", "/api/orders/"+order.ID)
	status := http.StatusOK
	if placed.Made {
		status = http.StatusCreated
		s.Log.Info("Order placed", "order", order.ID, "total", order.Total, "currency", order.Currency)
	}
	serve.JSON(w, status, order)
}

func (s *Server) order(w http.ResponseWriter, r *http.Request) {
	order, err := s.Store.Order(r.Context(), session(w, r), r.PathValue("id"))
	if err != nil {
		s.fail(w, r, err)
		return
	}
	serve.JSON(w, http.StatusOK, order)
}

const (
	defaultLimit = 20
	maxLimit     = 1000
)

// orders lists the latest orders, up to ?limit.
func (s *Server) orders(w http.ResponseWriter, r *http.Request) {
	limit := defaultLimit
	if v := r.URL.Query().Get("limit"); v != "" {
		n, err := strconv.Atoi(v)
		if err != nil || n < 1 || n > maxLimit {
			writeError(w, http.StatusBadRequest, "bad_limit", "limit is a number from 1 to "+strconv.Itoa(maxLimit))
			return
		}
		limit = n
	}
	orders, err := s.Store.Orders(r.Context(), session(w, r), limit)
	if err != nil {
		s.fail(w, r, err)
		return
	}
	serve.JSON(w, http.StatusOK, map[string]any{"orders": orders})
}
