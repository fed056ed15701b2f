// Package patroni is a client of Patroni's REST API
// (https://patroni.readthedocs.io/en/latest/rest_api.html) and of the instance managers' API.
// It sends requests, and Patroni decides.
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

	"github.com/storeplane/storeplane/internal/instance"
	"github.com/storeplane/storeplane/internal/instance/control"
)

const user = "patroni"

// Bounds of calls. A call that changes servers takes as long as they take to stop and start.
const (
	readTimeout = 3 * time.Second
	moveTimeout = 60 * time.Second
)

// maxAnswer is how many bytes of an answer are read, far more than Patroni ever sends.
const maxAnswer = 1 << 20

// ErrRefused is the error for a request that Patroni or a manager rejects.
var ErrRefused = errors.New("Patroni refuses") //nolint:staticcheck // Patroni is a name

// ErrSlow is the error for the status code 504: a manager got no answer from the API server in
// time.
var ErrSlow = errors.New("another one did not answer in time")

// ErrStranger is the error for the status code 410: the API server rejects the token of the
// manager that was asked, too.
var ErrStranger = errors.New("the API server does not know the other one either")

// Access contains the credentials for the APIs of a cluster's servers.
type Access struct {
	password  *Password
	transport *http.Transport
}

// NewAccess returns the access with a password in a file and the certificate of this cluster's
// servers.
func NewAccess(passwordFile string, by control.TLS) *Access {
	return &Access{password: PasswordFile(passwordFile), transport: by.Transport()}
}

// Client is a client of the Patroni, or of the manager, of one server.
type Client struct {
	base     string
	http     *http.Client
	password *Password
}

// At returns a client of a base URL. If the URL begins with https, the client talks only to a
// server with a certificate of this cluster.
func At(base string, access *Access) *Client {
	return &Client{base: base, http: &http.Client{Transport: access.transport}, password: access.password}
}

// Base returns the base URL of a port of a server.
func Base(scheme, host, port string) string { return scheme + "://" + net.JoinHostPort(host, port) }

// Status returns the status of this server.
func (c *Client) Status(ctx context.Context) (*Status, error) {
	s := &Status{}
	return s, c.read(ctx, "/patroni", s)
}

// Position returns the position of this server in the WAL.
func (c *Client) Position(ctx context.Context) (*Position, error) {
	s := &Position{}
	return s, c.read(ctx, "/patroni", s)
}

// Cluster returns the cluster as this server observes it. What it contains about other servers
// is some seconds old.
func (c *Client) Cluster(ctx context.Context) (*Cluster, error) {
	s := &Cluster{}
	return s, c.read(ctx, "/cluster", s)
}

// Reload has Patroni reload its configuration from the files.
func (c *Client) Reload(ctx context.Context) error { return c.move(ctx, "/reload", struct{}{}) }

// Restart restarts PostgreSQL if parameters need that.
func (c *Client) Restart(ctx context.Context) error {
	return c.move(ctx, "/restart", map[string]any{"restart_pending": true})
}

// Reinitialize reinitializes a standby: it deletes its data and copies the primary.
func (c *Client) Reinitialize(ctx context.Context) error {
	return c.move(ctx, "/reinitialize", map[string]any{"force": false})
}

// Connect opens a connection to a manager unless there is one, and keeps it open for the next
// request.
func (c *Client) Connect(ctx context.Context) error {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, c.base+instance.HealthyPath, nil)
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

// Release is the request to a manager to release the leader lock of a server that has ended.
type Release struct {
	// Pod is the pod that holds the leader lock.
	Pod string `json:"pod"`

	// At is when its server had ended. It is zero from a manager that does not send it.
	At time.Time `json:"at,omitzero"`
}

// ReleasePath is the path of Release in a manager's API.
const ReleasePath = "/release"

// Release requests a manager, not Patroni, to release the leader lock of a server that has
// ended. The password is Patroni's.
func (c *Client) Release(ctx context.Context, of Release) error {
	return c.move(ctx, ReleasePath, of)
}

// GonePath is the path of Gone in a manager's API.
const GonePath = "/gone"

// Asked is a pod, by its name and UID, about which a manager is asked.
type Asked struct {
	Pod string `json:"pod"`
	UID string `json:"uid,omitempty"`
}

// Answer is a manager's answer about a pod.
type Answer struct {
	// Gone is true if the pod no longer exists, or is about to be killed.
	Gone bool `json:"gone"`

	// Seconds is the pod's grace period, if it is that manager's own pod and is about to be
	// killed.
	Seconds int64 `json:"seconds,omitempty"`
}

// Gone asks a manager, not Patroni, whether its own or another pod is gone. It returns
// ErrStranger if the API server rejects that manager's token too, and ErrSlow if the API
// server did not answer it in time. The password is Patroni's.
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

// FencePath is the path of Fence in a manager's API.
const FencePath = "/fence"

// Fence is the request of a server that is to lead to another one's manager.
type Fence struct {
	// By is the pod that is to lead.
	By string `json:"by"`
}

// Fenced is the answer to a Fence.
type Fenced struct {
	// Received is the position up to which the standby has received WAL, in bytes.
	Received int64 `json:"received"`
}

// Fence requests a manager, not Patroni, to have its standby stop receiving WAL, and returns
// the position up to which the standby has received it, in bytes. The password is Patroni's.
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

// Admits reports whether a caller has the user name and the password of Patroni's API.
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

// Switchover hands over from one member to another.
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
	// The status code depends on the role only, so it is not checked: the body contains
	// everything.
	if err := json.NewDecoder(io.LimitReader(res.Body, maxAnswer)).Decode(into); err != nil {
		return fmt.Errorf("cannot read Patroni's answer to %s: %w", path, err)
	}
	return nil
}

// move sends a request that changes servers, with each of the passwords that Patroni may have:
// Patroni takes over a new one by the very reload that requires it.
func (c *Client) move(ctx context.Context, path string, body any) error {
	_, err := c.ask(ctx, path, body)
	return err
}

// ask sends a request and returns the answer.
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
