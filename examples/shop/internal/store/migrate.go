package store

import (
	"context"
	"fmt"
	"log/slog"
	"time"
)

// Migrate brings the schema up to date and returns the names of the migrations that it applied. It
// keeps trying to reach the database until ctx ends: one that was just created may not have its role or
// its database yet.
//
// A schema that is newer than this program is left unchanged, so that a rolled back release can
// start.
func (s *Store) Migrate(ctx context.Context, log *slog.Logger) ([]string, error) {
	all, err := s.engine.Migrations()
	if err != nil {
		return nil, err
	}
	var applied []string
	for wait := firstWait; ; wait = min(2*wait, maxWait) {
		names, err := s.engine.Migrate(ctx, all)
		applied = append(applied, names...)
		if err == nil || (!s.engine.Retryable(err) && !s.engine.Unconnected(err)) {
			return applied, err
		}
		log.Info("Cannot migrate yet, trying again", "error", err)
		timer := time.NewTimer(wait)
		select {
		case <-ctx.Done():
			timer.Stop()
			return applied, fmt.Errorf("cannot reach the database in time: %w", err)
		case <-timer.C:
		}
	}
}
