package postgresql

import (
	"bufio"
	"context"
	"io"
	"os"
	"strings"

	"github.com/storeplane/storeplane/internal/backup"
	"github.com/storeplane/storeplane/internal/backup/engine"
)

// mostEntries is how many entries a dump may have to be restored in one transaction. A transaction
// locks each relation that it creates, and a server of the default max_locks_per_transaction and
// max_connections has 6,400 locks for all.
const mostEntries = 3000

// atomic reports whether a dump is restored in one transaction, by its entries. Large objects take a
// lock each.
func atomic(list string) bool {
	return strings.Count(list, "\n") <= mostEntries && !strings.Contains(list, " BLOB")
}

// Restore restores a dump into an empty database, and stops at the first error. Other clients see
// all of it at once, or nothing, unless it has large objects or thousands of entries.
func (s *Server) Restore(ctx context.Context, _, database string, r io.Reader) error {
	private, err := engine.NewPrivate()
	if err != nil {
		return err
	}
	defer private.Close()
	if err := s.ensure(ctx, database); err != nil {
		return err
	}
	list, r, err := s.contents(ctx, private, r)
	if err != nil {
		return engine.Unchanged(err)
	}
	file, err := private.Write("list", list)
	if err != nil {
		return engine.Unchanged(err)
	}
	args := []string{"--use-list=" + file, "--exit-on-error", "--no-owner", "--no-acl", "--no-subscriptions"}
	if atomic(list) {
		args = append(args, "--single-transaction")
	}
	t, err := s.tool("pg_restore", database, args...)
	if err != nil {
		return engine.Unchanged(err)
	}
	t.Stdin = r
	err = t.Run(ctx)
	if atomic(list) {
		return engine.Unchanged(err)
	}
	return err
}

// contents returns the entries of a dump to restore, for pg_restore, and the dump again from its
// beginning. The table of contents comes first in a dump.
func (s *Server) contents(ctx context.Context, private engine.Private, r io.Reader) (string, io.Reader, error) {
	path, err := engine.Look("pg_restore")
	if err != nil {
		return "", nil, err
	}
	seen, err := private.Write("head", "")
	if err != nil {
		return "", nil, err
	}
	head, err := os.OpenFile(seen, os.O_RDWR, 0) //nolint:gosec // the file was written above
	if err != nil {
		return "", nil, backup.Errorf(backup.ToolFailed, "cannot open a file: %w", err)
	}
	// The file is read to its end below, or not at all, and then closed.
	var list strings.Builder
	// Reads are small, so that little more is read than the tool needs.
	t := engine.Tool{Name: path, Args: []string{"--list"}, Stdin: &small{io.TeeReader(r, head)}, Stdout: &list, Log: s.log, Reason: headReason}
	if err := t.Run(ctx); err != nil {
		_ = head.Close()
		return "", nil, err
	}
	if _, err := head.Seek(0, io.SeekStart); err != nil {
		_ = head.Close()
		return "", nil, backup.Errorf(backup.ToolFailed, "cannot read a file: %w", err)
	}
	return wanted(list.String()), io.MultiReader(&closing{head}, r), nil
}

// headReason returns the reason of pg_restore's error output about a table of contents. Any other
// error than an unsupported version is ToolFailed.
func headReason(words string) backup.Reason {
	if engine.Contains(words, "unsupported version") {
		return backup.InvalidTask
	}
	return ""
}

// small limits the size of a read.
type small struct{ io.Reader }

func (s *small) Read(p []byte) (int, error) {
	const most = 32 << 10
	return s.Reader.Read(p[:min(len(p), most)])
}

// closing is a file that is closed when it was read to its end.
type closing struct{ *os.File }

func (c *closing) Read(p []byte) (int, error) {
	n, err := c.File.Read(p)
	if err == io.EOF {
		_ = c.Close()
	}
	return n, err
}

// wanted returns the entries of a table of contents to restore. Comments on extensions are left
// out: only the owner of an extension may comment on it, which may be an administrator.
func wanted(list string) string {
	var b strings.Builder
	lines := bufio.NewScanner(strings.NewReader(list))
	lines.Buffer(nil, len(list)+1)
	for lines.Scan() {
		if !strings.Contains(lines.Text(), " COMMENT - EXTENSION ") {
			b.WriteString(lines.Text() + "\n")
		}
	}
	return b.String()
}
