package server

import (
	"context"
	"database/sql"
	"fmt"
	"math"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/storeplane/storeplane/internal/instance/mysql/parameter"
)

// variableTimeout bounds a statement that sets a variable.
const variableTimeout = 10 * time.Second

// number matches the values of options that are numbers: a file of options may have them with a suffix
// (https://dev.mysql.com/doc/refman/9.7/en/program-variables.html).
var number = regexp.MustCompile(`^(-?[0-9]+(?:\.[0-9]+)?)([KMGTPE]?)$`)

// suffixes are those of numbers, in order: each is 1024 times the one before.
const suffixes = "KMGTPE"

// Variables returns the values of all global variables, by name.
func (s Server) Variables(ctx context.Context) (map[string]string, error) {
	out := map[string]string{}
	err := s.with(ctx, readTimeout, func(ctx context.Context, conn *sql.Conn) error {
		rows, err := conn.QueryContext(ctx, "SHOW GLOBAL VARIABLES")
		if err != nil {
			return err
		}
		defer func() { _ = rows.Close() }()
		for rows.Next() {
			var name string
			var value sql.NullString
			if err := rows.Scan(&name, &value); err != nil {
				return err
			}
			out[name] = value.String
		}
		return rows.Err()
	})
	if err != nil {
		return nil, fmt.Errorf("cannot read the variables: %w", err)
	}
	return out, nil
}

// SetVariable sets a global variable while the server runs, by the name of its option and a value as in a
// file of options. Sessions that exist keep what they have. It returns why the server refuses the value, if
// it does. One that is out of bounds is not refused: the server has another one then, as Took reports.
func (s Server) SetVariable(ctx context.Context, option, value string) (refused string, err error) {
	err = s.execute(ctx, variableTimeout, "SET GLOBAL "+identifier(parameter.Variable(option))+" = "+constant(value))
	if message, ok := refusal(err); ok {
		return message, nil
	}
	return "", err
}

// blocks are those of which MySQL rounds some values down to a multiple, in bytes.
var blocks = []float64{1, 128, 1024, 4096, 1 << 20}

// Took reports whether a server has a value that was asked for, given the one that it shows: a number is the same, or
// rounded down to a multiple of a block. Others are shown in another form.
func Took(asked, shown string) bool {
	want, err := strconv.ParseFloat(constant(asked), 64)
	if err != nil {
		return true
	}
	switch shown {
	case "ON":
		shown = "1"
	case "OFF":
		shown = "0"
	}
	have, err := strconv.ParseFloat(shown, 64)
	if err != nil {
		return true
	}
	return math.Abs(want-have) < 1e-6 || slices.ContainsFunc(blocks, func(block float64) bool {
		return have > 0 && want > have && want-have < block && math.Mod(have, block) == 0
	})
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
