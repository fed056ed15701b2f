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

// Content of a bundle.
type Content struct {
	Config map[string]string
	Secret map[string][]byte
}

// Name of the bundle of an application with a content that has no secrets.
func Name(application string, config map[string]string) string {
	return Content{Config: config}.Name(application, nil)
}

// Name of the bundle that holds a content. Where it has secrets, the name is made
// with a key: whoever can list names could else try which secret makes it.
func (c Content) Name(application string, key []byte) string {
	h := sha256.New()
	if len(c.Secret) > 0 {
		h = hmac.New(sha256.New, key)
	}
	c.encode(h)
	return StableName(application) + "-" + hex.EncodeToString(h.Sum(nil))[:digits]
}

// encode the content such that no two contents are encoded alike: sorted, and
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

// Equal tells whether two contents are the same.
func (c Content) Equal(o Content) bool {
	return maps.Equal(c.Config, o.Config) &&
		maps.EqualFunc(c.Secret, o.Secret, hmac.Equal)
}

// ContentOf the objects of a bundle, or of the stable name; the Secret may be nil.
func ContentOf(config *corev1.ConfigMap, secret *corev1.Secret) Content {
	c := Content{Config: maps.Clone(config.Data)}
	// Who made it by hand may have made it of bytes.
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

// Keys of the content, sorted.
func (c Content) Keys() []string {
	return slices.Sorted(maps.Keys(c.all()))
}

// all keys, and whether each is in the Secret.
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
