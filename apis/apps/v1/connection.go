package v1

// Keys of a Secret with the connection to a database. Those of a DatabaseCluster have all of them, but
// ConnectionMultiHost with engine postgresql alone, and ConnectionReadOnlyHost with a size above 1. A Backup
// or Restore of any database reads URI, or else the parts. The key of the servers' authority is ca.crt.
const (
	ConnectionUsername = "username"
	ConnectionPassword = "password"
	ConnectionHost     = "host"
	ConnectionPort     = "port"
	ConnectionDatabase = "dbname"
	ConnectionURI      = "uri"

	// ConnectionReadOnlyHost is the host of the standbys.
	ConnectionReadOnlyHost = "ro-host"

	// ConnectionJDBC is the URI for JDBC, and ConnectionMultiHost that with all hosts, which not
	// every driver supports.
	ConnectionJDBC      = "jdbc-uri"
	ConnectionMultiHost = "multi-host-uri"

	// ConnectionVerified is the URI for a client that has mounted the authority as a file.
	ConnectionVerified = "verified-uri"
)
