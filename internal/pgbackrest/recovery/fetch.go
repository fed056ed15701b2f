package recovery

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"time"

	"github.com/storeplane/storeplane/internal/pgbackrest"
)

// PostgreSQL takes any exit code of its restore command up to 125 for the end of the archive.
// pgBackRest exits with 1 if a file is missing, and with 25 to 125 for errors. So the command
// fetch-wal of this program stands between them.

// fetchCommand is the first argument of a program that runs as the restore command.
const fetchCommand = "fetch-wal"

// Exit codes of the restore command.
const (
	fetchFound   = 0
	fetchMissing = 1

	// fetchFailed makes PostgreSQL end the recovery.
	fetchFailed = 255
)

// codeMissing is pgBackRest's exit code when a file is not in the archive.
const codeMissing = 1

// RetryFor is how long an error of the archive is retried before the recovery fails.
const RetryFor = 10 * time.Minute

// firstPause is the pause after the first attempt, and mostPause the longest one.
const (
	firstPause = time.Second
	mostPause  = 30 * time.Second
)

// Main runs the restore command and exits if PostgreSQL started this program as one, and returns
// otherwise. A program that recovers a cluster calls it first.
func Main() {
	if len(os.Args) < 2 || os.Args[1] != fetchCommand {
		return
	}
	// The exit code of a panic would mean that the archive ends.
	code := fetchFailed
	defer func() { os.Exit(code) }()
	if len(os.Args) != 5 {
		return
	}
	code = fetch(os.Args[2], os.Args[3], os.Args[4])
}

// A fetcher is the configuration of the restore command.
type fetcher struct {
	ConfigFile string
	Stanza     string
	DataDir    string
	RetryFor   time.Duration

	// Socket is that of an Offer, which is used instead of pgBackRest, or "".
	Socket string
}

// progress is what the restore command records about a recovery.
type progress struct {
	// Missing is the last segment that was requested and is not in the archive.
	Missing string

	// Failure is what ended the recovery, or nil.
	Failure *pgbackrest.Error
}

// Files in the folder of the recovery.
const (
	fetcherFile  = "fetch.json"
	progressFile = "progress.json"
)

// fetch fetches a file of the archive, and returns the exit code.
func fetch(dir, file, into string) int {
	f := fetcher{}
	if err := readJSON(filepath.Join(dir, fetcherFile), &f); err != nil {
		return note(dir, progress{Failure: &pgbackrest.Error{Command: "archive-get", Code: fetchFailed, Message: err.Error()}}, fetchFailed)
	}
	err := f.get(file, into)
	failure := &pgbackrest.Error{}
	switch {
	case err == nil:
		return found(dir, file)
	case !errors.As(err, &failure):
		failure = &pgbackrest.Error{Command: "archive-get", Code: fetchFailed, Message: err.Error()}
	case failure.Code == codeMissing && !isSegment(file):
		return fetchMissing
	case failure.Code == codeMissing:
		return note(dir, progress{Missing: file}, fetchMissing)
	}
	return note(dir, progress{Failure: failure}, fetchFailed)
}

func (f fetcher) get(file, into string) error {
	if f.Socket != "" {
		return ask(f.Socket, file, into)
	}
	return f.fetch(context.Background(), pgbackrest.Tool{ConfigFile: f.ConfigFile, Log: os.Stderr}, file, into)
}

// fetch retries until the file was fetched or is known to be missing, or Patience is over.
func (f fetcher) fetch(ctx context.Context, tool pgbackrest.Tool, file, into string) error {
	deadline := time.Now().Add(f.RetryFor)
	for pause := firstPause; ; pause = min(2*pause, mostPause) {
		_, err := tool.Run(ctx, f.Stanza, "archive-get", "--pg1-path="+f.DataDir, file, into)
		failure := &pgbackrest.Error{}
		if err == nil || !errors.As(err, &failure) || failure.Code == codeMissing || time.Now().Add(pause).After(deadline) {
			return err
		}
		select {
		case <-ctx.Done():
			return err
		case <-time.After(pause):
		}
	}
}

// found records that a file was found: an earlier segment that was missing does not end the
// archive. A later one still does, since PostgreSQL reads the last segment again at the end.
func found(dir, file string) int {
	p, err := readProgress(dir)
	switch {
	case err != nil:
		return fetchFailed
	case isSegment(file) && p.Missing < file && p.Missing != "":
		return note(dir, progress{}, fetchFound)
	}
	return fetchFound
}

// note records the progress. Without the record, a recovery could seem complete, so failing to
// write it ends the recovery.
func note(dir string, p progress, code int) int {
	if err := writeJSON(filepath.Join(dir, progressFile), p); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return fetchFailed
	}
	return code
}

var segmentName = regexp.MustCompile(`^[0-9A-F]{24}$`)

func isSegment(file string) bool { return segmentName.MatchString(file) }

// restoreCommand returns the restore command, which runs this same program.
func (r Recovery) restoreCommand() (string, error) {
	program, err := os.Executable()
	if err != nil {
		return "", fmt.Errorf("cannot find the program that runs: %w", err)
	}
	if err := writeJSON(filepath.Join(r.WorkDir, fetcherFile), r.fetcher()); err != nil {
		return "", err
	}
	return quote(program) + " " + fetchCommand + " " + quote(r.WorkDir) + ` "%f" "%p"`, nil
}

func (r Recovery) fetcher() fetcher {
	return fetcher{ConfigFile: r.Tool.ConfigFile, Stanza: r.Set.Stanza, DataDir: r.DataDir, RetryFor: cmp.Or(r.RetryFor, RetryFor), Socket: r.socket}
}

// quote quotes a path for the shell, in a setting in which a percent sign is special.
func quote(path string) string {
	return "'" + strings.NewReplacer("'", `'\''`, "%", "%%").Replace(path) + "'"
}

func readProgress(dir string) (progress, error) {
	p := progress{}
	err := readJSON(filepath.Join(dir, progressFile), &p)
	if errors.Is(err, os.ErrNotExist) {
		return p, nil
	}
	return p, err
}

func readJSON(file string, into any) error {
	data, err := os.ReadFile(file) //nolint:gosec // the folder is the recovery's
	if err != nil {
		return fmt.Errorf("cannot read the state of the recovery: %w", err)
	}
	if err := json.Unmarshal(data, into); err != nil {
		return fmt.Errorf("cannot read the state of the recovery: %w", err)
	}
	return nil
}

func writeJSON(file string, v any) error {
	data, err := json.Marshal(v)
	if err != nil {
		return fmt.Errorf("cannot write the state of the recovery: %w", err)
	}
	if err := os.WriteFile(file, data, 0o600); err != nil { //nolint:gosec // the folder is the recovery's
		return fmt.Errorf("cannot write the state of the recovery: %w", err)
	}
	return nil
}
