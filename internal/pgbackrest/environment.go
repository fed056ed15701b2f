package pgbackrest

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	backupv1 "github.com/storeplane/storeplane/apis/backup/v1"
	"github.com/storeplane/storeplane/internal/backup"
)

// Credentials are mounted Secrets: a folder with a file for each key of the store's, and the file
// of the passphrase.
type Credentials struct{ StoreDir, KeyFile string }

// Environment returns the environment of the process pgbackrest, the only one with the
// credentials: they are neither in a pod's specification nor on a command line.
func Environment(d backupv1.Destination, encrypted bool, c Credentials) ([]string, error) {
	e := &environment{dir: c.StoreDir}
	switch d.Type {
	case backupv1.Volume:
	case backupv1.S3:
		switch {
		case e.from("S3_KEY", backup.KeyAWSAccess):
			e.from("S3_KEY_SECRET", backup.KeyAWSSecret)
			e.from("S3_TOKEN", backup.KeyAWSSession)
		case os.Getenv("AWS_WEB_IDENTITY_TOKEN_FILE") != "":
			e.set("S3_KEY_TYPE", "web-id")
		default:
			e.set("S3_KEY_TYPE", "auto")
		}
	case backupv1.GCS:
		switch file := filepath.Join(c.StoreDir, backup.KeyGCS); {
		case e.exists(backup.KeyGCS):
			e.set("GCS_KEY", file)
		case d.Endpoint != "":
			// Without credentials, a store at its own endpoint is one that does not authenticate
			// clients.
			e.set("GCS_KEY_TYPE", "token")
			e.set("GCS_KEY", "none")
		default:
			e.set("GCS_KEY_TYPE", "auto")
		}
	case backupv1.Azure:
		e.from("AZURE_ACCOUNT", backup.KeyAzureAccount)
		if e.from("AZURE_KEY", backup.KeyAzureSAS) {
			e.set("AZURE_KEY_TYPE", "sas")
		} else if !e.from("AZURE_KEY", backup.KeyAzure) {
			e.set("AZURE_KEY_TYPE", "auto")
		}
	}
	if d.Type != backupv1.Volume && e.exists(backup.KeyAuthority) {
		e.set("STORAGE_CA_FILE", filepath.Join(c.StoreDir, backup.KeyAuthority))
	}
	if encrypted {
		pass, err := read(c.KeyFile)
		if err != nil {
			return nil, fmt.Errorf("cannot read the key of the encryption: %w", err)
		}
		if pass == "" {
			return nil, errors.New("cannot use the key of the encryption: it is empty")
		}
		e.set("CIPHER_PASS", pass)
	}
	return e.out, e.err
}

type environment struct {
	dir string
	out []string
	err error
}

func (e *environment) set(option, value string) {
	e.out = append(e.out, "PGBACKREST_REPO1_"+option+"="+value)
}

// from sets an option to a key of the Secret, and reports whether the Secret has it.
func (e *environment) from(option, key string) bool {
	v, err := read(filepath.Join(e.dir, key))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		e.err = fmt.Errorf("cannot read the store's credentials: %w", err)
	}
	if v == "" {
		return false
	}
	e.set(option, v)
	return true
}

func (e *environment) exists(key string) bool {
	_, err := os.Stat(filepath.Join(e.dir, key))
	return err == nil
}

func read(file string) (string, error) {
	b, err := os.ReadFile(file) //nolint:gosec // the folder is the pod's
	return strings.TrimSpace(string(b)), err
}
