package api

import (
	"context"
	"net/http"
	"time"

	"github.com/storeplane/storeplane/examples/shop/internal/serve"
)

// readyWithin is how long the database may take to answer a readiness check.
const readyWithin = 2 * time.Second

// ready answers whether this backend can take orders. The cache is reported and does not count: the
// shop works without it.
func (s *Server) ready(w http.ResponseWriter, r *http.Request) {
	if s.Draining() {
		serve.Readiness{Reason: "shutting down"}.Write(w)
		return
	}
	ctx, cancel := context.WithTimeout(r.Context(), readyWithin)
	defer cancel()

	out := serve.Readiness{Ready: true, Checks: map[string]serve.Check{}}
	database := serve.Check{OK: true, Required: true}
	if err := s.Store.Ready(ctx); err != nil {
		out.Ready = false
		out.Reason = "database: " + err.Error()
		database.OK = false
		database.Message = err.Error()
	}
	out.Checks["database"] = database

	if s.Cache.Enabled() {
		cache := serve.Check{OK: s.Cache.Ready(ctx)}
		if !cache.OK {
			cache.Message = "the cache does not answer, carts come from the database"
		}
		out.Checks["cache"] = cache
	}
	out.Write(w)
}
