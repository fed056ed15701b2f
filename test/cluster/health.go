package main

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"time"
)

// answers returns the health check of a program that serves status 200 at url while it is
// healthy.
func answers(url string) func(context.Context) error {
	client := &http.Client{
		Timeout: 5 * time.Second,
		Transport: &http.Transport{
			DisableKeepAlives: true,
			// The scheduler and the controller manager sign their own certificates, and only
			// their answer on this machine matters here.
			TLSClientConfig: &tls.Config{InsecureSkipVerify: true}, //nolint:gosec // See above.
		},
	}
	return func(ctx context.Context) error {
		_, err := get(ctx, client, url)
		return err
	}
}

// listens returns the health check of a program that listens on a Unix socket and serves no HTTP.
func listens(path string) func(context.Context) error {
	return func(ctx context.Context) error {
		conn, err := (&net.Dialer{Timeout: 5 * time.Second}).DialContext(ctx, "unix", path)
		if err != nil {
			return err
		}
		return conn.Close()
	}
}

// api returns a client of the cluster's API server for the few objects that this program reads.
// kubectl would take longer to start than the request takes.
func (c *cluster) api() (*http.Client, error) {
	cert, err := tls.LoadX509KeyPair(c.certPath("admin"), c.keyPath("admin"))
	if err != nil {
		return nil, fmt.Errorf("cannot read the admin's certificate: %w", err)
	}
	ca, err := os.ReadFile(c.certPath("ca"))
	if err != nil {
		return nil, fmt.Errorf("cannot read the authority's certificate: %w", err)
	}
	pool := x509.NewCertPool()
	if !pool.AppendCertsFromPEM(ca) {
		return nil, errors.New("cannot read the authority's certificate: it is not PEM")
	}
	return &http.Client{Timeout: 10 * time.Second, Transport: &http.Transport{
		TLSClientConfig: &tls.Config{MinVersion: tls.VersionTLS12, Certificates: []tls.Certificate{cert}, RootCAs: pool},
	}}, nil
}

// object holds the fields of a Kubernetes object that this program reads.
type object struct {
	Status struct {
		ObservedGeneration int64 `json:"observedGeneration"`
		Conditions         []struct {
			Type    string `json:"type"`
			Status  string `json:"status"`
			Message string `json:"message"`

			LastHeartbeatTime time.Time `json:"lastHeartbeatTime"`
		} `json:"conditions"`
		NodeInfo struct {
			KubeletVersion          string `json:"kubeletVersion"`
			ContainerRuntimeVersion string `json:"containerRuntimeVersion"`
		} `json:"nodeInfo"`
	} `json:"status"`
	Metadata struct {
		Generation int64 `json:"generation"`
	} `json:"metadata"`
}

// get returns the API server's response for path.
func (c *cluster) get(ctx context.Context, path string) ([]byte, error) {
	client, err := c.api()
	if err != nil {
		return nil, err
	}
	defer client.CloseIdleConnections()
	return get(ctx, client, apiServer+path)
}

// condition gets the object at path and returns it, with an error unless the condition is True
// and up to date.
func (c *cluster) condition(ctx context.Context, path, condition string) (object, error) {
	var o object
	b, err := c.get(ctx, path)
	if err != nil {
		return o, err
	}
	if err := json.Unmarshal(b, &o); err != nil {
		return o, fmt.Errorf("cannot read %s: %w", path, err)
	}
	for _, cond := range o.Status.Conditions {
		if cond.Type != condition {
			continue
		}
		// A Node has no generation, and a Deployment's condition may be about an earlier
		// generation.
		if cond.Status == "True" && (o.Status.ObservedGeneration == 0 || o.Status.ObservedGeneration >= o.Metadata.Generation) {
			return o, nil
		}
		return o, fmt.Errorf("%s is %s: %s", condition, cond.Status, cond.Message)
	}
	return o, fmt.Errorf("it has no condition %s yet", condition)
}

func get(ctx context.Context, client *http.Client, url string) ([]byte, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return nil, err
	}
	resp, err := client.Do(req)
	if err != nil {
		return nil, err
	}
	defer resp.Body.Close()
	b, err := io.ReadAll(resp.Body)
	if err != nil {
		return nil, err
	}
	if resp.StatusCode != http.StatusOK {
		return nil, fmt.Errorf("%s answers %s", url, resp.Status)
	}
	return b, nil
}
