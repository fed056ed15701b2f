package harness

import (
	"context"
	_ "embed"
	"encoding/json"
	"fmt"
	"strings"
	"time"
)

//go:embed sql.py
var sqlScript string

// Login to a database, the way an application does.
type Login struct {
	// URI, and Settings beside it or in its place, as libpq names them.
	URI      string            `json:"uri,omitempty"`
	Settings map[string]string `json:"settings"`

	// CA is the text of the certificate that the server's has to come from.
	CA string `json:"ca,omitempty"`
}

// RefusedError is that of a database that was reached, and said no.
type RefusedError string

func (r RefusedError) Error() string { return string(r) }

// SQL runs one statement on a connection of its own. Values of a row are joined
// by |, rows by line ends.
func (c *Client) SQL(ctx context.Context, l Login, statement string) (string, error) {
	ask, err := json.Marshal(struct {
		Login

		Statement string `json:"statement"`
	}{l, statement})
	if err != nil {
		return "", fmt.Errorf("cannot encode a statement: %w", err)
	}
	ctx, cancel := context.WithTimeout(ctx, 30*time.Second)
	defer cancel()
	// By standard input, so that the password shows in no list of processes.
	out, err := c.cluster.Exec(ctx, c.namespace, ClientPod, "client", strings.NewReader(string(ask)), "python3", "-c", sqlScript)
	if err != nil {
		return "", err
	}
	var answer struct {
		Rows  []string `json:"rows"`
		Error string   `json:"error"`
	}
	if err := json.Unmarshal([]byte(out), &answer); err != nil {
		return "", fmt.Errorf("cannot decode the answer %q: %w", out, err)
	}
	if answer.Error != "" {
		return "", RefusedError(answer.Error)
	}
	return strings.Join(answer.Rows, "\n"), nil
}
