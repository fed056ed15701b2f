package build

import (
	"crypto/sha256"
	"encoding/hex"
	"maps"
	"slices"
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

// DigestOf a map, whatever its order.
func DigestOf(values map[string]string) string {
	texts := make([]string, 0, 2*len(values))
	for _, k := range slices.Sorted(maps.Keys(values)) {
		texts = append(texts, k, values[k])
	}
	return Digest(texts...)
}
