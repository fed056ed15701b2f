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

// A Seal authenticates what lies beside the backups of an encrypted Backup: whoever may
// write to the store can encrypt for its recipient, which is no secret, and can write a
// Manifest. The zero Seal, of a Backup without encryption, makes and asks for none.
type Seal struct {
	keys       [][]byte
	recipients []string
	place      string
}

// sealInfo binds the keys to what they are for (RFC 5869).
const sealInfo = "storeplane backup seal v1"

// NewSeal of a Backup, whose backups lie in a place. Secrets are the identities of its
// key, the first of which seals, and Recipients theirs.
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

// Manifest is sealed: its Seal says that all else was written with the key, for this
// place.
func (s Seal) Manifest(m *Manifest) error {
	m.Seal = ""
	seal, err := s.make(*m, m.ID)
	m.Seal = seal
	return err
}

// Verification of a backup is sealed.
func (s Seal) Verification(v *Verification, id string) error {
	v.Seal = ""
	seal, err := s.make(*v, id)
	v.Seal = seal
	return err
}

// CheckManifest says why a Manifest is none of this Backup's.
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
	if m.Recipient == "" || !s.made(plain, m.ID, m.Seal) {
		return Errorf(BackupNotAuthentic, "backup %s was not written with this Backup's key: another program may write to the store", m.ID)
	}
	return nil
}

// CheckVerification says whether a Verification was made by this Backup.
func (s Seal) CheckVerification(v *Verification, id string) bool {
	plain := *v
	plain.Seal = ""
	return len(s.keys) == 0 || s.made(plain, id, v.Seal)
}

// made says whether a seal is that of a value.
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

// sum of a value of a backup, which is told from others by its type and place.
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
