package main

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestPlainConf(t *testing.T) {
	const settings = `cluster_name=measured-postgresql
hot_standby=on
log_line_prefix=%m [%p] it's
shared_buffers=128MB
ssl=on
ssl_ca_file=/etc/storeplane/tls/ca.crt
wal_level=replica
`
	const want = `hot_standby = 'on'
log_line_prefix = '%m [%p] it''s'
shared_buffers = '128MB'
wal_level = 'replica'
`
	if diff := cmp.Diff(want, plainConf(settings)); diff != "" {
		t.Errorf("\nA plain server has a claim's parameters, but for those by which it is itself\nplainConf(...): -want, +got:\n%s", diff)
	}
}
