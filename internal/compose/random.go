package compose

import (
	"crypto/rand"
	"fmt"
)

// Random draws what must not be guessed.
type Random interface {
	// Password of 32 characters that need no escaping in URIs, files and
	// shells: letters and digits.
	Password() (string, error)
}

// CryptoRandom draws from crypto/rand.
type CryptoRandom struct{}

const alphabet = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789"

// Password implements Random. Its 32 characters carry 190 bits.
func (CryptoRandom) Password() (string, error) {
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

// ReviewRandom stands in for random values where a result is read by people
// and compared: the same placeholder each time.
type ReviewRandom struct{}

// Password implements Random.
func (ReviewRandom) Password() (string, error) { return "generated-at-first-apply", nil }
