package mysql

import (
	"fmt"
	"net/url"
	"strconv"

	appsv1 "github.com/storeplane/storeplane/apis/apps/v1"
	"github.com/storeplane/storeplane/functions/databasecluster/engine"
	"github.com/storeplane/storeplane/internal/build"
	"github.com/storeplane/storeplane/internal/instance"
)

// Connection returns the values of a connection Secret, under the same keys as those of postgresql.
// The URIs have the parameters of MySQL's own connectors
// (https://dev.mysql.com/doc/refman/9.7/en/connecting-using-uri-or-key-value-pairs.html), and the JDBC
// URL those of Connector/J.
func (Engine) Connection(c *engine.Cluster, to engine.Address) map[string]string {
	d := cluster{c}
	host, password, database := to.Host, d.Users[to.User], to.Database
	return map[string]string{
		appsv1.ConnectionUsername: to.User,
		appsv1.ConnectionPassword: password,
		appsv1.ConnectionHost:     host,
		appsv1.ConnectionPort:     strconv.Itoa(instance.MySQLPort),
		appsv1.ConnectionDatabase: database,
		appsv1.ConnectionURI:      d.uri(to.User, host, database, d.sslMode()),
		appsv1.ConnectionJDBC:     fmt.Sprintf("jdbc:mysql://%s:%d/%s?user=%s&password=%s&sslMode=%s", host, instance.MySQLPort, database, to.User, url.QueryEscape(password), d.sslMode()),
		build.KeyAuthority:        d.Authority,
		appsv1.ConnectionVerified: d.uri(to.User, host, database, d.verifyMode()+"&ssl-ca="+engine.AuthorityDir(d.Claim)+"/"+build.KeyAuthority),
	}
}

// uri returns the URI of a database.
func (d cluster) uri(user, host, database, sslMode string) string {
	return "mysql://" + url.UserPassword(user, d.Users[user]).String() + fmt.Sprintf("@%s:%d/%s?ssl-mode=%s", host, instance.MySQLPort, database, sslMode)
}

// sslMode returns the mode that needs no file: to verify a server a client needs the file ca.crt.
func (d cluster) sslMode() string {
	if d.TLSRequired {
		return "REQUIRED"
	}
	return "PREFERRED"
}

// verifyMode returns the mode of a client that has the file. The names in a certificate that the claim
// brings are not known, so they are not verified.
func (d cluster) verifyMode() string {
	if d.OwnAuthority {
		return "VERIFY_IDENTITY"
	}
	return "VERIFY_CA"
}
