package archive

import (
	"testing"
	"time"

	"github.com/storeplane/storeplane/internal/instance/manager/postgres"
)

// BenchmarkArchive measures how fast waiting WAL is archived into a repository on a volume, which
// is the rate at which a server may write permanently without filling its volume.
func BenchmarkArchive(b *testing.B) {
	p := newPlace(b)
	s := p.primary("one")
	s.exec("CREATE TABLE t (id bigint, a text)")
	db := postgres.Server{Socket: s.Socket, Port: 5432}
	for b.Loop() {
		b.StopTimer()
		p.away(true)
		// Hexadecimal digits compress to half their size, much as rows do.
		s.exec("INSERT INTO t SELECT i, md5(i::text) || md5((-i)::text) || md5(random()::text) || md5(random()::text) FROM generate_series(1, 2500000) i")
		s.write()
		before, err := db.Archiver(b.Context())
		p.must(err)
		p.away(false)
		s.write() // which makes PostgreSQL retry at once
		began := time.Now()
		b.StartTimer()
		s.archived()
		b.ReportMetric(float64(before.Waiting)*16.8/time.Since(began).Seconds(), "MB/s")
	}
}
