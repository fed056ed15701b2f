// Package scram creates and checks SCRAM-SHA-256 verifiers as PostgreSQL stores them (RFC
// 5802, RFC 7677). With them no password has to be in a statement, and a password that is set
// already need not be set again.
package scram

import (
	"crypto/hmac"
	"crypto/pbkdf2"
	"crypto/rand"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/base64"
	"fmt"
	"strconv"
	"strings"
)

const (
	// iterations is PostgreSQL's own default (scram_iterations).
	iterations = 4096
	saltBytes  = 16

	mechanism = "SCRAM-SHA-256"
)

// Verifier returns a verifier of a password, with a random salt.
func Verifier(password string) (string, error) {
	salt := make([]byte, saltBytes)
	// rand.Read never returns an error: it ends the program instead.
	_, _ = rand.Read(salt)
	return verifier(password, salt, iterations)
}

// Matches reports whether a verifier is of a password. It is false for a verifier of another
// mechanism, and for none.
func Matches(stored, password string) bool {
	count, salt, ok := parse(stored)
	if !ok {
		return false
	}
	want, err := verifier(password, salt, count)
	return err == nil && subtle.ConstantTimeCompare([]byte(stored), []byte(want)) == 1
}

func verifier(password string, salt []byte, count int) (string, error) {
	salted, err := pbkdf2.Key(sha256.New, prepare(password), salt, count, sha256.Size)
	if err != nil {
		return "", fmt.Errorf("cannot derive a key: %w", err)
	}
	storedKey := sha256.Sum256(mac(salted, "Client Key"))
	serverKey := mac(salted, "Server Key")
	b64 := base64.StdEncoding.EncodeToString
	return fmt.Sprintf("%s$%d:%s$%s:%s", mechanism, count, b64(salt), b64(storedKey[:]), b64(serverKey)), nil
}

func mac(key []byte, message string) []byte {
	h := hmac.New(sha256.New, key)
	_, _ = h.Write([]byte(message))
	return h.Sum(nil)
}

// parse returns the iterations and the salt of a verifier:
// SCRAM-SHA-256$<count>:<salt>$<keys>.
func parse(stored string) (int, []byte, bool) {
	parts := strings.Split(stored, "$")
	if len(parts) != 3 || parts[0] != mechanism {
		return 0, nil, false
	}
	first, second, ok := strings.Cut(parts[1], ":")
	if !ok {
		return 0, nil, false
	}
	count, err := strconv.Atoi(first)
	if err != nil || count < 1 {
		return 0, nil, false
	}
	salt, err := base64.StdEncoding.DecodeString(second)
	return count, salt, err == nil
}
