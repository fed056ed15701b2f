package stream

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strings"

	"filippo.io/age"

	"github.com/storeplane/storeplane/internal/backup"
)

// A Key is the encryption key of a Backup. The zero Key encrypts nothing.
type Key struct {
	// identities are the age identities of the key. The first one encrypts, and each of them
	// decrypts, so that a new key can be put before the old one.
	identities []age.Identity
	recipients []age.Recipient
	names      []string
	secrets    []string
}

// Seal returns the seal of the backups in a place.
func (k Key) Seal(place string) (backup.Seal, error) {
	return backup.NewSeal(k.secrets, k.names, place)
}

// ReadKey reads age identities from a file.
func ReadKey(file string) (Key, error) {
	content, err := os.ReadFile(file) //nolint:gosec // the pod's own mount
	if errors.Is(err, fs.ErrNotExist) {
		return Key{}, backup.Errorf(backup.KeyMissing, "cannot read the encryption key: there is none")
	}
	if err != nil {
		return Key{}, backup.Errorf(backup.KeyMissing, "cannot read the encryption key: %w", err)
	}
	return ParseKey(string(content))
}

// ParseKey parses age identities, one on each line. Its errors do not contain any of the content.
func ParseKey(content string) (Key, error) {
	identities, err := age.ParseIdentities(strings.NewReader(content))
	if err != nil {
		return Key{}, backup.Errorf(backup.KeyMissing, "cannot read the encryption key: it is no age identity, as age-keygen makes them")
	}
	k := Key{}
	for _, i := range identities {
		var r interface {
			age.Recipient
			fmt.Stringer
		}
		var secret string
		switch i := i.(type) {
		case *age.X25519Identity:
			r, secret = i.Recipient(), i.String()
		case *age.HybridIdentity:
			r, secret = i.Recipient(), i.String()
		default:
			continue
		}
		k.identities = append(k.identities, i)
		k.recipients = append(k.recipients, r)
		k.names = append(k.names, r.String())
		k.secrets = append(k.secrets, secret)
	}
	if len(k.identities) == 0 {
		return Key{}, backup.Errorf(backup.KeyMissing, "cannot read the encryption key: it is no age identity, as age-keygen makes them")
	}
	return k, nil
}

// Recipient returns the age public key that is encrypted for, or "" without a key.
func (k Key) Recipient() string {
	if len(k.names) == 0 {
		return ""
	}
	return k.names[0]
}
