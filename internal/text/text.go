// Package text shortens the text of other programs for messages.
package text

import "strings"

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
