package engine

import (
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/storeplane/storeplane/internal/backup"
)

func TestParseURI(t *testing.T) {
	cases := map[string]struct {
		reason, uri string
		want        Connection
	}{
		"Whole": {
			reason: "A URI has all parts, with what is escaped.",
			uri:    "postgresql://shop:p%40ss%2Fw%3Ard@db:5433/my%20shop?sslmode=require",
			want:   Connection{Scheme: "postgresql", User: "shop", Password: "p@ss/w:rd", Hosts: "db:5433", Database: "my shop", Params: url.Values{"sslmode": {"require"}}},
		},
		"Unescaped": {
			reason: "A password that is not escaped is read, too.",
			uri:    "mysql://shop:p@ss/w:rd%@db/shop",
			want:   Connection{Scheme: "mysql", User: "shop", Password: "p@ss/w:rd%", Hosts: "db", Database: "shop", Params: url.Values{}},
		},
		"Hosts": {
			reason: "There may be several hosts, IPv6 ones too.",
			uri:    "postgresql://shop@a:1,[fd00::1]:2/shop?target_session_attrs=read-write",
			want:   Connection{Scheme: "postgresql", User: "shop", Hosts: "a:1,[fd00::1]:2", Database: "shop", Params: url.Values{"target_session_attrs": {"read-write"}}},
		},
		"Parameters": {
			reason: "User, password and database may be parameters.",
			uri:    "postgres://db?user=shop&password=secret&dbname=shop",
			want:   Connection{Scheme: "postgres", User: "shop", Password: "secret", Hosts: "db", Database: "shop", Params: url.Values{}},
		},
		"NoDatabase": {
			reason: "A URI need not name a database.",
			uri:    "mongodb://db:27017",
			want:   Connection{Scheme: "mongodb", Hosts: "db:27017", Params: url.Values{}},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			got, err := ParseURI(tc.uri)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("\n%s\nParseURI(...): -want, +got:\n%s", tc.reason, diff)
			}
		})
	}
}

// TestNoSecretInWords: neither the error about a connection nor the URI that is passed to a tool
// contains the password.
func TestNoSecretInWords(t *testing.T) {
	for _, uri := range []string{"secret", "postgresql:secret", "postgresql://:secret@", "postgresql://secret%zz@/?a=%zz"} {
		_, err := ParseURI(uri)
		if backup.ReasonOf(err) != backup.InvalidTask || strings.Contains(err.Error(), "secret") {
			t.Errorf("ParseURI(%q): %v", uri, err)
		}
	}
	c, err := ParseURI("postgresql://shop:secret@db/shop?password=secret")
	if err != nil {
		t.Fatal(err)
	}
	if uri := c.URI("postgresql", "other db", nil); uri != "postgresql://shop@db/other%20db" {
		t.Errorf("the URI for a tool is %s", uri)
	}
}

func TestReadConnection(t *testing.T) {
	dir := t.TempDir()
	for name, content := range map[string]string{"username": "shop", "password": "p@ss\n", "host": "fd00::1", "port": "5433", "dbname": "shop", "ca.crt": "pem"} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	got, err := ReadConnection(dir)
	if err != nil {
		t.Fatal(err)
	}
	want := Connection{User: "shop", Password: "p@ss", Hosts: "[fd00::1]:5433", Database: "shop", Params: url.Values{}, CA: filepath.Join(dir, "ca.crt")}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("ReadConnection(...): -want, +got:\n%s", diff)
	}
	if host, port := got.Host("1"); host != "fd00::1" || port != "5433" {
		t.Errorf("the host is %s and the port %s", host, port)
	}
}

func TestAddresses(t *testing.T) {
	cases := map[string]struct {
		reason string
		keys   map[string]string
		want   []string
	}{
		"Parts":      {reason: "Parts have one port for all hosts.", keys: map[string]string{"host": "a,fd00::1", "port": "5433"}, want: []string{"a:5433", "[fd00::1]:5433"}},
		"No port":    {reason: "A port that is not named is left out.", keys: map[string]string{"uri": "mysql://shop@db/shop"}, want: []string{"db"}},
		"Several":    {reason: "A URI may name several servers.", keys: map[string]string{"uri": "mongodb://a:27017,b:27018/shop?replicaSet=rs0"}, want: []string{"a:27017", "b:27018"}},
		"Parameters": {reason: "Hosts of a URI may be parameters, each with a port.", keys: map[string]string{"uri": "postgresql:///shop?host=a,b&port=5433,5434"}, want: []string{"a:5433", "b:5434"}},
		"One port":   {reason: "One port is that of all.", keys: map[string]string{"uri": "postgresql:///shop?host=a,b&port=5433"}, want: []string{"a:5433", "b:5433"}},
		"Address":    {reason: "An address is what is connected to, whatever the name is.", keys: map[string]string{"uri": "postgresql:///shop?host=a&hostaddr=10.0.0.7"}, want: []string{"10.0.0.7"}},
		"Overridden": {reason: "A port among the parameters counts more than one before them.", keys: map[string]string{"uri": "postgresql://shop@db.example.com:5433,[fd00::1]/shop?port=6432"}, want: []string{"db.example.com:6432", "[fd00::1]:6432"}},
		"Kept port":  {reason: "Hosts among the parameters keep the port before them.", keys: map[string]string{"uri": "postgresql://shop@:6432/shop?host=a,b"}, want: []string{"a:6432", "b:6432"}},
		"Replaced":   {reason: "So does one that replaces another.", keys: map[string]string{"uri": "postgresql://shop@db:6432/shop?host=db2"}, want: []string{"db2:6432"}},
		"Socket":     {reason: "A socket is no address.", keys: map[string]string{"uri": "postgresql:///shop?host=/run/postgresql"}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			c, err := NewConnection(tc.keys)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tc.want, c.Addresses()); diff != "" {
				t.Errorf("\n%s\nAddresses(): -want, +got:\n%s", tc.reason, diff)
			}
		})
	}
}
