package recovery

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"strconv"
	"sync"
	"syscall"
	"time"

	"github.com/storeplane/storeplane/internal/pgbackrest"
)

// A recovery may be split between two containers. PostgreSQL runs code that a backup contains:
// functions, and through them programs. So the container in which it runs has no credentials of
// the store. The container beside it restores the files of the set, and then answers the requests
// of the restore command at a socket.

// Paths of the requests at the socket.
const (
	beginPath = "/begin"
	walPath   = "/wal/"
)

// archiveHost is the host in URLs of the socket, which must have one.
const archiveHost = "http://archive"

// archiveName matches what a restore command requests: a segment, or the history of a timeline.
var archiveName = regexp.MustCompile(`^[0-9A-F]{24}$|^[0-9A-F]{8}\.history$`)

// Offer restores the files of the set, and answers requests at a socket until stop is called. It
// does not read DataDir after that, so the server beside it may write anything there.
func (r Recovery) Offer(ctx context.Context, socket string) (stop func(), err error) {
	if err := r.unpack(ctx); err != nil {
		return nil, err
	}
	if err := fresh(r.WorkDir); err != nil {
		return nil, err
	}
	if err := copyControl(r.DataDir, r.WorkDir); err != nil {
		return nil, err
	}
	listener, err := (&net.ListenConfig{}).Listen(ctx, "unix", socket)
	if err != nil {
		return nil, fmt.Errorf("cannot offer the archive: %w", err)
	}
	s := &http.Server{Handler: r.archive(), ReadHeaderTimeout: 10 * time.Second, BaseContext: func(net.Listener) context.Context { return ctx }}
	served := make(chan struct{})
	go func() {
		defer close(served)
		_ = s.Serve(listener)
	}()
	return func() {
		_ = s.Close()
		<-served
		_ = os.RemoveAll(r.WorkDir)
	}, nil
}

// copyControl copies the control file, in which pgBackRest finds the version of the server whose
// WAL it gets, and the label of an online backup, without which newer releases of pgBackRest refuse
// the control file that they have restored.
func copyControl(from, to string) error {
	for _, name := range []string{"global/pg_control", "backup_label"} {
		content, err := os.ReadFile(filepath.Join(from, name)) //nolint:gosec // the folder is the recovery's
		if name == "backup_label" && errors.Is(err, os.ErrNotExist) {
			continue
		}
		if err != nil {
			return fmt.Errorf("cannot offer the archive: %w", err)
		}
		into := filepath.Join(to, name)
		if err := os.MkdirAll(filepath.Dir(into), 0o700); err != nil {
			return fmt.Errorf("cannot offer the archive: %w", err)
		}
		if err := os.WriteFile(into, content, 0o600); err != nil { //nolint:gosec // the folder is the recovery's
			return fmt.Errorf("cannot offer the archive: %w", err)
		}
	}
	return nil
}

// archive returns the handler of the requests at the socket.
func (r Recovery) archive() http.Handler {
	f := r.fetcher()
	f.DataDir = r.WorkDir
	var one sync.Mutex
	mux := http.NewServeMux()
	mux.HandleFunc("GET "+beginPath, func(w http.ResponseWriter, _ *http.Request) {
		_ = json.NewEncoder(w).Encode(r.begin)
	})
	mux.HandleFunc("GET "+walPath+"{name}", func(w http.ResponseWriter, request *http.Request) {
		name := request.PathValue("name")
		if !archiveName.MatchString(name) {
			http.Error(w, "no name of WAL", http.StatusBadRequest)
			return
		}
		// A restore command requests one file after the other.
		one.Lock()
		defer one.Unlock()
		r.answer(request.Context(), w, f, name)
	})
	return mux
}

func (r Recovery) answer(ctx context.Context, w http.ResponseWriter, f fetcher, name string) {
	into := filepath.Join(r.WorkDir, "wal")
	defer func() { _ = os.Remove(into) }()
	err := f.fetch(ctx, r.Tool, name, into)
	if err == nil {
		err = send(w, into)
	}
	if err == nil {
		return
	}
	failure := &pgbackrest.Error{}
	if !errors.As(err, &failure) {
		failure = &pgbackrest.Error{Command: "archive-get", Code: fetchFailed, Message: err.Error()}
	}
	w.WriteHeader(http.StatusBadGateway)
	_ = json.NewEncoder(w).Encode(failure) //nolint:errchkjson // the client that asked is gone then
}

// send sends a file, or returns an error if none of it was sent.
func send(w http.ResponseWriter, name string) error {
	f, err := os.Open(name) //nolint:gosec // the folder is the recovery's
	if err != nil {
		return err
	}
	defer func() { _ = f.Close() }()
	info, err := f.Stat()
	if err != nil {
		return err
	}
	w.Header().Set("Content-Length", strconv.FormatInt(info.Size(), 10))
	// The client detects a cut answer by its length.
	_, _ = io.Copy(w, f)
	return nil
}

// Serve starts a server with the files that are offered at a socket, recovers it until it is
// consistent, calls ready, and continues until ctx or the server ends. It waits for the offer.
func (r Recovery) Serve(ctx context.Context, socket string, ready func() error) error {
	b, err := awaitOffer(ctx, socket)
	if err != nil {
		return err
	}
	r.begin, r.socket, r.Immediate = b, socket, true
	return r.play(ctx, func(s *server) error {
		if err := ready(); err != nil {
			return err
		}
		select {
		case <-ctx.Done():
			// The data is not used again, so PostgreSQL stops at once.
			_ = s.cmd.Process.Signal(syscall.SIGQUIT)
			return nil
		case <-s.ended:
			return fmt.Errorf("%w: %s", errEnded, s.log.lastFatal())
		}
	})
}

func awaitOffer(ctx context.Context, socket string) (begin, error) {
	tick := time.NewTicker(100 * time.Millisecond)
	defer tick.Stop()
	for {
		b, err := readOffer(ctx, socket)
		// The socket file exists a moment before it accepts connections.
		if !errors.Is(err, os.ErrNotExist) && !errors.Is(err, syscall.ECONNREFUSED) {
			return b, err
		}
		select {
		case <-ctx.Done():
			return begin{}, fmt.Errorf("cannot wait for the restored files: %w", context.Cause(ctx))
		case <-tick.C:
		}
	}
}

func readOffer(ctx context.Context, socket string) (b begin, err error) {
	response, err := request(ctx, socket, beginPath)
	if err != nil {
		return b, err
	}
	defer func() { _ = response.Body.Close() }()
	if err := json.NewDecoder(response.Body).Decode(&b); err != nil {
		return b, fmt.Errorf("cannot read what is offered: %w", err)
	}
	return b, nil
}

func request(ctx context.Context, socket, path string) (*http.Response, error) {
	client := http.Client{Transport: &http.Transport{DisableKeepAlives: true, DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
		return (&net.Dialer{}).DialContext(ctx, "unix", socket)
	}}}
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, archiveHost+path, nil) //nolint:gosec // the client reaches the socket alone
	if err != nil {
		return nil, fmt.Errorf("cannot ask for %s: %w", path, err)
	}
	response, err := client.Do(r) //nolint:gosec // the same
	if err != nil {
		return nil, fmt.Errorf("cannot ask for %s: %w", path, err)
	}
	return response, nil
}

// ask requests a file of the archive at a socket, and writes it.
func ask(socket, file, into string) error {
	response, err := request(context.Background(), socket, path.Join(walPath, file))
	if err != nil {
		return err
	}
	defer func() { _ = response.Body.Close() }()
	switch response.StatusCode {
	case http.StatusOK:
	case http.StatusBadGateway:
		failure := &pgbackrest.Error{}
		if err := json.NewDecoder(response.Body).Decode(failure); err != nil {
			return fmt.Errorf("cannot read why there is no %s: %w", file, err)
		}
		return failure
	default:
		return fmt.Errorf("cannot get %s: the answer is %s", file, response.Status)
	}
	f, err := os.OpenFile(into, os.O_CREATE|os.O_TRUNC|os.O_WRONLY, 0o600) //nolint:gosec // PostgreSQL names it
	if err != nil {
		return fmt.Errorf("cannot write %s: %w", file, err)
	}
	_, err = io.Copy(f, response.Body)
	if err := errors.Join(err, f.Close()); err != nil {
		return fmt.Errorf("cannot write %s: %w", file, err)
	}
	return nil
}
