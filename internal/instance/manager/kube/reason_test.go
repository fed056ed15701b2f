package kube

import (
	"errors"
	"fmt"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

func TestReason(t *testing.T) {
	claims := schema.GroupResource{Resource: "persistentvolumeclaims"}
	cases := map[string]struct {
		reason        string
		err           error
		refused, gone bool
		want          string
	}{
		"Forbidden": {
			reason:  "Only the API server's reason is said",
			err:     fmt.Errorf("cannot patch: %w", apierrors.NewForbidden(claims, "data-db-0", errors.New("only dynamically provisioned pvc can be resized"))),
			refused: true, gone: true, want: "only dynamically provisioned pvc can be resized",
		},
		"Invalid":  {reason: "The same of a value", err: apierrors.NewInvalid(schema.GroupKind{Kind: "PersistentVolumeClaim"}, "data-db-0", nil), refused: true, want: `PersistentVolumeClaim "data-db-0" is invalid`},
		"NotFound": {reason: "It is not there", err: apierrors.NewNotFound(claims, "data-db-0"), gone: true, want: `persistentvolumeclaims "data-db-0" not found`},
		"Busy":     {reason: "Trying again may help", err: apierrors.NewTooManyRequests("later", 1), want: "later"},
		"Away":     {reason: "There is no answer", err: errors.New("connection refused"), want: "the API server cannot be reached"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if got := Reason(tc.err); got != tc.want {
				t.Errorf("%s: Reason(...): got %q, want %q", tc.reason, got, tc.want)
			}
			if got := Refused(tc.err); got != tc.refused {
				t.Errorf("%s: Refused(...): got %t, want %t", tc.reason, got, tc.refused)
			}
			if got := Gone(tc.err); got != tc.gone {
				t.Errorf("%s: Gone(...): got %t, want %t", tc.reason, got, tc.gone)
			}
		})
	}
}
