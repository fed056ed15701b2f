package run

import (
	"fmt"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"filippo.io/age"
	"github.com/google/go-cmp/cmp"

	backupv1 "github.com/storeplane/storeplane/apis/backup/v1"
	"github.com/storeplane/storeplane/internal/backup"
)

// TestByHand: backups can be restored without Storeplane by the commands in docs/backup.md, exactly
// as they are written there.
func TestByHand(t *testing.T) {
	long(t)
	need(t, "jq", "age", "zstd")
	identity, err := age.GenerateX25519Identity()
	must(t, err)
	commands := byHand(t)
	for engine, start := range sources {
		t.Run(string(engine), func(t *testing.T) {
			s, other := start(t), start(t)
			createDatabase(t, s, "orders")
			s.data(t, "orders", "load", "--rows=5000", "--bulk=3")
			f := newFixture(t, s, "orders", newVolume(t))
			f.task.Encrypted = true
			write(t, "", map[string]string{f.Key: identity.String() + "\n"})
			made := f.succeed(backup.Backup)

			dir := t.TempDir()
			must(t, os.CopyFS(dir, os.DirFS(filepath.Join(f.Volume, backup.Logical(f.folder()), made.Backup.ID))))
			write(t, dir, map[string]string{"orders.key": identity.String() + "\n"})
			env := client(t, other)
			for _, c := range commands[engine] {
				// Unlike in a user's shell, failures within a pipe are detected.
				cmd := exec.CommandContext(t.Context(), "bash", "-euo", "pipefail", "-c", c)
				cmd.Dir, cmd.Env = dir, append(os.Environ(), env...)
				if out, err := cmd.CombinedOutput(); err != nil {
					t.Fatalf("%s\n%v\n%s", c, err, out)
				}
			}
			if diff := cmp.Diff(rows(s.sums(t, "orders"), engine), rows(other.sums(t, "orders"), engine)); diff != "" {
				t.Errorf("what was restored differs: -want, +got:\n%s", diff)
			}
		})
	}
}

// rows returns the lines of sums. For FerretDB they exclude the indexes, which mongorestore cannot
// create there.
func rows(sums string, e backupv1.Engine) []string {
	return slices.DeleteFunc(strings.Split(sums, "\n"), func(line string) bool {
		return e == backupv1.MongoDB && strings.HasPrefix(line, "(indexes)")
	})
}

// byHand returns the documented commands by engine. The first of each are those for all engines.
func byHand(t *testing.T) map[backupv1.Engine][]string {
	t.Helper()
	raw, err := os.ReadFile("../../../docs/backup.md")
	must(t, err)
	_, section, _ := strings.Cut(string(raw), "\n### Restoring without Storeplane\n")
	section, _, _ = strings.Cut(section, "\n## ")
	var blocks []string
	for {
		_, after, ok := strings.Cut(section, "```sh\n")
		if !ok {
			break
		}
		block, rest, _ := strings.Cut(after, "```\n")
		blocks, section = append(blocks, block), rest
	}
	if len(blocks) != 4 {
		t.Fatalf("docs/backup.md has %d blocks of commands by hand: want one for all, and one for each of three engines", len(blocks))
	}
	return map[backupv1.Engine][]string{
		backupv1.PostgreSQL: {blocks[0], blocks[1]},
		backupv1.MySQL:      {blocks[0], blocks[2]},
		backupv1.MongoDB:    {blocks[0], blocks[3]},
	}
}

// client returns the environment in which an engine's tools connect to a server without arguments.
func client(t *testing.T, s *source) []string {
	t.Helper()
	u, err := url.Parse(s.uri("orders"))
	must(t, err)
	home := t.TempDir()
	switch s.engine {
	case backupv1.PostgreSQL:
		return []string{"PGHOST=" + u.Hostname(), "PGPORT=" + u.Port(), "PGUSER=" + u.User.Username(), "PGPASSWORD=" + password}
	case backupv1.MySQL:
		quoted := strings.NewReplacer(`\`, `\\`, `"`, `\"`).Replace(password)
		write(t, home, map[string]string{".my.cnf": fmt.Sprintf("[client]\nhost=%s\nport=%s\nuser=%s\npassword=\"%s\"\n", u.Hostname(), u.Port(), u.User.Username(), quoted)})
		return []string{"HOME=" + home}
	default:
		// MongoDB's tools read no such variable or file, so a shell function adds the arguments.
		// FerretDB accepts no indexes from them.
		return []string{"BASH_FUNC_mongorestore%%=() { command mongorestore --noIndexRestore --uri=" + u.Scheme + "://" + u.Host + " \"$@\"; }"}
	}
}
