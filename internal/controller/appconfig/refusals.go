package appconfig

import (
	"errors"
	"maps"
	"slices"
	"strings"

	kerrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/storeplane/storeplane/internal/text"
)

// short returns an error of the API server in one line, shortened.
func short(err error) string { return text.Line(err.Error(), 200) }

// owners returns the field managers, with the fields, that a server-side apply conflicts with.
func owners(err error) string {
	status := kerrors.APIStatus(nil)
	if !errors.As(err, &status) || status.Status().Details == nil {
		return short(err)
	}
	out := map[string]bool{}
	for _, c := range status.Status().Details.Causes {
		if c.Type != metav1.CauseTypeFieldManagerConflict {
			continue
		}
		// The message is: conflict with "manager" using apps/v1
		if _, after, ok := strings.Cut(c.Message, `"`); ok {
			if name, _, ok := strings.Cut(after, `"`); ok {
				out[name+" ("+c.Field+")"] = true
			}
		}
	}
	if len(out) == 0 {
		return short(err)
	}
	names := slices.Sorted(maps.Keys(out))
	if len(names) > most {
		names = append(names[:most], "and others")
	}
	return strings.Join(names, ", ")
}
