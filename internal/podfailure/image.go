package podfailure

import "strings"

// pulling returns why an image cannot be pulled, in a fixed wording, or "" for another reason.
func pulling(message string) string {
	message = strings.ToLower(message)
	for _, known := range []struct{ sign, words string }{
		{"not found", "not found"},
		{"manifest unknown", "not found"},
		{"unauthorized", "not allowed"},
		{"denied", "not allowed"},
		{"forbidden", "not allowed"},
		{"no such host", "no such registry"},
		{"connection refused", "the registry does not answer"},
		{"i/o timeout", "the registry does not answer"},
		{"invalidimagename", "that is no image's name"},
		{"couldn't parse image", "that is no image's name"},
		{"neverpull", "it is not on the node"},
	} {
		if strings.Contains(message, known.sign) {
			return known.words
		}
	}
	return ""
}
