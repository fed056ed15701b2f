package postgresql

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/storeplane/storeplane/examples/shop/internal/store/engine"
)

func TestPoolConfig(t *testing.T) {
	type want struct {
		Hosts          []string
		MaxConns       int32
		ConnectTimeout time.Duration
		Application    string
	}
	cases := map[string]struct {
		reason string
		uri    string
		want   want
	}{
		"Plain": {
			reason: "The defaults should be sound for a failover",
			uri:    "postgres://shop:pw@db:5432/shop?sslmode=disable",
			want:   want{Hosts: []string{"db"}, MaxConns: engine.MaxConns, ConnectTimeout: engine.ConnectTimeout, Application: "shop-backend"},
		},
		"SeveralHosts": {
			reason: "A URI of several hosts, each with a port, is no URL for Go but one for PostgreSQL",
			uri:    "postgres://shop:pw@a:5432,b:5433/shop?sslmode=disable&target_session_attrs=read-write",
			want:   want{Hosts: []string{"a", "b"}, MaxConns: engine.MaxConns, ConnectTimeout: engine.ConnectTimeout, Application: "shop-backend"},
		},
		"OwnSettings": {
			reason: "What the URI says should win",
			uri:    "postgres://shop:pw@a:1,b:2/shop?sslmode=disable&pool_max_conns=3&connect_timeout=1&application_name=till",
			want:   want{Hosts: []string{"a", "b"}, MaxConns: 3, ConnectTimeout: time.Second, Application: "till"},
		},
		"TooPatient": {
			reason: "A long timeout should be cut, since a request has ten seconds for all hosts",
			uri:    "postgres://shop:pw@a/shop?sslmode=disable&connect_timeout=60",
			want:   want{Hosts: []string{"a"}, MaxConns: engine.MaxConns, ConnectTimeout: engine.ConnectTimeout, Application: "shop-backend"},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			cfg, err := poolConfig(tc.uri)
			if err != nil {
				t.Fatalf("\n%s\npoolConfig(...): %v", tc.reason, err)
			}
			got := want{
				Hosts:          []string{cfg.ConnConfig.Host},
				MaxConns:       cfg.MaxConns,
				ConnectTimeout: cfg.ConnConfig.ConnectTimeout,
				Application:    cfg.ConnConfig.RuntimeParams["application_name"],
			}
			for _, f := range cfg.ConnConfig.Fallbacks {
				got.Hosts = append(got.Hosts, f.Host)
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("\n%s\npoolConfig(...): -want, +got:\n%s", tc.reason, diff)
			}
		})
	}
}
