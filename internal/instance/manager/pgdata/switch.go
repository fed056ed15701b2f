package pgdata

import (
	"context"
	"errors"
	"fmt"
	"os/exec"
	"regexp"

	"github.com/storeplane/storeplane/internal/instance"
	"github.com/storeplane/storeplane/internal/pgbackrest/wal"
)

// Sizes in bytes: of a page of WAL, of its header, and of the record that switches to the next
// segment.
const (
	walPage       = 8 << 10
	walPageHeader = 24
	switchRecord  = 24
)

var switchAt = regexp.MustCompile(`, lsn: ([0-9A-F]+/[0-9A-F]+), prev [0-9A-F]+/[0-9A-F]+, desc: SWITCH`)

// Switched returns how many bytes of a segment's file lead up to the record that switched to
// the next segment, including that record, or 0 if there is none. PostgreSQL reads nothing
// after it.
func Switched(ctx context.Context, file string) (int64, error) {
	out, err := tool(ctx, "pg_waldump", "--rmgr=XLOG", file).Output()
	at := switchAt.FindSubmatch(out)
	if at == nil {
		exit := &exec.ExitError{}
		if err != nil && !errors.As(err, &exit) {
			return 0, fmt.Errorf("cannot read the records of %s: %w", file, err)
		}
		return 0, nil
	}
	lsn, err := instance.ParseLSN(string(at[1]))
	if err != nil {
		return 0, fmt.Errorf("cannot read the records of %s: %w", file, err)
	}
	begin := int64(uint64(lsn) % wal.Size)
	end := begin + switchRecord
	if begin/walPage != (end-1)/walPage {
		end += walPageHeader
	}
	return end, nil
}
