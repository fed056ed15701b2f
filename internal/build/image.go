package build

import (
	"strings"

	"k8s.io/apimachinery/pkg/util/validation"
)

// Version returns the version of an image for the value of a label: its tag, or "" if it has none
// or one that no label can hold.
func Version(image string) string {
	name, _, _ := strings.Cut(image, "@")
	// A colon before the last slash belongs to a registry's port.
	_, tag, _ := strings.Cut(name[strings.LastIndex(name, "/")+1:], ":")
	if len(validation.IsValidLabelValue(tag)) > 0 {
		return ""
	}
	return tag
}
