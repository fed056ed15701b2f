// Package patroni speaks to Patroni's REST API
// (https://patroni.readthedocs.io/en/latest/rest_api.html). It asks; Patroni
// decides.
package patroni

import (
	"bytes"
	"context"
	"crypto/subtle"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"time"

	"github.com/storeplane/storeplane/internal/instance/control"
)

// Port of every member's API.
const Port = "8008"

const user = "patroni"

// Bounds of calls. What moves servers takes as long as they take to stop and
// start.
const (
	readTimeout = 3 * time.Second
	moveTimeout = 60 * time.Second
)

// maxAnswer is far more than Patroni ever says.
const maxAnswer = 1 << 20

// ErrRefused is what an answer of Patroni's that says no is.
var ErrRefused = errors.New("Patroni refuses") //nolint:staticcheck // Patroni is a name

// ErrSlow is what an answer is that another one did not have in time: 504.
var ErrSlow = errors.New("another one did not answer in time")

// ErrStranger is what an answer is of a manager whose own pod the API server does not know: 410.
var ErrStranger = errors.New("the API server does not know the other one either")

// Access to the APIs of a cluster's servers.
type Access struct {
	password  *Password
	transport *http.Transport
}

// NewAccess by a password in a file, and by the certificate of this cluster's servers.
func NewAccess(passwordFile string, by control.TLS) *Access {
	return &Access{password: PasswordFile(passwordFile), transport: by.Transport()}
}

// Client of the Patroni of one server.
type Client struct {
	base     string
	http     *http.Client
	password *Password
}

// At is a client of a base URL. One that begins with https is of a server of this cluster,
// or it is not spoken to.
func At(base string, access *Access) *Client {
	return &Client{base: base, http: &http.Client{Transport: access.transport}, password: access.password}
}

// Base URL of a port of a server.
func Base(scheme, host, port string) string { return scheme + "://" + net.JoinHostPort(host, port) }

// Status of this server.
func (c *Client) Status(ctx context.Context) (*Status, error) {
	s := &Status{}
	return s, c.read(ctx, "/patroni", s)
}

// Position of this server in the WAL.
func (c *Client) Position(ctx context.Context) (*Position, error) {
	s := &Position{}
	return s, c.read(ctx, "/patroni", s)
}

// Cluster as this server sees it. What is said of others is some seconds old.
func (c *Client) Cluster(ctx context.Context) (*Cluster, error) {
	s := &Cluster{}
	return s, c.read(ctx, "/cluster", s)
}

// Reload the configuration from its files.
func (c *Client) Reload(ctx context.Context) error { return c.move(ctx, "/reload", struct{}{}) }

// Restart PostgreSQL if parameters wait for it.
func (c *Client) Restart(ctx context.Context) error {
	return c.move(ctx, "/restart", map[string]any{"restart_pending": true})
}

// Reinitialize a standby: it throws away what it has and copies the primary.
func (c *Client) Reinitialize(ctx context.Context) error {
	return c.move(ctx, "/reinitialize", map[string]any{"force": false})
}

// Knock at a manager, which opens a connection to it unless there is one, and keeps it open
// for what is asked next.
func (c *Client) Knock(ctx context.Context) error {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, c.base+"/healthz", nil)
	if err != nil {
		return fmt.Errorf("cannot knock at a manager: %w", err)
	}
	res, err := c.http.Do(req)
	if err != nil {
		return fmt.Errorf("cannot knock at a manager: %w", err)
	}
	_, err = io.Copy(io.Discard, io.LimitReader(res.Body, maxAnswer))
	return errors.Join(err, res.Body.Close())
}

// Release is what a server that has ended asks another one's manager for.
type Release struct {
	// Pod that holds the leader lock.
	Pod string `json:"pod"`

	// At is when its server had ended. Zero is from a manager that does not write it.
	At time.Time `json:"at,omitzero"`
}

// ReleasePath of a manager's API.
const ReleasePath = "/release"

// Release asks a manager, not Patroni, to take the leader lock away from a server
// that has ended. The password is Patroni's.
func (c *Client) Release(ctx context.Context, of Release) error {
	return c.move(ctx, ReleasePath, of)
}

// GonePath of a manager's API.
const GonePath = "/gone"

// Asked is a pod, by its name and UID, that a manager is asked for.
type Asked struct {
	Pod string `json:"pod"`
	UID string `json:"uid,omitempty"`
}

// Answer of a manager.
type Answer struct {
	// Gone says that there is no such pod, or that it is killed in a moment.
	Gone bool `json:"gone"`

	// Seconds of its grace period, where it is that manager's own pod and is killed in a
	// moment.
	Seconds int64 `json:"seconds,omitempty"`
}

// Gone asks a manager, not Patroni, whether its own or another pod is gone: it is ErrStranger
// where the API server does not know that manager's pod either, and ErrSlow where the API server
// did not answer it in time. The password is Patroni's.
func (c *Client) Gone(ctx context.Context, pod Asked) (Answer, error) {
	answer, err := c.ask(ctx, GonePath, pod)
	if err != nil {
		return Answer{}, err
	}
	a := Answer{}
	if err := json.Unmarshal([]byte(answer), &a); err != nil {
		return Answer{}, fmt.Errorf("cannot read the answer to %s: %w", GonePath, err)
	}
	return a, nil
}

// FencePath of a manager's API.
const FencePath = "/fence"

// Fence is what a server that is to lead asks another one's manager for.
type Fence struct {
	// By is the pod that is to lead.
	By string `json:"by"`
}

// Fenced is the answer.
type Fenced struct {
	// Received is up to where the standby has received the log, in bytes.
	Received int64 `json:"received"`
}

// Fence asks a manager, not Patroni, that its standby receives nothing more from whom it
// follows, and returns up to where it has received the log. The password is Patroni's.
func (c *Client) Fence(ctx context.Context, by string) (int64, error) {
	answer, err := c.ask(ctx, FencePath, Fence{By: by})
	if err != nil {
		return 0, err
	}
	f := Fenced{}
	if err := json.Unmarshal([]byte(answer), &f); err != nil {
		return 0, fmt.Errorf("cannot read the answer to %s: %w", FencePath, err)
	}
	return f.Received, nil
}

// Admits says whether who calls has the password of Patroni's API.
func (c *Client) Admits(name, password string) bool {
	accepted, err := c.password.candidates()
	if err != nil || name != user {
		return false
	}
	for _, p := range accepted {
		if p != "" && subtle.ConstantTimeCompare([]byte(p), []byte(password)) == 1 {
			return true
		}
	}
	return false
}

// Switchover from one member to another.
func (c *Client) Switchover(ctx context.Context, leader, candidate string) error {
	return c.move(ctx, "/switchover", map[string]any{"leader": leader, "candidate": candidate})
}

func (c *Client) read(ctx context.Context, path string, into any) error {
	ctx, cancel := context.WithTimeout(ctx, readTimeout)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, c.base+path, nil)
	if err != nil {
		return fmt.Errorf("cannot ask Patroni for %s: %w", path, err)
	}
	res, err := c.http.Do(req)
	if err != nil {
		return fmt.Errorf("cannot ask Patroni for %s: %w", path, err)
	}
	defer func() { _ = res.Body.Close() }()
	// The code says what the role is, the body says all.
	if err := json.NewDecoder(io.LimitReader(res.Body, maxAnswer)).Decode(into); err != nil {
		return fmt.Errorf("cannot read Patroni's answer to %s: %w", path, err)
	}
	return nil
}

// move asks for something that changes servers, with each of the passwords that
// Patroni may have: it takes up a new one by the very reload that needs it.
func (c *Client) move(ctx context.Context, path string, body any) error {
	_, err := c.ask(ctx, path, body)
	return err
}

// ask for something, and return the answer.
func (c *Client) ask(ctx context.Context, path string, body any) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, moveTimeout)
	defer cancel()
	data, err := json.Marshal(body)
	if err != nil {
		return "", fmt.Errorf("cannot write %s for Patroni: %w", path, err)
	}
	passwords, err := c.password.candidates()
	if err != nil {
		return "", err
	}
	for _, p := range passwords {
		code, answer, err := c.post(ctx, path, data, p)
		switch {
		case err != nil:
			return "", fmt.Errorf("cannot ask Patroni for %s: %w", path, err)
		case code == http.StatusUnauthorized:
			continue
		case code == http.StatusGone:
			c.password.accepted(p)
			return "", fmt.Errorf("%w: %s: %s", ErrStranger, path, answer)
		case code == http.StatusGatewayTimeout:
			c.password.accepted(p)
			return "", fmt.Errorf("%w: %s: %s", ErrSlow, path, answer)
		case code >= http.StatusMultipleChoices:
			c.password.accepted(p)
			return "", fmt.Errorf("%w %s: %s", ErrRefused, path, answer)
		}
		c.password.accepted(p)
		return answer, nil
	}
	return "", fmt.Errorf("%w %s: it has another password", ErrRefused, path)
}

func (c *Client) post(ctx context.Context, path string, data []byte, password string) (int, string, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, c.base+path, bytes.NewReader(data))
	if err != nil {
		return 0, "", err
	}
	req.Header.Set("Content-Type", "application/json")
	req.SetBasicAuth(user, password)
	res, err := c.http.Do(req)
	if err != nil {
		return 0, "", err
	}
	defer func() { _ = res.Body.Close() }()
	answer, err := io.ReadAll(io.LimitReader(res.Body, maxAnswer))
	return res.StatusCode, string(bytes.TrimSpace(answer)), err
}
