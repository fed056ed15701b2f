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

// pgBackRest's verify counts a file that it could not read among the damaged ones, and continues
// with the next one while the store is unreachable. Only its log contains why it could not read a
// file.

// verifyLogLevel is the log level that includes that.
const verifyLogLevel = "--log-level-stderr=detail"

// unreadLine is about a file of a backup or the archive, and detailLine about a file that
// describes them.
var (
	unreadLine = regexp.MustCompile(`INFO: invalid result .+?: \[(\d+)\] (.*)`)
	detailLine = regexp.MustCompile(`DETAIL: (.*)`)
)

// damageCodes are pgBackRest's errors about files that were read and are wrong, or that do not
// exist.
var damageCodes = []int{codeChecksum, codeFileInvalid, codeFormat, codeMissing, codeCrypto}

// storeReasons are reasons that are not the fault of the backup.
var storeReasons = []backup.Reason{backup.StoreUnreachable, backup.StoreDenied, backup.BucketMissing, backup.StoreFull}

// unread finds in the log of verify a file that the store did not return, and stops verify then.
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

// unreadOf returns the store's error in a line of the log, or nil.
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
