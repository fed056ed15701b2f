package serve

import (
	"log/slog"
	"net/http"
	"os"
	"time"
)

// NewLog returns the log of a program: JSON lines on standard output.
func NewLog(program string) *slog.Logger {
	return slog.New(slog.NewJSONHandler(os.Stdout, nil)).With("program", program)
}

// accessLog logs a line for each request. It leaves out the query, cookies and headers, which may
// contain personal data, and the probes, which come every few seconds.
func accessLog(log *slog.Logger, next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/healthz" || r.URL.Path == "/readyz" {
			next.ServeHTTP(w, r)
			return
		}
		start := time.Now()
		rec := &recorder{ResponseWriter: w, status: http.StatusOK}
		next.ServeHTTP(rec, r)
		log.Info("Request", "method", r.Method, "path", r.URL.Path, "status", rec.status,
			"milliseconds", time.Since(start).Milliseconds())
	})
}

// A recorder records the status of a response.
type recorder struct {
	http.ResponseWriter
	status int
}

func (r *recorder) WriteHeader(status int) {
	r.status = status
	r.ResponseWriter.WriteHeader(status)
}

// Unwrap gives http.ResponseController access to the underlying writer.
func (r *recorder) Unwrap() http.ResponseWriter { return r.ResponseWriter }
