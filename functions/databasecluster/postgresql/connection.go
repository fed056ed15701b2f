package postgresql

import (
	"fmt"
	"net"
	"net/url"
	"strconv"
	"strings"

	"github.com/storeplane/storeplane/functions/databasecluster/engine"
)

// Connection returns the values of a connection Secret, under the keys that CloudNativePG uses.
func (Engine) Connection(c *engine.Cluster, to engine.Address) map[string]string {
	d := cluster{c}
	host, password, database := to.Host, d.Users[to.User], to.Database
	return map[string]string{
		"username":   to.User,
		"password":   password,
		"host":       host,
		"port":       strconv.Itoa(port),
		"dbname":     database,
		"uri":        d.uri(to.User, []string{host}, database, d.sslMode()),
		"jdbc-uri":   fmt.Sprintf("jdbc:postgresql://%s:%d/%s?user=%s&password=%s&sslmode=%s&targetServerType=primary", host, port, database, to.User, url.QueryEscape(password), d.sslMode()),
		keyAuthority: d.Authority,
		// Not every driver supports several hosts.
		"multi-host-uri": d.uri(to.User, to.Hosts, database, d.sslMode()),
		// This one requires the authority as a file.
		"verified-uri": d.uri(to.User, []string{host}, database, d.verifyMode()+"&sslrootcert="+engine.AuthorityDir(d.Claim)+"/"+keyAuthority),
	}
}

// keyAuthority is the key of the servers' authority, and the name of its file.
const keyAuthority = "ca.crt"

// uri returns the URI of a database on the first of some hosts that takes writes.
func (d cluster) uri(user string, hosts []string, database, sslMode string) string {
	addresses := make([]string, 0, len(hosts))
	for _, h := range hosts {
		addresses = append(addresses, net.JoinHostPort(h, strconv.Itoa(port)))
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

// WithPassword returns those of a Connection's values that change with the password.
func (Engine) WithPassword(values map[string]string, user, was, password string) map[string]string {
	replace := strings.NewReplacer(
		"//"+url.UserPassword(user, was).String()+"@", "//"+url.UserPassword(user, password).String()+"@",
		"&password="+url.QueryEscape(was)+"&", "&password="+url.QueryEscape(password)+"&",
	)
	out := map[string]string{"password": password}
	for _, key := range []string{"uri", "jdbc-uri", "multi-host-uri", "verified-uri"} {
		if value, ok := values[key]; ok {
			out[key] = replace.Replace(value)
		}
	}
	return out
}
