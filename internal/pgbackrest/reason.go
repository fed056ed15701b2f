package pgbackrest

import (
	"context"
	"errors"
	"strconv"
	"strings"

	"github.com/storeplane/storeplane/internal/backup"
)

// Exit codes of pgBackRest
// (https://github.com/pgbackrest/pgbackrest/blob/main/src/build/error/error.yaml).
const (
	codeChecksum    = 26
	codeFileInvalid = 28
	codeFormat      = 29
	codeDuplicate   = 45
	codeLock        = 50
	codeMissing     = 55
	codeConnect     = 56
	codeSetInvalid  = 75
	codeCrypto      = 95
	codeHostConnect = 49
	codeMismatch    = 58
	codeTimeout     = 82
)

// signs are parts of pgBackRest's errors and the reasons that they mean. The first match counts.
var signs = []struct {
	reason backup.Reason
	texts  []string
}{
	{backup.BucketMissing, []string{"NoSuchBucket", "ContainerNotFound", "The specified bucket does not exist"}},
	{backup.StoreDenied, []string{
		"AccessDenied", "InvalidAccessKeyId", "SignatureDoesNotMatch", "AuthenticationFailed", "AuthorizationFailure",
		"InvalidToken", "ExpiredToken", "403 (Forbidden)", "401 (Unauthorized)", "Permission denied", "invalid_grant", "base64 invalid",
	}},
	{backup.KeyMissing, []string{"unable to flush", "cipher", "CryptoError"}},
	{backup.StoreFull, []string{"No space left", "QuotaExceeded", "507 "}},
	{backup.SourceUnreachable, []string{":" + strconv.Itoa(Port), "unable to find primary cluster", "DbConnectError"}},
	{backup.StoreUnreachable, []string{
		"HostConnectError", "unable to connect", "unable to get address", "timeout", "unexpected eof", "503 ", "502 ", "500 ", "TLS error", "TLSv", "certificate",
	}},
}

// ReasonOf returns the reason of an error of pgBackRest.
func ReasonOf(err error) backup.Reason {
	if errors.Is(err, context.Canceled) {
		return backup.Interrupted
	}
	e := &Error{}
	if !errors.As(err, &e) {
		return backup.ToolFailed
	}
	switch e.Code {
	case codeChecksum, codeSetInvalid:
		return backup.BackupCorrupt
	case codeCrypto:
		return backup.KeyMissing
	case codeConnect:
		return backup.SourceUnreachable
	}
	for _, s := range signs {
		for _, t := range s.texts {
			if strings.Contains(e.Message, t) {
				return s.reason
			}
		}
	}
	switch e.Code {
	case codeHostConnect:
		return backup.StoreUnreachable
	case codeMissing:
		return backup.BackupMissing
	}
	return backup.ToolFailed
}

// Full reports whether a message of pgBackRest is about a repository without room, and not about
// the disk of the node on which the archiving server runs.
func Full(message string) bool {
	return strings.Contains(message, "No space left") && !strings.Contains(message, scratch)
}

// Taken reports whether the archive has another segment of that name.
func Taken(err error) bool {
	e := &Error{}
	return errors.As(err, &e) && e.Code == codeDuplicate
}

// StandbyBehind reports whether a backup failed since the standby that it was to read does not
// follow the primary: pgBackRest waits until the standby has replayed the start of the backup, for
// as long as it makes progress (dbReplayWait in
// https://github.com/pgbackrest/pgbackrest/blob/main/src/db/db.c).
func StandbyBehind(err error) bool {
	e := &Error{}
	return errors.As(err, &e) && (e.Code == codeTimeout || e.Code == codeMismatch) && strings.Contains(e.Message, "standby")
}

// Locked reports whether another pgBackRest process is running.
func Locked(err error) bool {
	e := &Error{}
	return errors.As(err, &e) && e.Code == codeLock
}
