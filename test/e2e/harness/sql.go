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

// Login is how an application connects to a database.
type Login struct {
	// URI and Settings are the connection parameters of libpq. Either may be left out.
	URI      string            `json:"uri,omitempty"`
	Settings map[string]string `json:"settings"`

	// CA is the certificate, as PEM, of the authority that must have issued the server's
	// certificate.
	CA string `json:"ca,omitempty"`
}

// RefusedError is the error that a database answered, in contrast to one that could not be reached.
type RefusedError string

func (r RefusedError) Error() string { return string(r) }

// SQL runs one statement on a connection of its own. It returns the values of a row joined by |,
// and the rows joined by line ends.
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
	// The password is passed by standard input, so that it shows in no list of processes.
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
