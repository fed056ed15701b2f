package postgresql

import (
	"errors"
	"strings"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/storeplane/storeplane/examples/shop/internal/store/engine"
)

// healthCheckPeriod is how often the pool looks for idle connections that are broken.
const healthCheckPeriod = 15 * time.Second

// poolConfig returns the settings of a pool that survives a failover of its database. A pool size
// in the URI takes precedence.
//
// The error never contains the URI or a part of it, since that contains a password.
func poolConfig(uri string) (*pgxpool.Config, error) {
	cfg, err := pgxpool.ParseConfig(uri)
	if err != nil {
		return nil, errors.New("it cannot be parsed")
	}
	if !strings.Contains(uri, "pool_max_conns=") {
		cfg.MaxConns = engine.MaxConns
	}
	if cfg.ConnConfig.ConnectTimeout == 0 || cfg.ConnConfig.ConnectTimeout > engine.ConnectTimeout {
		cfg.ConnConfig.ConnectTimeout = engine.ConnectTimeout
	}
	cfg.ConnConfig.DialFunc = engine.Dialer().DialContext

	cfg.HealthCheckPeriod = healthCheckPeriod
	cfg.PingTimeout = time.Second
	cfg.MaxConnIdleTime = engine.MaxConnIdleTime
	cfg.MaxConnLifetime = engine.MaxConnLifetime
	cfg.MaxConnLifetimeJitter = engine.MaxConnLifetime / 5

	// No statement_timeout is set, on purpose. If it ends while a commit waits for its synchronous
	// standby, it ends the wait with a mere warning, and an order that a failover may still lose
	// would be reported as placed. Instead, the deadline of the request closes the connection,
	// which is an error.
	if cfg.ConnConfig.RuntimeParams["application_name"] == "" {
		cfg.ConnConfig.RuntimeParams["application_name"] = engine.Application
	}
	return cfg, nil
}
