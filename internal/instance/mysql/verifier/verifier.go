// Package verifier creates and checks verifiers of passwords as MySQL stores them for
// caching_sha2_password
// (https://dev.mysql.com/doc/refman/9.7/en/caching-sha2-pluggable-authentication.html). With them no
// password has to be in a statement, and a password that is set already need not be set again.
package verifier

import (
	"bytes"
	"crypto/rand"
	"crypto/sha256"
	"crypto/subtle"
	"fmt"
	"strconv"
)

const (
	// prefix is followed by the thousands of rounds, the salt and the digest.
	prefix    = "$A$"
	saltBytes = 20
	thousands = 5

	// digestBytes is the length of a digest in the alphabet of crypt.
	digestBytes = 43
)

// New returns a verifier of a password, with a random salt.
func New(password string) []byte {
	salt := make([]byte, saltBytes)
	// rand.Read never returns an error: it ends the program instead.
	_, _ = rand.Read(salt)
	for i := range salt {
		// Like MySQL's own: seven bits, and neither zero nor a dollar.
		if salt[i] &= 0x7f; salt[i] == 0 || salt[i] == '$' {
			salt[i]++
		}
	}
	return verifier(password, salt, thousands)
}

// Matches reports whether a verifier is of a password. It is false for a verifier of another
// mechanism, and for none.
func Matches(stored []byte, password string) bool {
	rest, ok := bytes.CutPrefix(stored, []byte(prefix))
	if !ok || len(rest) != 4+saltBytes+digestBytes || rest[3] != '$' {
		return false
	}
	count, err := strconv.ParseUint(string(rest[:3]), 16, 16)
	if err != nil || count == 0 {
		return false
	}
	want := verifier(password, rest[4:4+saltBytes], int(count))
	return subtle.ConstantTimeCompare(stored, want) == 1
}

func verifier(password string, salt []byte, thousands int) []byte {
	out := fmt.Appendf(nil, "%s%03X$", prefix, thousands)
	out = append(out, salt...)
	return append(out, crypt([]byte(password), salt, thousands*1000)...)
}

// crypt is the SHA-256 variant of https://www.akkadia.org/drepper/SHA-crypt.txt, which libraries
// offer for salts of up to 16 bytes only.
func crypt(password, salt []byte, rounds int) []byte {
	b := sum(password, salt, password)
	h := sha256.New()
	h.Write(password)
	h.Write(salt)
	h.Write(repeated(b, len(password)))
	for n := len(password); n > 0; n >>= 1 {
		if n&1 != 0 {
			h.Write(b)
		} else {
			h.Write(password)
		}
	}
	a := h.Sum(nil)

	p := repeated(sum(bytes.Repeat(password, len(password))), len(password))
	s := repeated(sum(bytes.Repeat(salt, 16+int(a[0]))), len(salt))
	for i := range rounds {
		h.Reset()
		first, last := a, p
		if i&1 != 0 {
			first, last = p, a
		}
		h.Write(first)
		if i%3 != 0 {
			h.Write(s)
		}
		if i%7 != 0 {
			h.Write(p)
		}
		h.Write(last)
		a = h.Sum(nil)
	}
	return encode(a)
}

func sum(parts ...[]byte) []byte {
	digest := sha256.Sum256(bytes.Join(parts, nil))
	return digest[:]
}

// repeated returns the first bytes of an endless repetition of a block.
func repeated(block []byte, n int) []byte {
	return bytes.Repeat(block, n/len(block)+1)[:n]
}

const alphabet = "./0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"

// encode returns a digest in the alphabet and the order of crypt.
func encode(a []byte) []byte {
	out := make([]byte, 0, digestBytes)
	add := func(value uint32, characters int) {
		for range characters {
			out = append(out, alphabet[value&0x3f])
			value >>= 6
		}
	}
	for i, j := 0, 0; i < 10; i++ {
		// Each group has three bytes, ten apart; the first of them moves on by 21.
		x, y, z := j, (j+10)%30, (j+20)%30
		add(uint32(a[x])<<16|uint32(a[y])<<8|uint32(a[z]), 4)
		j = (j + 21) % 30
	}
	add(uint32(a[31])<<8|uint32(a[30]), 3)
	return out
}
