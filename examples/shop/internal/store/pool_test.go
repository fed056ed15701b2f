package store

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
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
			want:   want{Hosts: []string{"db"}, MaxConns: maxConns, ConnectTimeout: connectTimeout, Application: "shop-backend"},
		},
		"SeveralHosts": {
			reason: "A URI of several hosts, each with a port, is no URL for Go but one for PostgreSQL",
			uri:    "postgres://shop:pw@a:5432,b:5433/shop?sslmode=disable&target_session_attrs=read-write",
			want:   want{Hosts: []string{"a", "b"}, MaxConns: maxConns, ConnectTimeout: connectTimeout, Application: "shop-backend"},
		},
		"OwnSettings": {
			reason: "What the URI says should win",
			uri:    "postgres://shop:pw@a:1,b:2/shop?sslmode=disable&pool_max_conns=3&connect_timeout=1&application_name=till",
			want:   want{Hosts: []string{"a", "b"}, MaxConns: 3, ConnectTimeout: time.Second, Application: "till"},
		},
		"TooPatient": {
			reason: "A long timeout should be cut, since a request has ten seconds for all hosts",
			uri:    "postgres://shop:pw@a/shop?sslmode=disable&connect_timeout=60",
			want:   want{Hosts: []string{"a"}, MaxConns: maxConns, ConnectTimeout: connectTimeout, Application: "shop-backend"},
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

func TestPoolConfigHidesSecrets(t *testing.T) {
	cases := map[string]struct {
		reason string
		uri    string
	}{
		"BrokenEscape": {reason: "A password that was not escaped should not be printed", uri: "postgres://shop:hunter%2@db/shop"},
		"BadPort":      {reason: "Neither with a bad port", uri: "postgres://shop:hunter2@db:none/shop"},
		"OtherScheme":  {reason: "Nor for another database", uri: "mysql://shop:hunter2@db/shop"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			_, err := poolConfig(tc.uri)
			if err == nil || strings.Contains(err.Error(), "hunter") {
				t.Errorf("\n%s\npoolConfig(...): want an error without the password, got: %v", tc.reason, err)
			}
		})
	}
}
