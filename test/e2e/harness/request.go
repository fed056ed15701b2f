package harness

import (
	"context"
	_ "embed"
	"encoding/json"
	"fmt"
	"strings"
	"time"
)

//go:embed connection.py
var connectionScript string

//go:embed request.py
var requestScript string

// TLS are the settings of a TLS connection.
type TLS struct {
	// CA is the certificate authority that is trusted, as PEM.
	CA string `json:"ca"`
	// Name is the server name that the client sends, and that the certificate has to contain.
	Name string `json:"name"`
}

// Request is a request over HTTP, or over HTTPS if TLS is set.
type Request struct {
	Host    string            `json:"host"`
	Port    int               `json:"port"`
	TLS     *TLS              `json:"tls,omitempty"`
	Method  string            `json:"method"`
	Path    string            `json:"path"`
	Headers map[string]string `json:"headers,omitempty"`
	Body    string            `json:"body,omitempty"`
}

// Answer is the answer to a Request.
type Answer struct {
	Status int    `json:"status"`
	Body   string `json:"body"`
}

// Do makes one request inside a container that has Python. An answer of any status is no error.
func (c *Cluster) Do(ctx context.Context, namespace, pod, container string, r Request) (Answer, error) {
	ask, err := json.Marshal(r)
	if err != nil {
		return Answer{}, fmt.Errorf("cannot encode a request: %w", err)
	}
	ctx, cancel := context.WithTimeout(ctx, 30*time.Second)
	defer cancel()
	out, err := c.Exec(ctx, namespace, pod, container, strings.NewReader(string(ask)), "python3", "-c", connectionScript+requestScript)
	if err != nil {
		return Answer{}, fmt.Errorf("%s http://%s%s: %w", r.Method, r.Host, r.Path, err)
	}
	a := Answer{}
	if err := json.Unmarshal([]byte(out), &a); err != nil {
		return Answer{}, fmt.Errorf("cannot decode the answer %q: %w", out, err)
	}
	return a, nil
}
