package run

import (
	"encoding/json"
	"fmt"
	"strings"

	"github.com/storeplane/storeplane/internal/backup"
)

// Encode encodes a Report in JSON of at most backup.MaxReport bytes. A longer one is shortened
// step by step.
func Encode(r backup.Report) []byte {
	if r.Failure != nil {
		r.Failure = &backup.Failure{Reason: r.Failure.Reason, Message: r.Failure.Message}
	}
	if r.Catalog != nil {
		r.Catalog = new(*r.Catalog)
	}
	for {
		content, err := json.Marshal(r)
		if err != nil {
			// Marshal fails only for a time beyond the year 9999.
			return unencoded("cannot encode the report")
		}
		if len(content) <= backup.MaxReport {
			return content
		}
		if !shorten(&r) {
			return unencoded("the report is too long")
		}
	}
}

// unencoded returns a report of the failure to encode one.
func unencoded(message string) []byte {
	return fmt.Appendf(nil, `{"failure":{"reason":%q,"message":%q}}`, backup.ToolFailed, message)
}

// words is how many bytes of a message are left when it has to be short.
const words = 1200

// shorten shortens a Report by one step, and reports whether it could.
func shorten(r *backup.Report) bool {
	switch {
	case r.Failure != nil && len(r.Failure.Message) > words:
		// The beginning contains what was attempted, the end why it failed.
		m := r.Failure.Message
		m = m[:words/3] + " … " + m[len(m)-words*2/3+len(" … "):]
		r.Failure.Message = strings.ToValidUTF8(m, "")
		if len(r.Failure.Message) > words {
			r.Failure.Message = strings.ToValidUTF8(r.Failure.Message[:words], "")
		}
	case len(r.Databases) > 5:
		r.Databases = r.Databases[:len(r.Databases)/2]
	case r.Catalog != nil && len(r.Catalog.Backups) > 1:
		r.Catalog.Backups = r.Catalog.Backups[:len(r.Catalog.Backups)-1]
	case len(r.Databases) > 0:
		r.Databases = nil
	case r.Failure != nil && len(r.Failure.Message) > words/4:
		r.Failure.Message = strings.ToValidUTF8(r.Failure.Message[:words/4], "")
	default:
		return false
	}
	return true
}
