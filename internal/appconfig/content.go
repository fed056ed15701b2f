package appconfig

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"hash"
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"
)

// Content is the content of a bundle.
type Content struct {
	Config map[string]string
	Secret map[string][]byte
}

// Name returns the name of an application's bundle with a content that has no secrets.
func Name(application string, config map[string]string) string {
	return Content{Config: config}.Name(application, nil)
}

// Name returns the name of the bundle that holds a content. If the content has secrets, the name is
// computed with a key: otherwise a client that can list names could find out a secret by trying
// values.
func (c Content) Name(application string, key []byte) string {
	h := sha256.New()
	if len(c.Secret) > 0 {
		h = hmac.New(sha256.New, key)
	}
	c.encode(h)
	return StableName(application) + "-" + hex.EncodeToString(h.Sum(nil))[:digits]
}

// encode writes the content to a hash such that no two contents have the same encoding: sorted, and
// each part after its length.
func (c Content) encode(h hash.Hash) {
	size := func(n int) {
		h.Write(binary.BigEndian.AppendUint64(nil, uint64(n))) //nolint:gosec // A length is no less than zero.
	}
	part := func(b []byte) {
		size(len(b))
		h.Write(b)
	}
	size(len(c.Config))
	for _, k := range slices.Sorted(maps.Keys(c.Config)) {
		part([]byte(k))
		part([]byte(c.Config[k]))
	}
	size(len(c.Secret))
	for _, k := range slices.Sorted(maps.Keys(c.Secret)) {
		part([]byte(k))
		part(c.Secret[k])
	}
}

// Equal reports whether two contents are the same.
func (c Content) Equal(o Content) bool {
	return maps.Equal(c.Config, o.Config) &&
		maps.EqualFunc(c.Secret, o.Secret, hmac.Equal)
}

// ContentOf returns the content of a bundle's objects, or of those of the stable name. The Secret
// may be nil.
func ContentOf(config *corev1.ConfigMap, secret *corev1.Secret) Content {
	c := Content{Config: maps.Clone(config.Data)}
	// A ConfigMap that was created by hand may have binary data.
	for k, v := range config.BinaryData {
		if c.Config == nil {
			c.Config = map[string]string{}
		}
		c.Config[k] = string(v)
	}
	if secret != nil {
		c.Secret = secret.Data
	}
	return c
}

// Keys returns the keys of the content, sorted.
func (c Content) Keys() []string {
	return slices.Sorted(maps.Keys(c.all()))
}

// all returns all keys, and whether each is in the Secret.
func (c Content) all() map[string]bool {
	out := make(map[string]bool, len(c.Config)+len(c.Secret))
	for k := range c.Config {
		out[k] = false
	}
	for k := range c.Secret {
		out[k] = true
	}
	return out
}
