package exchange

import (
	"log/slog"
	"sync"
)

// Notes logs a failure once, and once more when it is over: a manager retries every few
// seconds.
type Notes struct {
	Log *slog.Logger

	mu   sync.Mutex
	last map[string]string
}

// NewNotes returns notes that are written to a log.
func NewNotes(log *slog.Logger) *Notes { return &Notes{Log: log, last: map[string]string{}} }

// Note records an error about an operation, or that there is none. It reports whether there is
// none.
func (n *Notes) Note(about string, err error) bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	var text string
	if err != nil {
		text = err.Error()
	}
	before := n.last[about]
	n.last[about] = text
	switch text {
	case before:
	case "":
		n.Log.Info("Recovered", "about", about)
	default:
		n.Log.Info("Operation failed, retrying", "about", about, "error", text)
	}
	return err == nil
}
