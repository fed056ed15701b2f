package server

import (
	"context"
	"errors"
	"regexp"
	"strconv"
	"strings"

	"github.com/go-sql-driver/mysql"

	"github.com/storeplane/storeplane/internal/instance/mysql/parameter"
)

// number matches the values of options that are numbers: a file of options may have them with a suffix
// (https://dev.mysql.com/doc/refman/9.7/en/program-variables.html).
var number = regexp.MustCompile(`^(-?[0-9]+(?:\.[0-9]+)?)([KMGTPE]?)$`)

// suffixes are those of numbers, in order: each is 1024 times the one before.
const suffixes = "KMGTPE"

// SetVariable sets a global variable while the server runs, by the name of its option and a value as in a
// file of options, or to its default if value is nil. It returns why the server refuses the value, if it
// does. Sessions that exist keep what they have.
func (s Server) SetVariable(ctx context.Context, option string, value *string) (refusal string, err error) {
	to := "DEFAULT"
	if value != nil {
		to = constant(*value)
	}
	err = s.execute(ctx, changeTimeout, "SET GLOBAL "+identifier(parameter.Variable(option))+" = "+to)
	if refused, ok := asRefusal(err); ok {
		return refused, nil
	}
	return "", err
}

// asRefusal returns the message of an error by which the server refuses a variable or its value.
func asRefusal(err error) (string, bool) {
	e, ok := errors.AsType[*mysql.MySQLError](err)
	if !ok {
		return "", false
	}
	switch e.Number {
	case refusedArgument, unknownVariable, refusedValue, wrongType, readOnly:
		return e.Message, true
	default:
		return "", false
	}
}

// Numbers of errors about a variable
// (https://dev.mysql.com/doc/mysql-errors/9.7/en/server-error-reference.html).
const (
	unknownVariable = 1193
	refusedArgument = 1210
	refusedValue    = 1231
	wrongType       = 1232
	readOnly        = 1238
)

// constant returns an SQL constant for the value of an option: a number, or a string.
func constant(value string) string {
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
