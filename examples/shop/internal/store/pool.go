package store

import (
	"errors"
	"net"
	"strings"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"
)

const (
	// connectTimeout is for each host of a URI with several, so that a host which drops packets
	// delays the next one for a limited time.
	connectTimeout = 2 * time.Second

	maxConns          = 10
	healthCheckPeriod = 15 * time.Second
	pingTimeout       = time.Second
	maxConnIdleTime   = 5 * time.Minute
	maxConnLifetime   = 30 * time.Minute
)

// poolConfig returns the settings of a pool that survives a failover of its database. A pool size
// in the URI takes precedence.
//
// The error never contains the URI or a part of it, since that contains a password.
func poolConfig(uri string) (*pgxpool.Config, error) {
	cfg, err := pgxpool.ParseConfig(uri)
	if err != nil {
		return nil, errors.New("cannot parse DATABASE_URL: it should read postgres://user:password@host:5432/dbname (it is not printed, as it holds a password)")
	}
	if !strings.Contains(uri, "pool_max_conns=") {
		cfg.MaxConns = maxConns
	}
	if cfg.ConnConfig.ConnectTimeout == 0 || cfg.ConnConfig.ConnectTimeout > connectTimeout {
		cfg.ConnConfig.ConnectTimeout = connectTimeout
	}
	// Probes on the connection detect within 25 s that a host is gone, even when no request uses
	// it.
	cfg.ConnConfig.DialFunc = (&net.Dialer{
		Timeout:         connectTimeout,
		KeepAliveConfig: net.KeepAliveConfig{Enable: true, Idle: 10 * time.Second, Interval: 5 * time.Second, Count: 3},
	}).DialContext

	cfg.HealthCheckPeriod = healthCheckPeriod
	cfg.PingTimeout = pingTimeout
	cfg.MaxConnIdleTime = maxConnIdleTime
	cfg.MaxConnLifetime = maxConnLifetime
	cfg.MaxConnLifetimeJitter = maxConnLifetime / 5

	// No statement_timeout is set, on purpose. If it ends while a commit waits for its synchronous
	// standby, it ends the wait with a mere warning, and an order that a failover may still lose
	// would be reported as placed. Instead, the deadline of the request closes the connection,
	// which is an error.
	if cfg.ConnConfig.RuntimeParams["application_name"] == "" {
		cfg.ConnConfig.RuntimeParams["application_name"] = "shop-backend"
	}
	return cfg, nil
}
