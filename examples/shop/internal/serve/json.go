package serve

import (
	"encoding/json"
	"net/http"
)

// JSON writes v as the whole response.
func JSON(w http.ResponseWriter, status int, v any) {
	w.Header().Set("Content-Type", "application/json; charset=utf-8")
	w.Header().Set("Cache-Control", "no-store")
	w.Header().Set("X-Content-Type-Options", "nosniff")
	w.WriteHeader(status)
	// An error here means that the client disconnected.
	_ = json.NewEncoder(w).Encode(v)
}

// Readiness is the answer of /readyz: whether requests should be sent here, and the checks of the
// dependencies.
type Readiness struct {
	Ready  bool             `json:"ready"`
	Reason string           `json:"reason,omitempty"`
	Checks map[string]Check `json:"checks,omitempty"`
}

// A Check is the state of one dependency. One that is not required never makes
// a program unready.
type Check struct {
	OK       bool   `json:"ok"`
	Required bool   `json:"required"`
	Message  string `json:"message,omitempty"`
}

// Write writes the readiness with the status that a probe evaluates.
func (r Readiness) Write(w http.ResponseWriter) {
	status := http.StatusOK
	if !r.Ready {
		status = http.StatusServiceUnavailable
	}
	JSON(w, status, r)
}
