package postgres

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/storeplane/storeplane/internal/instance"
)

// Libraries is the parameter that names libraries to load. With a missing one a server does
// not start.
const Libraries = "shared_preload_libraries"

// CheckParameters checks each parameter with the server's own program, which checks a value
// before it reads any data. Parameters of extensions, whose names contain a dot, are checked
// only by their libraries.
func CheckParameters(ctx context.Context, programs Programs, parameters map[string]string) ([]instance.Problem, error) {
	// An empty configuration file is enough to check parameters in this directory.
	dir, err := os.MkdirTemp("", "parameters")
	if err != nil {
		return nil, fmt.Errorf("cannot make a folder to check parameters in: %w", err)
	}
	defer func() { _ = os.RemoveAll(dir) }()
	if err := os.WriteFile(filepath.Join(dir, "postgresql.conf"), nil, 0o600); err != nil {
		return nil, fmt.Errorf("cannot write a file to check parameters with: %w", err)
	}
	var problems []instance.Problem
	for _, name := range slices.Sorted(maps.Keys(parameters)) {
		message, err := checkParameter(ctx, programs.BinDir, dir, name, parameters[name])
		if err != nil {
			return nil, err
		}
		if message == "" && name == Libraries {
			message = missingLibraries(programs.LibDir, parameters[name])
		}
		if message != "" {
			problems = append(problems, instance.Problem{Subject: instance.SubjectParameter, Name: name, Message: message})
		}
	}
	return problems, nil
}

func checkParameter(ctx context.Context, binDir, dir, name, value string) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	// Each value of the claim is one argument. With -C as the first argument the program may
	// be run by any user.
	cmd := exec.CommandContext(ctx, filepath.Join(binDir, "postgres"), "-C", "port", "-D", dir, "-c", name+"="+value) //nolint:gosec // see above
	cmd.Env = append(os.Environ(), "LC_ALL=C")
	var out bytes.Buffer
	cmd.Stderr = &out
	err := cmd.Run()
	if err == nil {
		return "", nil
	}
	var exit *exec.ExitError
	if !errors.As(err, &exit) || ctx.Err() != nil {
		return "", fmt.Errorf("cannot check parameter %s: %w", name, err)
	}
	message := serverWords(out.String())
	if message == "" {
		return "", fmt.Errorf("cannot check parameter %s: %s", name, strings.TrimSpace(out.String()))
	}
	return message, nil
}

// serverWords returns the text of errors, details and hints, without the time, the process ID
// and the prefix of the log.
func serverWords(out string) string {
	var parts []string
	for line := range strings.Lines(out) {
		for _, level := range []string{"FATAL:  ", "ERROR:  ", "DETAIL:  ", "HINT:  "} {
			if _, text, ok := strings.Cut(line, level); ok {
				parts = append(parts, strings.TrimSpace(text))
			}
		}
	}
	return strings.Join(parts, ": ")
}

// missingLibraries returns the server's message about the first library that does not exist,
// or "".
func missingLibraries(libDir, value string) string {
	for name := range strings.SplitSeq(value, ",") {
		name = strings.Trim(strings.TrimSpace(name), `"`)
		if name == "" || strings.Contains(name, "/") {
			continue
		}
		_, err := os.Stat(filepath.Join(libDir, strings.TrimSuffix(name, ".so")+".so"))
		if errors.Is(err, os.ErrNotExist) {
			return `could not access file "` + name + `": No such file or directory`
		}
	}
	return ""
}
