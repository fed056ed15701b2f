package engine

import (
	"net"
	"time"
)

// The settings of a pool of connections that survives a failover of its database.
const (
	// ConnectTimeout is for each host of a URI with several, so that a host which drops packets
	// delays the next one for a limited time.
	ConnectTimeout = 2 * time.Second

	// RollbackTimeout is for the end of a transaction whose request is over.
	RollbackTimeout = time.Second

	MaxConns        = 10
	MaxConnIdleTime = 5 * time.Minute
	MaxConnLifetime = 30 * time.Minute

	// Application is the name by which the database lists the connections.
	Application = "shop-backend"
)

// Dialer returns the dialer of a connection. Its probes detect within 25 s that a host is gone, even
// when no request uses the connection.
func Dialer() *net.Dialer {
	return &net.Dialer{
		Timeout:         ConnectTimeout,
		KeepAliveConfig: net.KeepAliveConfig{Enable: true, Idle: 10 * time.Second, Interval: 5 * time.Second, Count: 3},
	}
}
