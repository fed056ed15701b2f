package manager

import (
	"context"
	"errors"
	"time"

	"github.com/storeplane/storeplane/internal/instance"
	"github.com/storeplane/storeplane/internal/instance/archive"
	"github.com/storeplane/storeplane/internal/instance/manager/pace"
	"github.com/storeplane/storeplane/internal/pgbackrest/wal"
)

// fillPeriod is how often a standby checks whether the archive has a gap.
const fillPeriod = 30 * time.Second

// runFill archives what the primary reports as lost and this standby still has, until the
// context ends.
func (m *Manager) runFill(ctx context.Context) {
	for pace.Wait(ctx, fillPeriod) {
		m.Note("fill gaps in the archive", m.fill(ctx))
	}
}

func (m *Manager) fill(ctx context.Context) error {
	report := instance.Cluster{}
	if s := m.seen.Load(); s == nil || s.Leads() || !m.Reported(instance.ClusterKey, &report) || !report.Archive.Open() {
		return nil
	}
	replayed, err := m.server.Replayed(ctx)
	if err != nil {
		return err
	}
	var all []error
	for _, g := range report.Archive.Gaps {
		first, firstOK := wal.Parse(g.First)
		last, lastOK := wal.Parse(g.Last)
		if g.To != nil || !firstOK || !lastOK {
			continue
		}
		all = append(all, archive.Fill(ctx, m.archive(), wal.Range{First: first, Last: last}, replayed, logWriter{m.Log}))
	}
	return errors.Join(all...)
}

// archive returns the paths of archiving in this pod.
func (m *Manager) archive() archive.Config {
	return archive.Config{Repository: m.Repository, Store: m.Store, Key: m.Key, Socket: m.Socket, Volume: m.Volume}
}
