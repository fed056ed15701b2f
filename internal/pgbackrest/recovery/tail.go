package recovery

import (
	"bytes"
	"io"
	"strings"
	"sync"
)

// A tail keeps of a log the last fatal line, and when the last transaction was.
type tail struct {
	mu   sync.Mutex
	to   io.Writer
	rest []byte

	fatal, transaction string
}

func newTail(to io.Writer) *tail { return &tail{to: to} }

// Write implements io.Writer.
func (t *tail) Write(p []byte) (int, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.to != nil {
		_, _ = t.to.Write(p)
	}
	t.rest = append(t.rest, p...)
	for {
		i := bytes.IndexByte(t.rest, '\n')
		if i < 0 {
			return len(p), nil
		}
		t.line(string(t.rest[:i]))
		t.rest = t.rest[i+1:]
	}
}

func (t *tail) line(line string) {
	for _, level := range []string{"FATAL:  ", "PANIC:  "} {
		// A connection before the server is up fails with such a line, which is no cause of its
		// end.
		if _, text, ok := strings.Cut(line, level); ok && !strings.Contains(text, "the database system is") {
			t.fatal = text
		}
	}
	if _, text, ok := strings.Cut(line, "last completed transaction was at log time "); ok {
		t.transaction = "at " + text
	}
}

// lastChange returns when the last replayed transaction was.
func (t *tail) lastChange() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.transaction == "" {
		return "that of the backup itself"
	}
	return t.transaction
}

// lastFatal returns the last fatal line, or "".
func (t *tail) lastFatal() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.fatal
}
