package backup

import (
	"crypto/rand"
	"fmt"
	"regexp"
	"strings"
	"time"
)

// Suffix is how many random letters an id has.
const suffix = 6

var validID = regexp.MustCompile(`^[0-9]{8}T[0-9]{6}Z-[a-z0-9]{1,32}$`)

// NewID of a backup that begins at t. The letters keep two that begin in the same
// second apart.
func NewID(t time.Time) string {
	return t.UTC().Format(IDFormat) + "-" + strings.ToLower(rand.Text()[:suffix])
}

// ParseID returns when the backup with the id began, to the second.
func ParseID(id string) (time.Time, error) {
	if !validID.MatchString(id) {
		return time.Time{}, fmt.Errorf("cannot read the id %q: it should look like 20060102T150405Z-abcdef", id)
	}
	t, err := time.Parse(IDFormat, id[:len(IDFormat)])
	if err != nil {
		return time.Time{}, fmt.Errorf("cannot read the id %q: %w", id, err)
	}
	return t.UTC(), nil
}
