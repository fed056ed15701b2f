package build

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
)

// Digest of texts, short enough for a name: 10 hex digits. Where a text ends
// counts.
func Digest(texts ...string) string {
	h := sha256.New()
	for _, t := range texts {
		_, _ = h.Write([]byte(t))
		_, _ = h.Write([]byte{0})
	}
	return hex.EncodeToString(h.Sum(nil))[:10]
}

// KeyedDigest of a secret: 10 hex digits which say nothing of it to a reader
// who lacks the key.
func KeyedDigest(key, secret string) string {
	h := hmac.New(sha256.New, []byte(key))
	_, _ = h.Write([]byte(secret))
	return hex.EncodeToString(h.Sum(nil))[:10]
}
