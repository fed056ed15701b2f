package manager

import (
	"log/slog"
	"sync"
)

// notes logs a failure once, and once more when it is over: a manager retries every few
// seconds.
type notes struct {
	log *slog.Logger

	mu   sync.Mutex
	last map[string]string
}

func newNotes(log *slog.Logger) *notes { return &notes{log: log, last: map[string]string{}} }

// note records an error about an operation, or that there is none. It reports whether there is
// none.
func (n *notes) note(about string, err error) bool {
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
		n.log.Info("Recovered", "about", about)
	default:
		n.log.Info("Operation failed, retrying", "about", about, "error", text)
	}
	return err == nil
}
