package kube

import (
	"errors"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
)

// Refused reports whether the API server rejected a call for its content: retrying is useless
// until something changes.
func Refused(err error) bool {
	return apierrors.IsForbidden(err) || apierrors.IsInvalid(err) || apierrors.IsBadRequest(err) || apierrors.IsMethodNotSupported(err)
}

// Gone reports whether an object does not exist, or cannot be read any more, as when the
// permissions were removed before the pods.
func Gone(err error) bool { return apierrors.IsNotFound(err) || apierrors.IsForbidden(err) }

// Missing reports whether an object does not exist.
func Missing(err error) bool { return apierrors.IsNotFound(err) }

// Unknown reports whether the API server rejected the client's token: a pod's token becomes
// invalid with the pod's object.
func Unknown(err error) bool { return apierrors.IsUnauthorized(err) }

// Raced reports whether an object has changed or was removed since it was read.
func Raced(err error) bool { return apierrors.IsConflict(err) || apierrors.IsNotFound(err) }

// Reason returns the API server's message of a refusal, without the object's name.
func Reason(err error) string {
	var status apierrors.APIStatus
	if !errors.As(err, &status) {
		return "the API server cannot be reached"
	}
	message := status.Status().Message
	for _, before := range []string{" is forbidden: ", " is invalid: "} {
		if _, after, ok := strings.Cut(message, before); ok {
			return after
		}
	}
	return message
}
