// Package text writes texts for messages: numbers of things, and what other programs have written, shortened.
package text

import (
	"fmt"
	"strings"
)

// Count returns a number of things as a text: "1 pod", "3 pods". thing is one of them, and its plural ends with s.
func Count[N int | int64](n N, thing string) string {
	if n == 1 {
		return "1 " + thing
	}
	return fmt.Sprintf("%d %ss", n, thing)
}

// Clip returns the beginning of a text, of at most so many bytes and of whole characters, with
// an ellipsis where it is cut.
func Clip(text string, most int) string {
	if len(text) <= most {
		return text
	}
	return strings.ToValidUTF8(text[:most], "") + "…"
}

// Line returns the beginning of a text, as Clip does, in one line.
func Line(text string, most int) string { return Clip(strings.Join(strings.Fields(text), " "), most) }
