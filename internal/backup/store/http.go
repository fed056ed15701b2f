package store

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/storeplane/storeplane/internal/backup"
)

// Each request is attempted this often, and each attempt ends within the times below, so that an
// unreachable store is reported after about a minute.
const (
	attempts        = 4
	dialWithin      = 10 * time.Second
	answerWithin    = time.Minute
	acknowledgeSent = 30 * time.Second
)

// transport returns the transport for a store, which trusts the certificate authority in ca.crt
// if there is one.
func transport(credentials string) (*http.Transport, error) {
	t := &http.Transport{
		Proxy: http.ProxyFromEnvironment,
		DialContext: (&net.Dialer{
			Timeout:         dialWithin,
			KeepAliveConfig: net.KeepAliveConfig{Enable: true, Idle: 15 * time.Second, Interval: 5 * time.Second, Count: 3},
			Control:         control,
		}).DialContext,
		TLSHandshakeTimeout:   dialWithin,
		ResponseHeaderTimeout: answerWithin,
		ExpectContinueTimeout: time.Second,
		MaxIdleConnsPerHost:   concurrency + 1,
		IdleConnTimeout:       90 * time.Second,
		ForceAttemptHTTP2:     true,
		// Stored objects are compressed already.
		DisableCompression: true,
		// Larger buffers than the default of 4 KiB take fewer system calls.
		WriteBufferSize: 64 << 10,
		ReadBufferSize:  64 << 10,
	}
	ca, err := file(credentials, backup.KeyAuthority)
	if err != nil {
		return nil, err
	}
	if ca != "" {
		pool := x509.NewCertPool()
		if !pool.AppendCertsFromPEM([]byte(ca)) {
			return nil, backup.Errorf(backup.InvalidTask, "its ca.crt has no certificate")
		}
		t.TLSClientConfig = &tls.Config{RootCAs: pool, MinVersion: tls.VersionTLS12}
	}
	return t, nil
}

// control ends a connection whose other side no longer acknowledges what is sent. Without it the
// kernel retries for a quarter of an hour.
func control(_, _ string, c syscall.RawConn) error {
	var err error
	if e := c.Control(func(fd uintptr) {
		err = unix.SetsockoptInt(int(fd), unix.IPPROTO_TCP, unix.TCP_USER_TIMEOUT, int(acknowledgeSent.Milliseconds()))
	}); e != nil {
		return e
	}
	return err
}

// file returns the content of a file of the credentials, or "" if there is none.
func file(dir, name string) (string, error) {
	content, err := os.ReadFile(filepath.Join(dir, name)) //nolint:gosec // the names are constants
	if errors.Is(err, fs.ErrNotExist) {
		return "", nil
	}
	if err != nil {
		return "", fmt.Errorf("cannot read the credentials: %w", err)
	}
	return strings.TrimSpace(string(content)), nil
}

// files returns files of the credentials, by their names.
func files(dir string, names ...string) (map[string]string, error) {
	out := map[string]string{}
	for _, name := range names {
		content, err := file(dir, name)
		if err != nil {
			return nil, err
		}
		out[name] = content
	}
	return out, nil
}
