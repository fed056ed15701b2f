package backup

import (
	"crypto/rand"
	"fmt"
	"regexp"
	"strings"
	"time"
)

// suffix is the number of random letters and digits at the end of an id.
const suffix = 6

var validID = regexp.MustCompile(`^[0-9]{8}T[0-9]{6}Z-[a-z0-9]{1,32}$`)

// NewID returns the id of a backup that begins at t. Its random end distinguishes two backups
// that begin in the same second.
func NewID(t time.Time) string {
	return t.UTC().Format(IDFormat) + "-" + strings.ToLower(rand.Text()[:suffix])
}

// ParseID returns when the backup with the id began, to the second.
func ParseID(id string) (time.Time, error) {
	if !validID.MatchString(id) {
		return time.Time{}, fmt.Errorf("cannot read the id %q: it has the form 20060102T150405Z-abcdef", id)
	}
	t, err := time.Parse(IDFormat, id[:len(IDFormat)])
	if err != nil {
		return time.Time{}, fmt.Errorf("cannot read the id %q: %w", id, err)
	}
	return t.UTC(), nil
}
