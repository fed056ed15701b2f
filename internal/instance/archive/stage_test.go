package archive

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"

	backupv1 "github.com/storeplane/storeplane/apis/backup/v1"
	"github.com/storeplane/storeplane/internal/instance"
	"github.com/storeplane/storeplane/internal/instance/manager/pgdata"
)

// TestKilledRestore: wherever a restore is killed, it leaves no data folder that Patroni could take
// for a complete one, and the next restore completes.
func TestKilledRestore(t *testing.T) {
	p := newPlace(t)
	source := p.primary("source")
	source.exec("CREATE TABLE t AS SELECT 1 AS n")
	source.backUp()
	var wrote []string
	for range 3 {
		source.exec("INSERT INTO t SELECT count(*) + 1 FROM t")
		wrote = append(wrote, source.write())
	}
	source.archived()
	source.stop()
	copied := p.stored("backup", func(path string) bool { return strings.Contains(path, "/bundle/") })
	replayed := p.stored("archive", func(path string) bool { return strings.HasPrefix(filepath.Base(path), wrote[1]+"-") })

	cases := map[string]struct {
		reason string
		file   string            // the file of the repository at which the restore waits
		on     func(r *killable) // runs from there to the point at which it is killed
	}{
		"Copying":  {reason: "Files are being copied.", file: copied},
		"Replay":   {reason: "PostgreSQL replays, and has a control file.", file: replayed},
		"Replayed": {reason: "All is replayed, and the cluster has no place of its own.", file: replayed, on: (*killable).toPlace},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			here := *p
			here.t = t
			s := here.server("restored-" + name)
			s.Origin = here.origin(name)
			r := s.blocked(tc.file)
			if tc.on != nil {
				tc.on(r)
			}
			r.kill()
			if got := pgdata.Read(t.Context(), s.DataDir()); got.State != instance.DataEmpty {
				t.Fatalf("%s\nafter the restore was killed: got %+v, want no data", tc.reason, got)
			}

			out, err := s.restorer().CombinedOutput()
			if err != nil {
				t.Fatalf("%s\nthe next restore: %v\n%s", tc.reason, err, out)
			}
			if got := pgdata.Read(t.Context(), s.DataDir()); got.State != instance.DataWhole {
				t.Fatalf("%s\nafter the next restore: got %+v, want it whole", tc.reason, got)
			}
			if place, err := s.Place(); err != nil || place == "" {
				t.Errorf("%s\nits place is %q, %v", tc.reason, place, err)
			}
			if state := s.RestoreState(); state != nil {
				t.Errorf("%s\nit is said to be under way: %+v", tc.reason, state)
			}
			s.namesNoStage()
			s.start()
			var rows int
			s.ask("SELECT count(*) FROM t", &rows)
			if rows != 4 {
				t.Errorf("%s\nthe next restore has %d rows, want 4", tc.reason, rows)
			}
			s.stop()

			if out, err := s.restorer().CombinedOutput(); err == nil || !strings.Contains(string(out), "holds data already") {
				t.Errorf("%s\na restore over data: got %v, want it refused\n%s", tc.reason, err, out)
			}
		})
	}
}

// stored returns a file of the repository for which the condition holds.
func (p *place) stored(under string, is func(path string) bool) string {
	p.t.Helper()
	found := ""
	p.must(filepath.WalkDir(p.path("store/"+under), func(path string, d fs.DirEntry, err error) error {
		if err == nil && d.Type().IsRegular() && is(path) {
			found = path
		}
		return err
	}))
	if found == "" {
		p.t.Fatalf("there is no such file under %s", under)
	}
	return found
}

// origin creates the folder that names the source of a restore, as the pod has it.
func (p *place) origin(name string) string {
	p.t.Helper()
	dir := p.path("origin-" + name)
	p.must(os.Mkdir(dir, 0o700))
	content, err := json.Marshal(instance.Restore{Destination: backupv1.Destination{Type: backupv1.Volume, Bucket: "claim"}, Namespace: "shop", Name: "orders"})
	p.must(err)
	p.must(os.WriteFile(filepath.Join(dir, instance.RestoreFile), content, 0o600))
	return dir
}

// restorer returns the command that runs Restore in a process of its own.
func (s *server) restorer() *exec.Cmd {
	s.t.Helper()
	config, err := json.Marshal(s.Config) //nolint:musttag // the test reads it itself
	s.must(err)
	self, err := os.Executable()
	s.must(err)
	temp := s.path(s.name + "-t")
	s.must(os.MkdirAll(temp, 0o700))
	cmd := exec.CommandContext(s.t.Context(), self)
	cmd.Env = append(os.Environ(), restoreVariable+"="+string(config), "TMPDIR="+temp, "PGBACKREST_LOCK_PATH="+s.path(s.name+"-lock"))
	return cmd
}

// killable is a restore that waits for a file of the repository.
type killable struct {
	*server

	cmd     *exec.Cmd
	pipe    *os.File
	content []byte
	restore func()
}

// blocked starts a restore that waits for a file: the file is replaced by a pipe that can be opened
// and delivers nothing.
func (s *server) blocked(file string) *killable {
	s.t.Helper()
	r := &killable{server: s}
	var err error
	r.content, err = os.ReadFile(file)
	s.must(err)
	s.must(os.Rename(file, file+"~"))
	r.restore = func() { s.must(os.Rename(file+"~", file)) }
	s.must(syscall.Mkfifo(file, 0o600))
	r.cmd = s.restorer()
	var said bytes.Buffer
	r.cmd.Stdout, r.cmd.Stderr = &said, &said
	s.must(r.cmd.Start())
	s.eventually("the restore reads "+filepath.Base(file), func() bool {
		// Opening it for writing succeeds once the restore has opened it for reading.
		r.pipe, err = os.OpenFile(file, os.O_WRONLY|syscall.O_NONBLOCK, 0)
		return err == nil
	})
	return r
}

// toPlace lets the restore continue until all WAL is replayed. It then waits at the place file,
// which is a pipe.
func (r *killable) toPlace() {
	r.t.Helper()
	pid := r.file("postmaster.pid")
	dir := filepath.Dir(pid)
	_ = os.Remove(filepath.Join(dir, placeFile))
	r.must(syscall.Mkfifo(filepath.Join(dir, placeFile), 0o600))
	_, err := r.pipe.Write(r.content)
	r.must(err)
	r.must(r.pipe.Close())
	r.eventually("PostgreSQL has stopped", func() bool {
		_, err := os.Stat(pid)
		return err != nil
	})
}

// file returns the path of a file in the restored data, whichever folder that is in.
func (r *killable) file(name string) string {
	r.t.Helper()
	found, err := filepath.Glob(filepath.Join(r.Volume, "*", name))
	r.must(err)
	if len(found) != 1 {
		r.t.Fatalf("want one %s, got %q", name, found)
	}
	return found[0]
}

// kill kills all processes of the restore, as the end of a pod does.
func (r *killable) kill() {
	r.t.Helper()
	pids := family(r.cmd.Process.Pid)
	for _, pid := range pids {
		_ = syscall.Kill(pid, syscall.SIGKILL)
	}
	_ = r.cmd.Wait()
	r.eventually("the restore has ended", func() bool { return !slices.ContainsFunc(pids, lives) })
	_ = r.pipe.Close()
	r.restore()
}

// family returns a process and all its descendants.
func family(pid int) []int {
	out := []int{pid}
	all, _ := filepath.Glob("/proc/[0-9]*/stat")
	for _, file := range all {
		if child, err := strconv.Atoi(filepath.Base(filepath.Dir(file))); err == nil && statOf(child)[1] == strconv.Itoa(pid) {
			out = append(out, family(child)...)
		}
	}
	return out
}

// statOf returns the state and the parent of a process.
func statOf(pid int) [2]string {
	data, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return [2]string{}
	}
	f := strings.Fields(string(data[bytes.LastIndexByte(data, ')')+1:]))
	return [2]string{f[0], f[1]}
}

func lives(pid int) bool {
	state := statOf(pid)[0]
	return state != "" && state != "Z"
}

// namesNoStage checks that no file of the data contains the path of the folder into which it was
// restored.
func (s *server) namesNoStage() {
	s.t.Helper()
	if _, err := os.Stat(s.stage()); err == nil {
		s.t.Errorf("%s is still there", s.stage())
	}
	s.must(filepath.WalkDir(s.DataDir(), func(path string, d fs.DirEntry, err error) error {
		if err != nil || !d.Type().IsRegular() {
			return err
		}
		content, err := os.ReadFile(path)
		if bytes.Contains(content, []byte(s.stage())) {
			s.t.Errorf("%s names %s", path, s.stage())
		}
		return err
	}))
}
