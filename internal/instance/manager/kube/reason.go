package kube

import (
	"errors"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
)

// Refused says whether the API server has understood a call and does not want
// it: trying again is of no use until something changes.
func Refused(err error) bool {
	return apierrors.IsForbidden(err) || apierrors.IsInvalid(err) || apierrors.IsBadRequest(err) || apierrors.IsMethodNotSupported(err)
}

// Gone says whether an object is not there, or is not ours to see any more, as
// when the rights went before the pods.
func Gone(err error) bool { return apierrors.IsNotFound(err) || apierrors.IsForbidden(err) }

// Missing says whether an object is not there.
func Missing(err error) bool { return apierrors.IsNotFound(err) }

// Unknown says whether the API server does not know who asks any more: a pod's
// token ends with the pod's object.
func Unknown(err error) bool { return apierrors.IsUnauthorized(err) }

// Raced says whether an object has changed or gone since it was seen.
func Raced(err error) bool { return apierrors.IsConflict(err) || apierrors.IsNotFound(err) }

// Reason of a refusal in the API server's words, without the object's name.
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
