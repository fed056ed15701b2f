package engine

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"net"
	"net/url"
	"os"
	"path/filepath"
	"strings"

	appsv1 "github.com/storeplane/storeplane/apis/apps/v1"
	"github.com/storeplane/storeplane/internal/backup"
)

// A Connection is how to connect to a server.
type Connection struct {
	// Scheme is that of the URI, or empty.
	Scheme string

	User     string
	Password string

	// Hosts are separated by commas, each with its port if it has one.
	Hosts string

	// Database is the one that the connection names, or empty.
	Database string

	// Params are the parameters of the URI.
	Params url.Values

	// CA is the file of the certificate authority that the server's certificate is checked
	// against, or empty.
	CA string
}

// ReadConnection reads the folder of a mounted Secret with a uri or its parts.
func ReadConnection(dir string) (Connection, error) {
	keys := map[string]string{}
	for _, key := range []string{appsv1.ConnectionURI, appsv1.ConnectionUsername, appsv1.ConnectionPassword, appsv1.ConnectionHost, appsv1.ConnectionPort, appsv1.ConnectionDatabase} {
		content, err := os.ReadFile(filepath.Join(dir, key)) //nolint:gosec // the pod's own mount
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return Connection{}, backup.Errorf(backup.InvalidTask, "cannot read the connection: %w", err)
		}
		keys[key] = Value(content)
	}
	c, err := NewConnection(keys)
	if err != nil {
		return Connection{}, err
	}
	if ca := filepath.Join(dir, backup.KeyAuthority); exists(ca) {
		c.CA = ca
	}
	return c, nil
}

// Value returns the value of a Secret's key without the newline that an editor adds at its end.
func Value(content []byte) string { return strings.TrimRight(string(content), "\r\n") }

func exists(path string) bool {
	_, err := os.Stat(path)
	return err == nil
}

// NewConnection returns the connection of a Secret with these keys: a uri, or its parts username,
// password, host, port and dbname.
func NewConnection(keys map[string]string) (Connection, error) {
	if uri := keys[appsv1.ConnectionURI]; uri != "" {
		return ParseURI(uri)
	}
	if keys[appsv1.ConnectionHost] == "" {
		return Connection{}, backup.Errorf(backup.InvalidTask, "cannot read the connection: its Secret has neither a uri nor a host")
	}
	c := Connection{
		User: keys[appsv1.ConnectionUsername], Password: keys[appsv1.ConnectionPassword],
		Hosts: keys[appsv1.ConnectionHost], Database: keys[appsv1.ConnectionDatabase], Params: url.Values{},
	}
	if port := keys[appsv1.ConnectionPort]; port != "" {
		hosts := strings.Split(c.Hosts, ",")
		for i := range hosts {
			hosts[i] = bracketed(hosts[i]) + ":" + port
		}
		c.Hosts = strings.Join(hosts, ",")
	}
	return c, nil
}

// bracketed returns a host, with brackets if it is an IPv6 address.
func bracketed(host string) string {
	if strings.Contains(host, ":") && !strings.HasPrefix(host, "[") {
		return "[" + host + "]"
	}
	return host
}

// errURI does not say what is wrong with the URI, because that may be its password.
var errURI = backup.Errorf(backup.InvalidTask, "cannot read the connection: its uri is none, it has the form scheme://user:password@host:port/database")

// ParseURI parses the URI of a server. Unlike Go's own parser it accepts several hosts, and
// passwords that are not escaped.
func ParseURI(uri string) (Connection, error) {
	scheme, rest, ok := strings.Cut(strings.TrimSpace(uri), "://")
	if !ok {
		return Connection{}, errURI
	}
	c := Connection{Scheme: scheme}
	rest, query, _ := strings.Cut(rest, "?")
	var err error
	if c.Params, err = url.ParseQuery(query); err != nil {
		return Connection{}, errURI
	}
	// A password may hold a slash; a host holds none.
	if at := strings.LastIndex(rest, "@"); at >= 0 {
		user, password, _ := strings.Cut(rest[:at], ":")
		c.User, c.Password = unescape(user), unescape(password)
		rest = rest[at+1:]
	}
	hosts, database, _ := strings.Cut(rest, "/")
	c.Hosts, c.Database = hosts, unescape(database)
	moveParam(c.Params, "user", &c.User)
	moveParam(c.Params, "password", &c.Password)
	moveParam(c.Params, "dbname", &c.Database)
	if c.Hosts == "" && c.Params.Get("host") == "" {
		return Connection{}, errURI
	}
	return c, nil
}

// moveParam moves a parameter of the URI into the field that it sets, and removes the parameter.
func moveParam(params url.Values, name string, into *string) {
	if v := params.Get(name); v != "" {
		*into = v
	}
	params.Del(name)
}

// unescape returns what s stands for, or s itself if it is not escaped.
func unescape(s string) string {
	if out, err := url.PathUnescape(s); err == nil {
		return out
	}
	return s
}

// Secrets returns the values that must not be logged or reported, in all their escaped forms.
func (c Connection) Secrets() []string {
	out := []string{}
	for _, s := range []string{c.Password, c.Params.Get("sslpassword"), c.Params.Get("tlsCertificateKeyFilePassword")} {
		if s != "" {
			out = append(out, s, url.QueryEscape(s), url.PathEscape(s), url.UserPassword("", s).String()[1:])
		}
	}
	return out
}

// Host returns host and port of the only, or first, server. The given port is the default.
func (c Connection) Host(port string) (string, string) {
	first, _, _ := strings.Cut(c.Hosts, ",")
	if i := strings.LastIndex(first, ":"); i >= 0 && !strings.HasSuffix(first, "]") {
		first, port = first[:i], first[i+1:]
	}
	return strings.Trim(first, "[]"), port
}

// Addresses returns the hosts of all servers, each with its port if the connection has one for
// it. Parameters of a PostgreSQL URI override the hosts and ports before them.
//
// https://www.postgresql.org/docs/current/libpq-connect.html#LIBPQ-CONNSTRING-URIS
func (c Connection) Addresses() []string {
	var out []string
	named := cmp.Or(c.Params.Get("hostaddr"), c.Params.Get("host"))
	ports := strings.Split(c.Params.Get("port"), ",")
	if named != "" && c.Params.Get("port") == "" {
		// A host parameter replaces the hosts but not their ports.
		ports = nil
		for h := range strings.SplitSeq(c.Hosts, ",") {
			_, port := Connection{Hosts: h}.Host("")
			ports = append(ports, port)
		}
	}
	for i, h := range strings.Split(cmp.Or(named, c.Hosts), ",") {
		// A path is a Unix socket.
		if h == "" || strings.HasPrefix(h, "/") {
			continue
		}
		// A single port is that of all hosts.
		if port := ports[min(i, len(ports)-1)]; port != "" {
			name, _ := Connection{Hosts: h}.Host("")
			h = net.JoinHostPort(name, port)
		}
		out = append(out, h)
	}
	return out
}

// URI returns the URI of a database, without the password, with more parameters added. A
// parameter may have several values.
func (c Connection) URI(scheme, database string, more url.Values) string {
	params := url.Values{}
	maps.Copy(params, c.Params)
	maps.Copy(params, more)
	var b strings.Builder
	fmt.Fprintf(&b, "%s://", scheme)
	if c.User != "" {
		b.WriteString(url.User(c.User).String() + "@")
	}
	b.WriteString(c.Hosts + "/" + url.PathEscape(database))
	if len(params) > 0 {
		// Go encodes a space as a plus sign, which libpq takes literally.
		b.WriteString("?" + strings.ReplaceAll(params.Encode(), "+", "%20"))
	}
	return b.String()
}
