package postgres

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/storeplane/storeplane/internal/instance/manager/pgdata/pgdatatest"
)

// TestFence: once no standby but the one to be promoted receives WAL, the primary acknowledges no
// commit that this one does not have.
func TestFence(t *testing.T) {
	primary := pgdatatest.New(t).Begin()
	primary.Configure("synchronous_standby_names = 'ANY 1 (next, other)'", "wal_retrieve_retry_interval = 100ms")
	primary.Start()
	follow := func(name string) *pgdatatest.Volume {
		v := pgdatatest.New(t).Copy(primary)
		v.Configure("cluster_name = '" + name + "'")
		return v.Start()
	}
	next, other := follow("next"), follow("other")
	primary.Ask("CREATE TABLE t (n int)")
	s := Server{Socket: other.Dir, Port: 5432}
	if _, err := (Server{Socket: primary.Dir, Port: 5432}).Fence(t.Context()); !errors.Is(err, ErrNotStandby) {
		t.Errorf("Fence() of a primary: got %v", err)
	}
	if follows, err := s.Follows(t.Context()); err != nil || follows == "" {
		t.Errorf("Follows(): got %q, %v", follows, err)
	}

	// A standby stops receiving when it is promoted.
	next.Stop("fast")
	primary.Ask("INSERT INTO t VALUES (1)")
	fenced, err := s.Fence(t.Context())
	received := fenced.Received
	if err != nil || received == 0 || fenced.Followed == "" {
		t.Fatalf("Fence(): got %+v, %v", fenced, err)
	}
	if follows, err := s.Follows(t.Context()); err != nil || follows != "" {
		t.Errorf("Follows() of a standby that is fenced: got %q, %v", follows, err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Second)
	defer cancel()
	acknowledged := make(chan error, 1)
	go func() {
		acknowledged <- Server{Socket: primary.Dir, Port: 5432}.with(ctx, "postgres", "public", time.Minute, run("SET synchronous_commit = on; INSERT INTO t VALUES (2)"))
	}()
	select {
	case err := <-acknowledged:
		if err == nil {
			t.Error("the primary acknowledged what no standby has received")
		}
	case <-ctx.Done():
	}
	if now, err := s.Received(t.Context()); err != nil || now != received {
		t.Errorf("Received() after the fence: got %d, %v, want %d", now, err, received)
	}
	if again, err := s.Fence(t.Context()); err != nil || again != (Fenced{Received: received}) {
		t.Errorf("Fence() again: got %+v, %v, want %d", again, err, received)
	}
	// After Unfence it follows what its own configuration file names.
	if configured, err := s.Configured(t.Context()); err != nil || !strings.Contains(configured, "host="+primary.Dir+" ") {
		t.Errorf("Told(): got %q, %v, want the primary's socket", configured, err)
	}
	if err := s.Unfence(t.Context()); err != nil {
		t.Fatal(err)
	}
	for deadline := time.Now().Add(20 * time.Second); ; time.Sleep(50 * time.Millisecond) {
		if now, err := s.Received(t.Context()); err == nil && now > received {
			break
		}
		if time.Now().After(deadline) {
			t.Fatal("the standby follows no primary any more")
		}
	}
}
