package backup

import (
	"crypto/hkdf"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"slices"
)

// A Seal authenticates the manifests and verifications of an encrypted Backup. It is needed
// because any client that may write to the store can encrypt for the Backup's recipient, which is
// no secret, and can write a Manifest. The zero Seal, that of a Backup without encryption, writes
// no seals and requires none.
type Seal struct {
	keys       [][]byte
	recipients []string
	place      string
}

// sealInfo binds the derived keys to their purpose (RFC 5869).
const sealInfo = "storeplane backup seal v1"

// NewSeal returns the Seal of a Backup whose backups are in a place. Secrets are the identities
// of its key, of which the first one seals, and recipients are theirs.
func NewSeal(secrets, recipients []string, place string) (Seal, error) {
	s := Seal{recipients: recipients, place: place}
	for _, secret := range secrets {
		key, err := hkdf.Key(sha256.New, []byte(secret), nil, sealInfo, sha256.Size)
		if err != nil {
			return Seal{}, fmt.Errorf("cannot derive the key of the seal: %w", err)
		}
		s.keys = append(s.keys, key)
	}
	return s, nil
}

// Manifest sets the Seal of a Manifest, which proves that its other fields were written with the
// key, for this place.
func (s Seal) Manifest(m *Manifest) error {
	m.Seal = ""
	seal, err := s.make(*m, m.ID)
	m.Seal = seal
	return err
}

// Verification sets the Seal of the Verification of a backup.
func (s Seal) Verification(v *Verification, id string) error {
	v.Seal = ""
	seal, err := s.make(*v, id)
	v.Seal = seal
	return err
}

// Sign returns the seal of any other value, which has an id. The value's own seal has to be empty.
func (s Seal) Sign(v any, id string) (string, error) { return s.make(v, id) }

// Check reports whether a seal was made by Sign of a value, or there is no key.
func (s Seal) Check(v any, id, seal string) bool { return len(s.keys) == 0 || s.made(v, id, seal) }

// CheckManifest returns an error unless a Manifest was written with the key of this Backup. Its
// reason is KeyMissing or BackupNotAuthentic.
func (s Seal) CheckManifest(m *Manifest) error {
	if len(s.keys) == 0 {
		if m.Recipient != "" {
			return Errorf(KeyMissing, "the backup is encrypted for %s, and there is no key", m.Recipient)
		}
		return nil
	}
	if m.Recipient != "" && !slices.Contains(s.recipients, m.Recipient) {
		return Errorf(KeyMissing, "the backup is encrypted for %s, and the key is that of %s", m.Recipient, s.recipients[0])
	}
	plain := *m
	plain.Seal = ""
	if m.Recipient != "" && m.Seal == "" {
		return Errorf(BackupNotAuthentic, "backup %s has no seal: it is of a release before backups were sealed, or another program has written it. "+
			"If you know that it is genuine, restore it by its id with source.acceptUnsealed: true", m.ID)
	}
	if m.Recipient == "" || !s.made(plain, m.ID, m.Seal) {
		return Errorf(BackupNotAuthentic, "backup %s was not written with this Backup's key: another program may write to the store", m.ID)
	}
	return nil
}

// CheckVerification reports whether a Verification was written with the key of this Backup.
func (s Seal) CheckVerification(v *Verification, id string) bool {
	plain := *v
	plain.Seal = ""
	return len(s.keys) == 0 || s.made(plain, id, v.Seal)
}

// made reports whether a seal was made of a value with one of the keys.
func (s Seal) made(v any, id, seal string) bool {
	given, err := hex.DecodeString(seal)
	if err != nil {
		return false
	}
	for _, key := range s.keys {
		if want, err := s.sum(key, v, id); err == nil && hmac.Equal(want, given) {
			return true
		}
	}
	return false
}

func (s Seal) make(v any, id string) (string, error) {
	if len(s.keys) == 0 {
		return "", nil
	}
	sum, err := s.sum(s.keys[0], v, id)
	return hex.EncodeToString(sum), err
}

// sum returns the code of a value of a backup. Type, place and id are part of it, so that no seal
// fits another value.
func (s Seal) sum(key []byte, v any, id string) ([]byte, error) {
	content, err := json.Marshal(v)
	if err != nil {
		return nil, fmt.Errorf("cannot encode what is sealed: %w", err)
	}
	mac := hmac.New(sha256.New, key)
	_, _ = fmt.Fprintf(mac, "%T\n%s\n%s\n", v, s.place, id) // it never fails
	_, _ = mac.Write(content)
	return mac.Sum(nil), nil
}
