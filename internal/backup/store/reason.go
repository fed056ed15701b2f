package store

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"net/http"
	"net/url"
	"strings"
	"syscall"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"
	awshttp "github.com/aws/aws-sdk-go-v2/aws/transport/http"
	"github.com/aws/smithy-go"
	"gocloud.dev/gcerrors"
	"golang.org/x/oauth2"
	"google.golang.org/api/googleapi"

	"github.com/storeplane/storeplane/internal/backup"
)

// An answer is what a store answered: its HTTP status, its own error code and its message.
type answer struct {
	status  int
	code    string
	message string
}

// answerOf returns the store's answer in err, or nil if it did not answer.
func answerOf(err error) *answer {
	a := &answer{}
	if e, ok := errors.AsType[*awshttp.ResponseError](err); ok {
		a.status = e.HTTPStatusCode()
	}
	if e, ok := errors.AsType[smithy.APIError](err); ok {
		a.code, a.message = e.ErrorCode(), e.ErrorMessage()
	}
	if e, ok := errors.AsType[*googleapi.Error](err); ok {
		a.status, a.message = e.Code, e.Message
		for _, item := range e.Errors {
			a.code = item.Reason
		}
	}
	if e, ok := errors.AsType[*azcore.ResponseError](err); ok {
		a.status, a.code = e.StatusCode, e.ErrorCode
	}
	if e, ok := errors.AsType[*oauth2.RetrieveError](err); ok {
		a.status, a.code, a.message = http.StatusUnauthorized, e.ErrorCode, e.ErrorDescription
	}
	if *a == (answer{}) {
		return nil
	}
	return a
}

// reason returns the reason of a store's error.
func reason(err error) backup.Reason {
	if r := backup.ReasonOf(err); r != "" {
		return r
	}
	// Errors of a volume, about a full disk or permissions, come without an answer.
	switch {
	case errors.Is(err, syscall.ENOSPC), errors.Is(err, syscall.EDQUOT):
		return backup.StoreFull
	case errors.Is(err, fs.ErrPermission), errors.Is(err, syscall.EROFS):
		return backup.StoreDenied
	case errors.Is(err, context.Canceled):
		return backup.Interrupted
	}
	if a := answerOf(err); a != nil {
		if r := a.reason(); r != "" {
			return r
		}
	}
	switch {
	case gcerrors.Code(err) == gcerrors.PermissionDenied:
		return backup.StoreDenied
	case strings.Contains(err.Error(), "failed to refresh cached credentials"),
		strings.Contains(err.Error(), "could not find default credentials"),
		strings.Contains(err.Error(), "DefaultAzureCredential"):
		return backup.StoreDenied
	case missing(err):
		return backup.BackupMissing
	}
	return backup.StoreUnreachable
}

// reason returns the reason of an answer, or "".
func (a *answer) reason() backup.Reason {
	switch a.code {
	case "NoSuchBucket", "ContainerNotFound", "ContainerBeingDeleted":
		return backup.BucketMissing
	case "NoSuchKey", "BlobNotFound", "NotFound":
		return backup.BackupMissing
	case "InvalidAccessKeyId", "SignatureDoesNotMatch", "ExpiredToken", "InvalidToken", "AuthorizationHeaderMalformed", "XAdminUserNotFound":
		return backup.StoreDenied
	case "XMinioStorageFull", "QuotaExceeded", "InsufficientStorage", "storageQuotaExceeded", "EntityTooLarge":
		return backup.StoreFull
	// The clocks differ, which is not the fault of the credentials and may pass.
	case "RequestTimeTooSkewed":
		return backup.StoreUnreachable
	}
	switch a.status {
	case http.StatusUnauthorized, http.StatusForbidden:
		return backup.StoreDenied
	case http.StatusInsufficientStorage:
		return backup.StoreFull
	// Google answers so for a bucket, and for an object only when one is read.
	case http.StatusNotFound:
		if strings.Contains(a.message, "bucket") {
			return backup.BucketMissing
		}
	}
	return ""
}

// missing reports whether err means that an object does not exist.
func missing(err error) bool {
	if a := answerOf(err); a != nil && a.reason() == backup.BucketMissing {
		return false
	}
	return gcerrors.Code(err) == gcerrors.NotFound
}

// inWords returns a store's answer without what its library adds: request ids, which differ each
// time, and whole pages of XML.
func inWords(err error) string {
	a := answerOf(err)
	switch {
	case a == nil:
		return lastWords(err)
	case a.code != "" && a.message != "":
		return fmt.Sprintf("%s: %s", a.code, strings.TrimSuffix(firstLine(a.message), "."))
	case a.message != "":
		return strings.TrimSuffix(firstLine(a.message), ".")
	case a.code != "":
		return a.code
	}
	return fmt.Sprintf("the store answers %d %s", a.status, http.StatusText(a.status))
}

// lastWords returns the message of an error without an answer: the network's, without the
// requested URL, which may be long and contain a token.
func lastWords(err error) string {
	if errors.Is(err, context.DeadlineExceeded) {
		return "the store does not answer"
	}
	if e, ok := errors.AsType[*net.OpError](err); ok {
		return e.Error()
	}
	if e, ok := errors.AsType[*url.Error](err); ok {
		return firstLine(e.Err.Error())
	}
	if e, ok := errors.AsType[*fs.PathError](err); ok {
		return e.Err.Error()
	}
	return firstLine(err.Error())
}

func firstLine(s string) string {
	s, _, _ = strings.Cut(strings.TrimSpace(s), "\n")
	return strings.TrimSpace(s)
}
