package recovery

import (
	"errors"
	"fmt"
	"strings"
	"time"
)

// ErrEarly means that an archive ends before the requested time.
var ErrEarly = errors.New("the archive ends before the time")

// ErrHole means that WAL in an archive is missing, or cannot be replayed, although there is later
// WAL.
var ErrHole = errors.New("the archive has a hole")

// ErrRefused means that PostgreSQL does not start with the data.
var ErrRefused = errors.New("cannot recover: PostgreSQL reports")

// errEnded means that PostgreSQL ended before it had recovered, or while it was needed.
var errEnded = errors.New("PostgreSQL ended")

// explain returns why PostgreSQL has not recovered. Errors of the archive take precedence over
// PostgreSQL's messages, which follow from them.
func (r Recovery) explain(s *server, err error) error {
	if !errors.Is(err, errEnded) {
		return err
	}
	p, progressErr := readProgress(r.WorkDir)
	if progressErr != nil {
		return progressErr
	}
	switch fatal := s.log.lastFatal(); {
	case p.Failure != nil:
		return p.Failure
	case p.Missing != "" && p.Missing <= r.Last:
		return r.hole(s, p)
	case strings.Contains(fatal, "recovery ended before configured recovery target was reached"):
		return fmt.Errorf("%w %s: the last change in it is %s", ErrEarly, r.Target.UTC().Format(time.RFC3339), s.log.lastChange())
	case fatal != "":
		return fmt.Errorf("%w: %s", ErrRefused, fatal)
	}
	return fmt.Errorf("cannot recover: PostgreSQL ended: %w", s.err)
}

// complete returns an error unless all WAL was replayed that was in the archive when the recovery
// began. PostgreSQL reads until a segment is missing, which then comes after all others: their
// names sort in the order in which they were written.
func (r Recovery) complete(s *server) error {
	p, err := readProgress(r.WorkDir)
	if err != nil {
		return err
	}
	if p.Missing > r.Last {
		return nil
	}
	return r.hole(s, p)
}

func (r Recovery) hole(s *server, p progress) error {
	what := "segment " + p.Missing + " is missing"
	if p.Missing == "" {
		what = "PostgreSQL cannot replay all of it"
	}
	return fmt.Errorf("%w: %s, and there is WAL up to segment %s: the last change before it is %s", ErrHole, what, r.Last, s.log.lastChange())
}
