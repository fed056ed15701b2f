package postgresql

import (
	"fmt"
	"net"
	"net/url"
	"strconv"
	"strings"

	appsv1 "github.com/storeplane/storeplane/apis/apps/v1"
	"github.com/storeplane/storeplane/functions/databasecluster/engine"
	"github.com/storeplane/storeplane/internal/build"
	"github.com/storeplane/storeplane/internal/instance"
)

// Connection returns the values of a connection Secret, under the keys that CloudNativePG uses.
func (Engine) Connection(c *engine.Cluster, to engine.Address) map[string]string {
	d := cluster{c}
	host, password, database := to.Host, d.Users[to.User], to.Database
	return map[string]string{
		appsv1.ConnectionUsername:  to.User,
		appsv1.ConnectionPassword:  password,
		appsv1.ConnectionHost:      host,
		appsv1.ConnectionPort:      strconv.Itoa(instance.PostgreSQLPort),
		appsv1.ConnectionDatabase:  database,
		appsv1.ConnectionURI:       d.uri(to.User, []string{host}, database, d.sslMode()),
		appsv1.ConnectionJDBC:      fmt.Sprintf("jdbc:postgresql://%s:%d/%s?user=%s&password=%s&sslmode=%s&targetServerType=primary", host, instance.PostgreSQLPort, database, to.User, url.QueryEscape(password), d.sslMode()),
		build.KeyAuthority:         d.Authority,
		appsv1.ConnectionMultiHost: d.uri(to.User, to.Hosts, database, d.sslMode()),
		appsv1.ConnectionVerified:  d.uri(to.User, []string{host}, database, d.verifyMode()+"&sslrootcert="+engine.AuthorityDir(d.Claim)+"/"+build.KeyAuthority),
	}
}

// uri returns the URI of a database on the first of some hosts that takes writes.
func (d cluster) uri(user string, hosts []string, database, sslMode string) string {
	addresses := make([]string, 0, len(hosts))
	for _, h := range hosts {
		addresses = append(addresses, net.JoinHostPort(h, strconv.Itoa(instance.PostgreSQLPort)))
	}
	return "postgresql://" + url.UserPassword(user, d.Users[user]).String() + "@" + strings.Join(addresses, ",") +
		"/" + database + "?sslmode=" + sslMode + "&target_session_attrs=read-write"
}

// sslMode returns the sslmode that needs no file: to verify a server a
// client needs the file ca.crt.
func (d cluster) sslMode() string {
	if d.TLSRequired {
		return "require"
	}
	return "prefer"
}

// verifyMode returns the sslmode of a client that has the file. The names in a certificate that the
// claim brings are not known, so they are not verified.
func (d cluster) verifyMode() string {
	if d.OwnAuthority {
		return "verify-full"
	}
	return "verify-ca"
}
