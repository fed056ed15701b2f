package compose

import (
	"crypto/rand"
	"fmt"
	"time"
)

// Source provides all input of a function that is not in its request.
type Source interface {
	// Password returns a random password of 32 characters that need no escaping in URIs, files and
	// shells: letters and digits.
	Password() (string, error)

	// Now returns the current time, for what expires. It is zero where nothing may depend on the
	// time.
	Now() time.Time
}

// SystemSource reads passwords from crypto/rand and the time from the system's clock.
type SystemSource struct{}

const alphabet = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789"

// Password implements Source. Its 32 characters carry 190 bits.
func (SystemSource) Password() (string, error) {
	const length = 32
	// Bytes at or above limit would favour the first characters.
	const limit = 256 - 256%len(alphabet)
	out := make([]byte, 0, length)
	buf := make([]byte, 2*length)
	for len(out) < length {
		if _, err := rand.Read(buf); err != nil {
			return "", fmt.Errorf("cannot draw a password: %w", err)
		}
		for _, b := range buf {
			if int(b) < limit && len(out) < length {
				out = append(out, alphabet[int(b)%len(alphabet)])
			}
		}
	}
	return string(out), nil
}

// Now implements Source.
func (SystemSource) Now() time.Time { return time.Now() }

// Placeholder stands for every secret in a result that people read.
const Placeholder = "generated-at-first-apply"

// ReviewSource is the Source of a result that people read and compare: every password is
// Placeholder, and the time is zero.
type ReviewSource struct{}

// Password implements Source.
func (ReviewSource) Password() (string, error) { return Placeholder, nil }

// Now implements Source.
func (ReviewSource) Now() time.Time { return time.Time{} }
