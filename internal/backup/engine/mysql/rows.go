package mysql

import (
	"bytes"
	"context"
	"io"
	"slices"
	"strings"
)

// columns are the columns whose values MySQL does not accept as mariadb-dump writes them, by table and name.
type columns map[string]map[string]treatment

// treatment is what is done with the values of a column.
type treatment int

const (
	// pass is to pass values on as they are.
	pass treatment = iota
	// omit is to leave them out: MySQL refuses values for generated columns.
	omit
	// binary is to mark strings as binary: MySQL refuses others for vectors.
	binary
)

// special returns the columns of a database of MySQL that need another treatment, and none of MariaDB.
func (s *Server) special(ctx context.Context, database string) (columns, error) {
	version, err := s.Version(ctx)
	if err != nil || strings.Contains(version, "MariaDB") {
		return nil, err
	}
	const what = "cannot list the columns"
	rows, err := s.db.QueryContext(ctx, `
		SELECT table_name, column_name, extra REGEXP '(VIRTUAL|STORED) GENERATED' FROM information_schema.columns
		WHERE table_schema = ? AND (extra REGEXP '(VIRTUAL|STORED) GENERATED' OR data_type = 'vector')`, database)
	if err != nil {
		return nil, failed(ctx, what, err)
	}
	defer func() { _ = rows.Close() }()
	out := columns{}
	for rows.Next() {
		var table, column string
		var generated bool
		if err := rows.Scan(&table, &column, &generated); err != nil {
			return nil, failed(ctx, what, err)
		}
		if out[table] == nil {
			out[table] = map[string]treatment{}
		}
		if out[table][column] = binary; generated {
			out[table][column] = omit
		}
	}
	return out, failed(ctx, what, rows.Err())
}

// A normalizer passes a dump of mariadb-dump on, with each row on a line of its own, and with values as
// MySQL accepts them. With the names of columns (--complete-insert, or where a column is invisible)
// mariadb-dump writes the first row behind VALUES.
//
// It reads a dump as a counter does. A row is passed on as it arrives, as it may be larger than memory.
type normalizer struct {
	to      io.Writer
	special columns

	state   state
	routine bool   // the current line is between two delimiter lines
	line    []byte // the current line so far, while it is not known what it is
	name    bool   // the last byte of line is in a name
	held    []byte // the line before, between two delimiter lines

	// Of the rows that follow: the treatment of each field. Of the current row: the number of the
	// current field, whether none of its bytes were passed on, and whether a field was passed on.
	fields        []treatment
	field         int
	fresh, passed bool

	// The current byte is in a string, and follows a backslash there.
	quoted, escaped bool

	out []byte
}

// state is where a normalizer is in a dump.
type state int

const (
	unknown state = iota // in a line that may begin rows, or a routine
	other                // in any other line
	headed               // behind VALUES
	between              // before, between or after rows with values that are not passed on as they are
	inRow
)

const (
	insertLine    = "INSERT INTO `"
	delimiterLine = "DELIMITER "

	// longestLine is more than any list of columns takes: 4096 names of 64 characters of at most four
	// bytes, each of which may be a backtick, which is written twice.
	longestLine = 4096 * 2 * 260
)

func (n *normalizer) Write(p []byte) (int, error) {
	n.out = n.out[:0]
	for rest := p; len(rest) > 0; {
		if n.state == other {
			end := bytes.IndexByte(rest, '\n') + 1
			if end == 0 {
				n.out = append(n.out, rest...)
				break
			}
			n.out, rest, n.state = append(n.out, rest[:end]...), rest[end:], unknown
			continue
		}
		if err := n.take(rest[0]); err != nil {
			return 0, err
		}
		rest = rest[1:]
	}
	if _, err := n.to.Write(n.out); err != nil {
		return 0, err
	}
	return len(p), nil
}

func (n *normalizer) take(b byte) error {
	switch n.state {
	case unknown:
		return n.identify(b)
	case inRow:
		return n.value(b)
	case headed:
		// A space or the end of the line: insert has ended the line.
		n.state = other
		if slices.ContainsFunc(n.fields, func(t treatment) bool { return t != pass }) {
			n.state = between
		}
		return nil
	case between, other:
	}
	n.out = append(n.out, b)
	switch b {
	case '(':
		n.state, n.field, n.fresh, n.passed = inRow, 0, true, false
	case ';':
		n.state = other
	}
	return nil
}

// identify reads a line until it is known what it is.
func (n *normalizer) identify(b byte) error {
	n.line = append(n.line, b)
	if b == '`' {
		n.name = !n.name
	}
	insert, delimiter := !n.routine && begins(n.line, insertLine), begins(n.line, delimiterLine)
	switch {
	case insert && !n.name && bytes.HasSuffix(n.line, []byte(" VALUES")):
		return n.insert()
	case b != '\n' && (insert || delimiter):
		if len(n.line) > longestLine {
			return unexpected("a line with names of columns does not end")
		}
		return nil
	case b != '\n' && n.routine && len(n.line) <= longestLine:
		return nil
	case n.routine:
		n.hold()
	}
	if delimiter {
		n.routine = string(n.line) != delimiterLine+";\n"
	}
	n.out = append(n.out, n.line...)
	n.line, n.name = n.line[:0], false
	if b != '\n' {
		n.state = other
	}
	return nil
}

// commentEnd are the lines with which mariadb-dump ends the comment of a trigger and of an event.
var commentEnd = map[string]bool{"*/;;\n": true, "*/ ;;\n": true}

// hold passes the held line of a routine on, and holds the current one unless it ends the routine. MySQL
// returns a trigger with the semicolon that ended its statement among others, and refuses it in the comment
// in which mariadb-dump writes the trigger.
func (n *normalizer) hold() {
	if body, ok := bytes.CutSuffix(n.held, []byte("; \n")); ok && commentEnd[string(n.line)] {
		n.held = append(n.held[:len(body)], " \n"...)
	}
	n.out = append(n.out, n.held...)
	n.held = n.held[:0]
	if bytes.HasSuffix(n.line, []byte("\n")) && !begins(n.line, delimiterLine) {
		n.held = append(n.held, n.line...)
		n.line = n.line[:0]
	}
}

// begins reports whether a line begins as given, as far as it is known.
func begins(line []byte, with string) bool {
	n := min(len(line), len(with))
	return string(line[:n]) == with[:n]
}

// insert passes what is before rows on, without the columns whose values are left out.
func (n *normalizer) insert() error {
	line := n.line[len(insertLine)-1:]
	table := backticked(line)
	rest, named := bytes.CutPrefix(line[len(quote(table)):], []byte(" ("))
	if !named {
		if len(n.special[table]) > 0 {
			return unexpected("it has rows without the names of their columns")
		}
		n.out = append(n.out, n.line...)
		n.line, n.state = n.line[:0], other
		return nil
	}
	n.out = append(n.out, "INSERT INTO "+quote(table)+" ("...)
	n.fields = n.fields[:0]
	kept := 0
	for len(rest) > 0 && rest[0] == '`' {
		name := backticked(rest)
		t := n.special[table][name]
		if n.fields = append(n.fields, t); t != omit {
			if kept++; kept > 1 {
				n.out = append(n.out, ", "...)
			}
			n.out = append(n.out, quote(name)...)
		}
		rest = bytes.TrimPrefix(rest[len(quote(name)):], []byte(", "))
	}
	n.out = append(append(n.out, rest...), '\n')
	n.line, n.state = n.line[:0], headed
	return nil
}

// value reads a byte of a row.
func (n *normalizer) value(b byte) error {
	switch {
	case n.field >= len(n.fields):
		return unexpected("it has a row with more values than columns")
	case n.escaped:
		n.escaped = false
	case n.quoted:
		n.escaped, n.quoted = b == '\\', b != '\''
	case b == '\'':
		n.quoted = true
	case b == ',':
		n.field++
		n.fresh = true
		return nil
	case b == ')':
		n.out = append(n.out, b)
		n.state = between
		return nil
	}
	t := n.fields[n.field]
	if t == omit {
		return nil
	}
	if n.fresh && n.passed {
		n.out = append(n.out, ',')
	}
	if n.fresh && t == binary && b == '\'' {
		n.out = append(n.out, "_binary "...)
	}
	n.fresh, n.passed = false, true
	n.out = append(n.out, b)
	return nil
}
