package archive

import (
	"testing"
	"time"

	"github.com/storeplane/storeplane/internal/instance/manager/postgres"
)

// BenchmarkArchive measures how fast WAL that waits gets into a repository on a
// volume: what a server may write for long without its volume filling.
func BenchmarkArchive(b *testing.B) {
	p := newPlace(b)
	s := p.primary("one")
	s.exec("CREATE TABLE t (id bigint, a text)")
	db := postgres.Server{Socket: s.Socket, Port: 5432}
	for b.Loop() {
		b.StopTimer()
		p.away(true)
		// Digits of hexadecimal numbers compress to a half, much as rows do.
		s.exec("INSERT INTO t SELECT i, md5(i::text) || md5((-i)::text) || md5(random()::text) || md5(random()::text) FROM generate_series(1, 2500000) i")
		s.write()
		before, err := db.Archiver(b.Context())
		p.must(err)
		p.away(false)
		s.write() // which has PostgreSQL try again at once
		began := time.Now()
		b.StartTimer()
		s.archived()
		b.ReportMetric(float64(before.Waiting)*16.8/time.Since(began).Seconds(), "MB/s")
	}
}
