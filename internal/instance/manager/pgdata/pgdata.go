// Package pgdata reads what is on a server's volume with PostgreSQL's own tools. It also sets
// data aside and signals the server.
package pgdata

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/storeplane/storeplane/internal/instance"
)

// Read returns what data a directory holds while no server runs there.
func Read(ctx context.Context, dir string) instance.Data {
	d, err := read(ctx, dir)
	if err != nil {
		return instance.Data{State: instance.DataUnreadable, Problem: err.Error()}
	}
	return *d
}

func read(ctx context.Context, dir string) (*instance.Data, error) {
	empty, err := Empty(dir)
	if err != nil {
		return nil, err
	}
	if empty {
		return &instance.Data{State: instance.DataEmpty}, nil
	}
	never, err := NeverStarted(dir)
	if err != nil {
		return nil, err
	}
	if never {
		return &instance.Data{State: instance.DataEmpty}, nil
	}
	if Unfinished(dir) {
		return &instance.Data{State: instance.DataCopy}, nil
	}
	if _, err := os.Stat(filepath.Join(dir, "global", "pg_control")); err != nil {
		return nil, fmt.Errorf("cannot find the control file: %w", err)
	}
	c, err := readControl(ctx, dir)
	if err != nil {
		return nil, err
	}
	wal := filepath.Join(dir, "pg_wal")
	d := &instance.Data{State: instance.DataWhole, System: c.system, Timeline: c.timeline, Written: c.written}
	if d.Position, _, err = lastRecord(ctx, wal, c.timeline, c.checkpoint); err != nil {
		return nil, err
	}
	if err := c.follow(ctx, wal, d); err != nil {
		return nil, err
	}
	d.History, err = History(wal, d.Timeline)
	if errors.Is(err, fs.ErrNotExist) {
		// Where the data came from is not known.
		err = nil
	}
	return d, err
}

// Unfinished reports whether a directory holds a copy that was never finished: a base backup
// begins with the label and ends with the control file
// (https://www.postgresql.org/docs/current/protocol-replication.html).
func Unfinished(dir string) bool {
	_, err := os.Stat(filepath.Join(dir, "global", "pg_control"))
	return errors.Is(err, fs.ErrNotExist) && exists(filepath.Join(dir, "backup_label"))
}

// Empty reports whether a directory holds no data, by Patroni's rule: it does not exist, or
// contains only hidden files and lost+found.
func Empty(dir string) (bool, error) {
	entries, err := os.ReadDir(dir)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return false, fmt.Errorf("cannot list the data: %w", err)
	}
	for _, e := range entries {
		if !strings.HasPrefix(e.Name(), ".") && e.Name() != "lost+found" {
			return false, nil
		}
	}
	return true, nil
}

func exists(file string) bool {
	_, err := os.Stat(file)
	return err == nil
}

// Timeline returns the timeline of a server's last checkpoint. After a promotion that is the
// old timeline until the next checkpoint is complete.
func Timeline(ctx context.Context, dir string) (int64, error) {
	c, err := readControl(ctx, dir)
	if err != nil {
		return 0, err
	}
	return c.timeline, nil
}

// control is the content of pg_control.
type control struct {
	system, written string
	timeline        int64
	checkpoint      instance.LSN
	segment         int64
}

func readControl(ctx context.Context, dir string) (*control, error) {
	out, err := tool(ctx, "pg_controldata", dir).CombinedOutput()
	if err != nil {
		return nil, fmt.Errorf("cannot read the control file: %w: %s", err, firstLine(out))
	}
	// PostgreSQL 16 and later print it in lower case.
	if strings.Contains(strings.ToLower(string(out)), "warning:") {
		return nil, fmt.Errorf("the control file is damaged: %s", firstLine(out))
	}
	fields := map[string]string{}
	for line := range strings.Lines(string(out)) {
		k, v, _ := strings.Cut(line, ":")
		fields[k] = strings.TrimSpace(v)
	}
	c := &control{system: fields["Database system identifier"], written: fields["Time of latest checkpoint"]}
	timeline, terr := strconv.ParseInt(fields["Latest checkpoint's TimeLineID"], 10, 64)
	segment, serr := strconv.ParseInt(fields["Bytes per WAL segment"], 10, 64)
	checkpoint, cerr := instance.ParseLSN(fields["Latest checkpoint location"])
	if err := errors.Join(terr, serr, cerr); err != nil || c.system == "" || segment <= 0 {
		return nil, errors.Join(errors.New("cannot understand the control file"), err)
	}
	c.timeline, c.segment, c.checkpoint = timeline, segment, checkpoint
	return c, nil
}

// follow sets d to the last timeline on which the WAL goes on after the last checkpoint, as
// PostgreSQL does when it starts.
func (c *control) follow(ctx context.Context, wal string, d *instance.Data) error {
	later, err := timelines(wal, d.Timeline)
	if err != nil {
		return err
	}
	for _, t := range later {
		history, err := History(wal, t)
		if err != nil {
			return err
		}
		begins := instance.LSN(0)
		for _, a := range history {
			if a.Timeline == d.Timeline {
				begins = a.End
			}
		}
		if begins == 0 || !exists(filepath.Join(wal, c.file(t, begins))) {
			// This is another branch, or a timeline of which only the history has arrived.
			continue
		}
		last, found, err := lastRecord(ctx, wal, t, begins)
		if err != nil {
			return err
		}
		if found {
			d.Timeline, d.Position = t, last
		}
	}
	return nil
}

// timelines returns the timelines after one whose history files exist, in order.
func timelines(wal string, after int64) ([]int64, error) {
	files, err := filepath.Glob(filepath.Join(wal, "*.history"))
	if err != nil {
		return nil, fmt.Errorf("cannot list the timelines: %w", err)
	}
	var out []int64
	for _, f := range files {
		t, err := strconv.ParseInt(strings.TrimSuffix(filepath.Base(f), ".history"), 16, 64)
		if err == nil && t > after {
			out = append(out, t)
		}
	}
	slices.Sort(out)
	return out, nil
}

// file returns the name of the WAL file that contains a position.
func (c *control) file(timeline int64, at instance.LSN) string {
	segment, perID := int64(at)/c.segment, int64(1<<32)/c.segment //nolint:gosec // WAL positions fit
	return fmt.Sprintf("%08X%08X%08X", timeline, segment/perID, segment%perID)
}

var recordAt = regexp.MustCompile(`, lsn: ([0-9A-F]+/[0-9A-F]+), prev `)

// lastRecord returns the position of the last whole record of the WAL from a position on, and
// whether there is any. The position at which it begins is the same on every server that has
// it. The checkpoint in the control file is not enough: a server that was killed has written
// more since.
func lastRecord(ctx context.Context, wal string, timeline int64, from instance.LSN) (instance.LSN, bool, error) {
	cmd := tool(ctx, "pg_waldump", "--path="+wal, "--timeline="+strconv.FormatInt(timeline, 10), "--start="+from.String())
	out, err := cmd.StdoutPipe()
	if err != nil {
		return 0, false, fmt.Errorf("cannot read the log: %w", err)
	}
	if err := cmd.Start(); err != nil {
		return 0, false, fmt.Errorf("cannot read the log: %w", err)
	}
	last, found := from, false
	lines := bufio.NewScanner(out)
	lines.Buffer(nil, 16<<20)
	for lines.Scan() {
		if at := recordAt.FindSubmatch(lines.Bytes()); at != nil {
			if lsn, err := instance.ParseLSN(string(at[1])); err == nil {
				last, found = lsn, true
			}
		}
	}
	// pg_waldump fails where the WAL ends.
	_ = cmd.Wait()
	if err := errors.Join(lines.Err(), ctx.Err()); err != nil {
		return 0, false, fmt.Errorf("cannot read the log: %w", err)
	}
	return last, found, nil
}

// History returns the ancestors of a timeline, oldest first, from its history file in a
// directory of WAL. Timeline 1 has none.
func History(wal string, timeline int64) ([]instance.Ancestor, error) {
	if timeline == 1 {
		return nil, nil
	}
	data, err := os.ReadFile(filepath.Join(wal, fmt.Sprintf("%08X.history", timeline))) //nolint:gosec // the volume is the pod's
	if err != nil {
		return nil, fmt.Errorf("cannot read a timeline's history: %w", err)
	}
	var out []instance.Ancestor
	for line := range strings.Lines(string(data)) {
		f := strings.Fields(line)
		if len(f) < 2 || strings.HasPrefix(f[0], "#") {
			continue
		}
		t, terr := strconv.ParseInt(f[0], 10, 64)
		end, eerr := instance.ParseLSN(f[1])
		if err := errors.Join(terr, eerr); err != nil {
			return nil, fmt.Errorf("cannot read a timeline's history: %w", err)
		}
		out = append(out, instance.Ancestor{Timeline: t, End: end})
	}
	return out, nil
}

// tool returns a command of PostgreSQL that prints English text and UTC times.
func tool(ctx context.Context, name string, args ...string) *exec.Cmd {
	cmd := exec.CommandContext(ctx, name, args...) //nolint:gosec // the programs are PostgreSQL's
	cmd.Env = append(os.Environ(), "LC_ALL=C", "TZ=UTC")
	return cmd
}

func firstLine(out []byte) string {
	line, _, _ := strings.Cut(strings.TrimSpace(string(out)), "\n")
	return line
}
