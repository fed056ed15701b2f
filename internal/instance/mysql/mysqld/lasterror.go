package mysqld

import (
	"bytes"
	"io"
	"strings"
	"sync"
)

// errorMark is what a line of MySQL's log has before an error and its code, such as
// [ERROR] [MY-010119] [Server] Aborting.
const errorMark = "[ERROR] "

// aborting is the last error of a program that could not start, after the one that says why.
const aborting = "Aborting"

// lastError passes MySQL's log on, and keeps the last error in it.
type lastError struct {
	to io.Writer

	mu   sync.Mutex
	rest []byte
	last string
}

// Write implements io.Writer.
func (l *lastError) Write(p []byte) (int, error) {
	l.mu.Lock()
	l.rest = append(l.rest, p...)
	for {
		line, rest, found := bytes.Cut(l.rest, []byte("\n"))
		if !found {
			break
		}
		l.keep(string(line))
		l.rest = bytes.Clone(rest)
	}
	l.mu.Unlock()
	return l.to.Write(p)
}

func (l *lastError) keep(line string) {
	_, message, found := strings.Cut(line, errorMark)
	if !found {
		return
	}
	// What follows are the code and the part of the server, each in brackets.
	for range 2 {
		if _, after, ok := strings.Cut(message, "] "); ok && strings.HasPrefix(message, "[") {
			message = after
		}
	}
	if message = strings.TrimSpace(message); message != aborting {
		l.last = message
	}
}

func (l *lastError) text() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.last
}
