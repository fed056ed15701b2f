package control

import (
	"log"
	"log/slog"
	"strings"
)

// ErrorLog returns the log of errors of a server of one of the APIs, given the API's name for a
// message. TLS handshakes that a client broke off are left out, as a probe that ends early does.
func ErrorLog(to *slog.Logger, name string) *log.Logger {
	return log.New(errorLog{to, name}, "", 0)
}

type errorLog struct {
	to   *slog.Logger
	name string
}

func (e errorLog) Write(p []byte) (int, error) {
	line := strings.TrimSpace(string(p))
	if !strings.Contains(line, "TLS handshake error") || !strings.HasSuffix(line, "EOF") {
		e.to.Info(e.name, "error", line)
	}
	return len(p), nil
}
