package mysqld

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
)

// joinedFile has the Joined of a server.
const joinedFile = "joined.json"

// Joined is how a server has joined a group last.
type Joined struct {
	// Address is that by which it has, host:port, or "" if it has joined none.
	Address string `json:"address"`

	// Seen is true if it was in the group afterwards.
	Seen bool `json:"seen,omitempty"`
}

// Joined returns how the server has joined a group last.
func (f Files) Joined() (Joined, error) {
	var j Joined
	data, err := os.ReadFile(filepath.Join(f.Volume, joinedFile))
	if errors.Is(err, fs.ErrNotExist) {
		return j, nil
	}
	if err != nil {
		return j, fmt.Errorf("cannot read how the server has joined its group: %w", err)
	}
	if err := json.Unmarshal(data, &j); err != nil {
		// The file is replaced as a whole, so this is none of ours.
		return Joined{}, nil //nolint:nilerr // it says nothing about a group
	}
	return j, nil
}

// SetJoined records how the server joins a group, on the disk.
func (f Files) SetJoined(j Joined) error {
	data, err := json.Marshal(j)
	if err == nil {
		err = replace(filepath.Join(f.Volume, joinedFile), data)
	}
	if err != nil {
		return fmt.Errorf("cannot record how the server joins its group: %w", err)
	}
	return syncFolder(f.Volume)
}

// replace replaces a file as a whole.
func replace(name string, data []byte) error {
	next, err := os.OpenFile(name+".new", os.O_CREATE|os.O_TRUNC|os.O_WRONLY, 0o600) //nolint:gosec // a file of the volume
	if err != nil {
		return err
	}
	_, err = next.Write(data)
	if err := errors.Join(err, next.Sync(), next.Close()); err != nil {
		return err
	}
	return os.Rename(name+".new", name)
}
