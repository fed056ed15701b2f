package server

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"time"

	"github.com/go-sql-driver/mysql"

	"github.com/storeplane/storeplane/internal/instance/mysql/parameter"
)

// variableTimeout bounds a statement that sets a variable.
const variableTimeout = 10 * time.Second

// number matches the values of options that are numbers: a file of options may have them with a suffix
// (https://dev.mysql.com/doc/refman/9.7/en/program-variables.html).
var number = regexp.MustCompile(`^(-?[0-9]+(?:\.[0-9]+)?)([KMGTPE]?)$`)

// suffixes are those of numbers, in order: each is 1024 times the one before.
const suffixes = "KMGTPE"

// Variable returns the value of a global variable, by the name of its option.
func (s Server) Variable(ctx context.Context, option string) (string, error) {
	var out sql.NullString
	err := s.with(ctx, readTimeout, func(ctx context.Context, conn *sql.Conn) error {
		return conn.QueryRowContext(ctx, "SELECT @@GLOBAL."+identifier(parameter.Variable(option))).Scan(&out)
	})
	if err != nil {
		return "", fmt.Errorf("cannot read variable %s: %w", option, err)
	}
	return out.String, nil
}

// SetVariable sets a global variable while the server runs, by the name of its option and a value as in a
// file of options. Sessions that exist keep what they have. It returns why the server refuses the value, if
// it does: one that is out of bounds is refused, too.
func (s Server) SetVariable(ctx context.Context, option, value string) (refusal string, err error) {
	err = s.execute(ctx, variableTimeout,
		// Without it MySQL takes the nearest value within the bounds.
		"SET SESSION sql_mode = 'STRICT_ALL_TABLES'",
		"SET GLOBAL "+identifier(parameter.Variable(option))+" = "+constant(value))
	if e, ok := errors.AsType[*mysql.MySQLError](err); ok {
		return e.Message, nil
	}
	return "", err
}

// constant returns an SQL constant for the value of an option: a number, or a string.
func constant(value string) string {
	switch strings.ToUpper(value) {
	case "TRUE":
		return "'ON'"
	case "FALSE":
		return "'OFF'"
	}
	m := number.FindStringSubmatch(strings.ToUpper(value))
	switch {
	case m == nil:
		return text(value)
	case m[2] == "":
		return m[1]
	}
	n, err := strconv.ParseInt(m[1], 10, 64)
	shift := 10 * (strings.Index(suffixes, m[2]) + 1)
	if err != nil || n<<shift>>shift != n {
		return text(value)
	}
	return strconv.FormatInt(n<<shift, 10)
}

// text returns a string literal that may contain a backslash.
func text(value string) string { return literal(strings.ReplaceAll(value, `\`, `\\`)) }
