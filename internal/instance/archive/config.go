package archive

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/storeplane/storeplane/internal/instance"
	"github.com/storeplane/storeplane/internal/pgbackrest"
)

// Config contains the paths in the pod. The command interpolates the defaults.
type Config struct {
	Repository string `default:"${repositoryDir}" help:"Folder of pgBackRest's configuration and certificate."`
	Store      string `default:"${storeDir}"      help:"Folder of the store's credentials."`
	Key        string `default:"${keyFile}"       help:"File of the encryption's key."`
	Origin     string `default:"${restoreDir}"    help:"Folder of what to restore, and of its store's credentials."`
	Socket     string `default:"${socketDir}"     help:"Folder of PostgreSQL's socket."`
	Volume     string `default:"${volumeDir}"     help:"Where the volume is mounted."`
}

// DataDir returns PostgreSQL's data directory.
func (c Config) DataDir() string { return filepath.Join(c.Volume, instance.DataFolder) }

// ErrNone is the error for a pod that was created before backups were configured.
var ErrNone = errors.New("this pod was made before backups were asked for")

// Tool returns pgBackRest for the cluster's own repository. Its warnings are written to log.
func (c Config) Tool(log io.Writer) (pgbackrest.Tool, error) {
	b := instance.Backup{}
	switch err := readJSON(filepath.Join(c.Repository, instance.BackupFile), &b); {
	case errors.Is(err, fs.ErrNotExist):
		return pgbackrest.Tool{}, ErrNone
	case err != nil:
		return pgbackrest.Tool{}, err
	}
	env, err := pgbackrest.Environment(b.Destination, b.Encrypted, pgbackrest.Credentials{StoreDir: c.Store, KeyFile: c.Key})
	if err != nil {
		return pgbackrest.Tool{}, err
	}
	return pgbackrest.Tool{ConfigFile: filepath.Join(c.Repository, pgbackrest.FileConfig), Env: env, Log: log}, nil
}

func readJSON(file string, into any) error {
	data, err := os.ReadFile(file) //nolint:gosec // the folder is the pod's
	if err != nil {
		return fmt.Errorf("cannot read where backups are: %w", err)
	}
	if err := json.Unmarshal(data, into); err != nil {
		return fmt.Errorf("cannot read where backups are: %w", err)
	}
	return nil
}

// Create creates this cluster's stanza in the repository. It may be called again.
func (c Config) Create(ctx context.Context, log io.Writer) error {
	stanza, err := c.Stanza()
	if err != nil {
		return err
	}
	tool, err := c.Tool(log)
	if err != nil {
		return err
	}
	options := pgbackrest.Options([]pgbackrest.Server{{DataDir: c.DataDir(), SocketDir: c.Socket}})
	_, err = tool.Run(ctx, stanza, "stanza-create", options...)
	if pgbackrest.Locked(err) {
		// Segments are being archived, which may take hours if many wait. Whether the stanza
		// exists can be read without the lock.
		if _, missing := tool.Archive(ctx, stanza); missing == nil {
			return nil
		}
	}
	return err
}
