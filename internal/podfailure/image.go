package podfailure

import "strings"

// What a registry is said to do, whichever words a container runtime has for it.
const (
	silent  = "the registry does not answer"
	broken  = "the registry fails"
	limited = "the registry limits how often images are pulled"
)

// pulling returns why an image cannot be pulled, in a fixed wording, or "" for another reason.
func pulling(message string) string {
	message = strings.ToLower(message)
	for _, known := range []struct{ sign, words string }{
		{"no match for platform", "it is not built for the node's architecture"},
		{"too many requests", limited},
		{"toomanyrequests", limited},
		{"no space left on device", "the node's disk is full"},
		{"server gave http response to https client", "the registry does not speak TLS"},
		{"x509", "the node does not trust the registry's certificate"},
		{"signature", "its signature is not accepted"},
		{"no such host", "no such registry"},
		{"server misbehaving", "the name of the registry cannot be resolved"},
		{"connection refused", silent},
		{"connection reset", silent},
		{"no route to host", silent},
		{"network is unreachable", silent},
		{"timeout", silent},
		{"deadline exceeded", silent},
		{"internal server error", broken},
		{"bad gateway", broken},
		{"service unavailable", broken},
		// Docker Hub answers that of an image that does not exist, too.
		{"pull access denied", "not found, or not allowed without imagePullSecrets"},
		{"not found", "not found"},
		{"manifest unknown", "not found"},
		{"unauthorized", "not allowed"},
		{"denied", "not allowed"},
		{"forbidden", "not allowed"},
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
