package postgresql

import (
	"fmt"
	"net"
	"net/url"
	"strconv"
	"strings"

	"github.com/storeplane/storeplane/functions/databasecluster/engine"
)

// Connection has keys that users of CloudNativePG know.
func (Engine) Connection(c *engine.Cluster, to engine.Address) map[string]string {
	d := cluster{c}
	host, password, database := to.Host, d.Users[to.User], to.Database
	return map[string]string{
		"username": to.User,
		"password": password,
		"host":     host,
		"port":     strconv.Itoa(port),
		"dbname":   database,
		"uri":      d.uri(to.User, []string{host}, database),
		"jdbc-uri": fmt.Sprintf("jdbc:postgresql://%s:%d/%s?user=%s&password=%s&sslmode=%s&targetServerType=primary", host, port, database, to.User, url.QueryEscape(password), d.sslMode()),
		"ca.crt":   d.Authority,
		// Not every driver understands this one.
		"multi-host-uri": d.uri(to.User, to.Hosts, database),
	}
}

// uri of a database, on the first of some hosts that takes writes.
func (d cluster) uri(user string, hosts []string, database string) string {
	addresses := make([]string, 0, len(hosts))
	for _, h := range hosts {
		addresses = append(addresses, net.JoinHostPort(h, strconv.Itoa(port)))
	}
	return "postgresql://" + url.UserPassword(user, d.Users[user]).String() + "@" + strings.Join(addresses, ",") +
		"/" + database + "?sslmode=" + d.sslMode() + "&target_session_attrs=read-write"
}

// sslMode that a connection string can ask for by itself: to verify a server a
// client needs the file ca.crt.
func (d cluster) sslMode() string {
	if d.TLSRequired {
		return "require"
	}
	return "prefer"
}

// WithPassword is what of a Connection changes with the password.
func (Engine) WithPassword(values map[string]string, user, was, password string) map[string]string {
	replace := strings.NewReplacer(
		"//"+url.UserPassword(user, was).String()+"@", "//"+url.UserPassword(user, password).String()+"@",
		"&password="+url.QueryEscape(was)+"&", "&password="+url.QueryEscape(password)+"&",
	)
	out := map[string]string{"password": password}
	for _, key := range []string{"uri", "jdbc-uri", "multi-host-uri"} {
		out[key] = replace.Replace(values[key])
	}
	return out
}
