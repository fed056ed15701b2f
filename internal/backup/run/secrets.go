package run

import (
	"bytes"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"

	appsv1 "github.com/storeplane/storeplane/apis/apps/v1"
	"github.com/storeplane/storeplane/internal/backup"
)

// secrets are values that must not be logged or reported.
type secrets struct {
	values []string
}

// hidden replaces a secret.
const hidden = "[hidden]"

// add adds secrets. The longest are replaced first, since one may be part of another.
func (s *secrets) add(values ...string) {
	for _, v := range values {
		if v = strings.TrimSpace(v); v != "" && !slices.Contains(s.values, v) {
			s.values = append(s.values, v)
		}
	}
	slices.SortFunc(s.values, func(a, b string) int { return len(b) - len(a) })
}

// shortest is the length from which lines of a file are hidden: a key in JSON has lines that are
// a single brace.
const shortest = 6

// addFile adds the lines of a file.
func (s *secrets) addFile(path string) {
	content, err := os.ReadFile(path) //nolint:gosec // the pod's own mount
	if err != nil {
		return // there is no such file
	}
	for line := range strings.Lines(string(content)) {
		if line = strings.TrimSpace(line); !strings.HasPrefix(line, "#") && len(line) >= shortest {
			s.add(line)
		}
	}
}

// public are the files of a Secret that are not secret.
var public = []string{
	backup.KeyAuthority, backup.KeyAWSAccess, backup.KeyAzureAccount,
	appsv1.ConnectionUsername, appsv1.ConnectionHost, appsv1.ConnectionPort, appsv1.ConnectionDatabase,
}

// addFolder adds the files of a mounted Secret.
func (s *secrets) addFolder(dir string) {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return // there is no such folder
	}
	for _, e := range entries {
		// Links that the kubelet creates begin with two dots.
		if !strings.HasPrefix(e.Name(), "..") && !slices.Contains(public, e.Name()) {
			s.addFile(filepath.Join(dir, e.Name()))
		}
	}
}

// in returns a text with its secrets replaced.
func (s *secrets) in(text string) string {
	for _, v := range s.values {
		text = strings.ReplaceAll(text, v, hidden)
	}
	return text
}

// report returns a Report with secrets replaced.
func (s *secrets) report(r backup.Report) backup.Report {
	if r.Failure != nil {
		r.Failure.Message = s.in(r.Failure.Message)
	}
	return r
}

// lines is a log that is written by whole lines, so that no secret is cut in two.
type lines struct {
	mu   sync.Mutex
	to   io.Writer
	hide *secrets
	rest []byte
}

// longLine is the length from which a line is logged before it ends.
const longLine = 64 << 10

func (l *lines) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.rest = append(l.rest, p...)
	for {
		i := bytes.IndexByte(l.rest, '\n')
		if i < 0 && len(l.rest) < longLine {
			return len(p), nil
		}
		if i < 0 {
			i = len(l.rest) - 1
		}
		_, _ = io.WriteString(l.to, l.hide.in(string(l.rest[:i+1])))
		l.rest = append(l.rest[:0], l.rest[i+1:]...)
	}
}

// flush logs what has not ended in a line.
func (l *lines) flush() {
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.rest) > 0 {
		_, _ = io.WriteString(l.to, l.hide.in(string(l.rest))+"\n")
		l.rest = nil
	}
}
