package mysql

import (
	"bytes"
	"strings"

	"github.com/storeplane/storeplane/internal/backup"
)

// A counter counts the rows of each table in a dump that is written to it.
//
// mariadb-dump writes each row on its own line after INSERT INTO, with line ends escaped.
// Routines, triggers and events, which it writes as they are, are between lines that change the
// delimiter, and are skipped.
type counter struct {
	tables map[string]int64

	line  []byte // the beginning of the current line
	last  byte   // its last byte so far
	table string // whose rows follow

	routine bool // the current line is between two delimiter lines
	ended   bool // the line that ends a dump was read
	wrong   string
}

// lineSize is how much of a line is kept, enough to recognize it: names have at most 64
// characters of at most four bytes, each of which may be a backtick, which is written twice.
const lineSize = 640

func newCounter() *counter { return &counter{tables: map[string]int64{}} }

func (c *counter) Write(p []byte) (int, error) {
	n := len(p)
	for len(p) > 0 {
		i := bytes.IndexByte(p, '\n')
		part := p
		if i >= 0 {
			part = p[:i]
		}
		if room := lineSize - len(c.line); room > 0 {
			c.line = append(c.line, part[:min(room, len(part))]...)
		}
		if len(part) > 0 {
			c.last = part[len(part)-1]
		}
		if i < 0 {
			break
		}
		c.end()
		p = p[i+1:]
	}
	return n, nil
}

// end evaluates a complete line.
func (c *counter) end() {
	line, last := c.line, c.last
	c.line, c.last = c.line[:0], 0
	switch {
	case c.table != "":
		c.row(line, last)
	case c.routine:
		c.routine = !bytes.Equal(line, []byte("DELIMITER ;"))
	case bytes.HasPrefix(line, []byte("DELIMITER ")):
		c.routine = true
	case bytes.HasPrefix(line, []byte("CREATE TABLE `")):
		if name := backticked(line[len("CREATE TABLE "):]); name != "" {
			c.tables[name] += 0
		}
	case bytes.HasPrefix(line, []byte("INSERT INTO `")):
		c.table = backticked(line[len("INSERT INTO "):])
		if last == ';' || c.table == "" {
			c.wrong = "it has rows that are not on lines of their own"
			c.table = ""
		}
	case bytes.HasPrefix(line, []byte("-- Dump completed")):
		c.ended = true
	}
}

func (c *counter) row(line []byte, last byte) {
	if len(line) == 0 || line[0] != '(' {
		c.wrong = "it has a row that is none"
		c.table = ""
		return
	}
	c.tables[c.table]++
	if last == ';' {
		c.table = ""
	}
}

// backticked returns the name in backticks at the beginning of a line, or "".
func backticked(line []byte) string {
	for i := 1; i < len(line); i++ {
		if line[i] != '`' {
			continue
		}
		if i+1 < len(line) && line[i+1] == '`' {
			i++
			continue
		}
		return strings.ReplaceAll(string(line[1:i]), "``", "`")
	}
	return ""
}

// result returns the rows of each table, or an error if the dump is incomplete or not as
// expected.
func (c *counter) result() (map[string]int64, error) {
	if c.wrong == "" && !c.ended {
		c.wrong = "its last line is missing"
	}
	if c.wrong != "" {
		return nil, unexpected(c.wrong)
	}
	return c.tables, nil
}

// unexpected returns the error about a dump in another format.
func unexpected(how string) error {
	return backup.Errorf(backup.ToolFailed, "the dump is not as mariadb-dump writes them: %s", how)
}
