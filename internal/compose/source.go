package compose

import (
	"crypto/rand"
	"fmt"
	"time"
)

// Source is all that a function takes from outside of its request.
type Source interface {
	// Password of 32 characters that need no escaping in URIs, files and
	// shells: letters and digits.
	Password() (string, error)

	// Now is the time, for what expires. It is zero where nothing may depend
	// on it.
	Now() time.Time
}

// SystemSource draws from crypto/rand and reads the system's clock.
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

// Placeholder stands for every secret where a result is read by people.
const Placeholder = "generated-at-first-apply"

// ReviewSource stands in where a result is read by people and compared: the
// same placeholder each time, at no time.
type ReviewSource struct{}

// Password implements Source.
func (ReviewSource) Password() (string, error) { return Placeholder, nil }

// Now implements Source.
func (ReviewSource) Now() time.Time { return time.Time{} }
