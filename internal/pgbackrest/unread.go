package pgbackrest

import (
	"bytes"
	"context"
	"io"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/storeplane/storeplane/internal/backup"
)

// PgBackRest's verify counts a file that it could not read among those that are
// damaged, and goes on to the next one for as long as the store is away. Why it could
// not read a file is in its log alone.

// verifyLogLevel at which the log has that.
const verifyLogLevel = "--log-level-stderr=detail"

// unreadLine is about a file of a backup or the archive, and detailLine about one that
// describes them.
var (
	unreadLine = regexp.MustCompile(`INFO: invalid result .+?: \[(\d+)\] (.*)`)
	detailLine = regexp.MustCompile(`DETAIL: (.*)`)
)

// damageCodes are errors of pgBackRest about what it has read, or about what is not
// there.
var damageCodes = []int{codeChecksum, codeFileInvalid, codeFormat, codeMissing, codeCrypto}

// storeReasons are not the backup's.
var storeReasons = []backup.Reason{backup.StoreUnreachable, backup.StoreDenied, backup.BucketMissing, backup.StoreFull}

// unread finds in a log of verify what the store did not give, and stops verify then.
type unread struct {
	to   io.Writer
	stop context.CancelFunc
	rest []byte

	failure *Error
}

// Write implements io.Writer.
func (u *unread) Write(p []byte) (int, error) {
	if u.to != nil {
		_, _ = u.to.Write(p)
	}
	u.rest = append(u.rest, p...)
	for {
		line, rest, found := bytes.Cut(u.rest, []byte("\n"))
		if !found {
			return len(p), nil
		}
		u.rest = rest
		if e := unreadOf(string(line)); e != nil && u.failure == nil {
			u.failure = e
			u.stop()
		}
	}
}

// unreadOf a line of the log: the error of the store, or nil.
func unreadOf(line string) *Error {
	if m := unreadLine.FindStringSubmatch(line); m != nil {
		if code, err := strconv.Atoi(m[1]); err == nil && !slices.Contains(damageCodes, code) {
			return &Error{Command: "verify", Code: code, Message: strings.TrimSpace(m[2])}
		}
		return nil
	}
	if m := detailLine.FindStringSubmatch(line); m != nil {
		e := &Error{Command: "verify", Message: strings.TrimSpace(m[1])}
		if slices.Contains(storeReasons, ReasonOf(e)) {
			return e
		}
	}
	return nil
}
