package build

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
)

// Digest returns a hash of texts, short enough for a name: 10 hex digits. It depends on where one
// text ends and the next begins.
func Digest(texts ...string) string {
	h := sha256.New()
	for _, t := range texts {
		_, _ = h.Write([]byte(t))
		_, _ = h.Write([]byte{0})
	}
	return hex.EncodeToString(h.Sum(nil))[:10]
}

// KeyedDigest returns a hash of a secret: 10 hex digits that reveal nothing of it without the key.
func KeyedDigest(key, secret string) string {
	h := hmac.New(sha256.New, []byte(key))
	_, _ = h.Write([]byte(secret))
	return hex.EncodeToString(h.Sum(nil))[:10]
}
