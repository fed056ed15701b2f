package main

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestConf(t *testing.T) {
	const options = `# parameters
[mysqld]
innodb_buffer_pool_size=64M
require_secure_transport=ON
defaults-file=/etc/storeplane/my.cnf
datadir=/var/lib/mysql/data
sync-binlog=1
ssl-ca=/run/authorities.crt
super-read-only=ON
plugin-load-add=group_replication.so
loose-group-replication-member-expel-timeout=0
loose-group-replication-recovery-ssl-ca=/etc/ca.crt
`
	cases := map[string]struct {
		reason  string
		without []string
		want    string
	}{
		"Group":  {"It has a claim's options, but for those by which a server is itself", itsOwn, "[mysqld]\ninnodb_buffer_pool_size=64M\nsync-binlog=1\nplugin-load-add=group_replication.so\nloose-group-replication-member-expel-timeout=0\n"},
		"Single": {"It has none of a group", append(ofGroup, itsOwn...), "[mysqld]\ninnodb_buffer_pool_size=64M\nsync-binlog=1\n"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(tc.want, conf(options, tc.without...)); diff != "" {
				t.Errorf("\n%s\nconf(...): -want, +got:\n%s", tc.reason, diff)
			}
		})
	}
}

func TestFiguresOf(t *testing.T) {
	cases := map[string]struct {
		reason string
		out    string
		want   []float64
		fails  bool
	}{
		"Both":    {"As the program prints them", "123.5\n8.250\n", []float64{123.5, 8.25}, false},
		"One":     {"No figure is no 0", "123.5\n", nil, true},
		"Message": {"What is no number is no figure", "cannot commit\n", nil, true},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			got, err := figuresOf(tc.out)
			if (err != nil) != tc.fails {
				t.Fatalf("\n%s\nfiguresOf(...): %v", tc.reason, err)
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("\n%s\nfiguresOf(...): -want, +got:\n%s", tc.reason, diff)
			}
		})
	}
}
