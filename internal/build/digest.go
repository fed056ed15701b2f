package build

import (
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
