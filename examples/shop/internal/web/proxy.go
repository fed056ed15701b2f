package web

import (
	"log/slog"
	"net/http"
	"net/http/httputil"

	"github.com/storeplane/storeplane/examples/shop/internal/serve"
)

// proxy passes requests on to the backend unchanged, for clients that want JSON instead of pages.
func (b *Backend) proxy(log *slog.Logger) http.Handler {
	return &httputil.ReverseProxy{
		Transport: b.client.Transport,
		Rewrite: func(r *httputil.ProxyRequest) {
			r.SetURL(b.url)
			// The ingress' information about the client is passed on. The backend grants nothing
			// because of it.
			r.Out.Header["X-Forwarded-For"] = r.In.Header["X-Forwarded-For"]
			r.SetXForwarded()
			if proto := r.In.Header.Get("X-Forwarded-Proto"); proto != "" {
				r.Out.Header.Set("X-Forwarded-Proto", proto)
			}
		},
		ErrorHandler: func(w http.ResponseWriter, r *http.Request, err error) {
			if r.Context().Err() == nil {
				log.Info("Cannot pass the request on", "method", r.Method, "path", r.URL.Path, "error", err)
			}
			w.Header().Set("Retry-After", "1")
			serve.JSON(w, http.StatusBadGateway, map[string]any{"error": map[string]string{
				"code": "no_backend", "message": "the shop cannot reach its backend, please try again",
			}})
		},
		ErrorLog: slog.NewLogLogger(log.Handler(), slog.LevelInfo),
	}
}
