package databasecluster_test

import (
	"fmt"
	"net/url"
	"strings"
	"testing"

	fnv1 "github.com/crossplane/function-sdk-go/proto/v1"
	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"google.golang.org/protobuf/types/known/structpb"
	corev1 "k8s.io/api/core/v1"

	backupv1 "github.com/storeplane/storeplane/apis/backup/v1"
	"github.com/storeplane/storeplane/functions/functionstest"
	"github.com/storeplane/storeplane/internal/instance"
)

func TestConnection(t *testing.T) {
	keys := func(size int, user, dbname string) map[string]string {
		hosts := []string{"orders-primary.team.svc:5432"}
		for i := range size {
			hosts = append(hosts, fmt.Sprintf("orders-postgresql-%d.orders-postgresql.team.svc:5432", i))
		}
		tail := "/" + dbname + "?sslmode=require&target_session_attrs=read-write"
		out := map[string]string{
			"username": user, "password": "PASSWORD", "dbname": dbname, "port": "5432", "host": "orders-primary.team.svc", "ca.crt": "CA",
			"uri":            "postgresql://" + user + ":PASSWORD@" + hosts[0] + tail,
			"multi-host-uri": "postgresql://" + user + ":PASSWORD@" + strings.Join(hosts, ",") + tail,
			"verified-uri":   "postgresql://" + user + ":PASSWORD@" + hosts[0] + "/" + dbname + "?sslmode=verify-full&sslrootcert=/etc/storeplane/orders/ca.crt&target_session_attrs=read-write",
			"jdbc-uri":       "jdbc:postgresql://" + hosts[0] + "/" + dbname + "?user=" + user + "&password=PASSWORD&sslmode=require&targetServerType=primary",
		}
		if size > 1 {
			out["ro-host"] = "orders-replica.team.svc"
		}
		return out
	}
	cases := map[string]struct {
		reason string
		spec   string
		want   map[string]map[string]string
	}{
		"One":     {reason: "One server has no host to read only from.", spec: functionstest.OneServer, want: map[string]map[string]string{"connection": keys(1, "app", "app")}},
		"Replica": {reason: "Several have.", spec: functionstest.Production, want: map[string]map[string]string{"connection": keys(3, "app", "app")}},
		"Users": {
			reason: "A user who owns one database comes to it, others to that of all.",
			spec: `{size: 1, version: '17', users: [{name: shop_owner}, {name: reader}, {name: of_two}],
  databases: [{name: shop, owner: shop_owner}, {name: one, owner: of_two}, {name: two, owner: of_two}, {name: spare}]}`,
			want: map[string]map[string]string{
				"connection": keys(1, "app", "app"), "user-shop-owner": keys(1, "shop_owner", "shop"), "user-reader": keys(1, "reader", "app"), "user-of-two": keys(1, "of_two", "app"),
			},
		},
		"UserReplica": {
			reason: "Every user may read from replicas.", spec: "{size: 2, version: '17', users: [{name: reader}]}",
			want: map[string]map[string]string{"connection": keys(2, "app", "app"), "user-reader": keys(2, "reader", "app")},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			c := simulate(t, tc.spec)
			c.Settle()
			got := map[string]map[string]string{}
			for _, n := range c.ComponentNames() {
				if n != "connection" && !strings.HasPrefix(n, "user-") {
					continue
				}
				s := functionstest.As[corev1.Secret](t, c.Observed[n])
				if s.Name != "orders-"+n {
					t.Errorf("want Secret orders-%s, got %s", n, s.Name)
				}
				got[n] = map[string]string{}
				for k, v := range s.Data {
					got[n][k] = strings.NewReplacer(string(s.Data["password"]), "PASSWORD", c.SecretValue("ca", "ca.crt"), "CA").Replace(string(v))
				}
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("%s\n-want, +got:\n%s", tc.reason, diff)
			}
		})
	}
}

// TestDesired: the instance managers are to create these users and databases, with this size and
// storage.
func TestDesired(t *testing.T) {
	app := instance.Database{Name: "app", Owner: "app"}
	cases := map[string]struct {
		reason string
		spec   string
		want   instance.Desired
	}{
		"One": {
			reason: "Every cluster has a user and a database.", spec: functionstest.OneServer,
			want: instance.Desired{Protocol: 1, Claim: "orders", Size: 1, Storage: "10Gi", Users: []string{"app"}, Databases: []instance.Database{app}},
		},
		"Production": {
			reason: "Production waits for a standby.", spec: functionstest.Production,
			want: instance.Desired{Protocol: 1, Claim: "orders", Size: 3, Synchronous: true, Storage: "20Gi", Users: []string{"app"}, Databases: []instance.Database{app},
				Backup:     &instance.Backup{Destination: backupv1.Destination{Type: "volume", Bucket: "data-orders-repository-0"}},
				Repository: &instance.Volume{Claim: "data-orders-repository-0", Storage: "100Gi"},
			},
		},
		"Hibernated": {
			reason: "Who sleeps keeps his size.", spec: "{size: 3, version: '17', hibernated: true}",
			want: instance.Desired{Protocol: 1, Claim: "orders", Size: 3, Hibernated: true, Storage: "10Gi", Users: []string{"app"}, Databases: []instance.Database{app}},
		},
		"Users": {
			reason: "The claim's come after, in its order, and a database without an owner is app's.",
			spec:   "{size: 1, version: '17', parameters: {work_mem: 4MB}, users: [{name: z}, {name: a}], databases: [{name: shop, owner: z, extensions: [pg_trgm, hstore]}, {name: other}]}",
			want: instance.Desired{Protocol: 1,
				Claim: "orders", Size: 1, Storage: "10Gi", Users: []string{"app", "z", "a"}, Parameters: map[string]string{"work_mem": "4MB"},
				Databases: []instance.Database{app, {Name: "shop", Owner: "z", Extensions: []string{"pg_trgm", "hstore"}}, {Name: "other", Owner: "app"}},
			},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			c := simulate(t, tc.spec)
			c.Reconcile()
			if diff := cmp.Diff(tc.want, desiredOf(t, c), cmpopts.EquateEmpty()); diff != "" {
				t.Errorf("%s\n-want, +got:\n%s", tc.reason, diff)
			}
			for _, u := range desiredOf(t, c).Users {
				if c.SecretValue("credentials", instance.PasswordKey(u)) == "" {
					t.Errorf("%s\nthe managers find no password of %s", tc.reason, u)
				}
			}
		})
	}
}

const broughtPassword = "{size: 1, version: '17', users: [{name: reader, passwordSecretRef: {name: mine}}]}"

func TestBroughtPassword(t *testing.T) {
	const missing = "users: Secret mine, which holds the password of reader, does not exist or has no key password: create it"
	cases := map[string]struct {
		reason string
		secret map[string]string // nil: no Secret
		want   string
		err    string
	}{
		"Good":     {reason: "It is taken as it is.", secret: map[string]string{"password": "hunter2"}, want: "hunter2"},
		"Special":  {reason: "Whatever it holds.", secret: map[string]string{"password": "p@s:/?#%&= 'x\"ü"}, want: "p@s:/?#%&= 'x\"ü"},
		"Others":   {reason: "Other keys are not looked at.", secret: map[string]string{"password": "a", "username": "b"}, want: "a"},
		"NoSecret": {reason: "Without a Secret there is no password, and none is made up.", err: missing},
		"NoKey":    {reason: "Nor without its key.", secret: map[string]string{"pass": "a"}, err: missing},
		"Empty":    {reason: "No client can log in with an empty one.", secret: map[string]string{"password": ""}, err: missing},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			c := simulate(t, broughtPassword)
			if tc.secret != nil {
				c.Others = append(c.Others, functionstest.Secret(t, "mine", tc.secret))
			}
			rsp := c.Reconcile()
			if tc.err != "" {
				if r := rsp.GetResults(); len(r) != 1 || r[0].GetMessage() != tc.err || len(c.Observed) > 0 {
					t.Errorf("%s\nwant %q, got %v", tc.reason, tc.err, r)
				}
				return
			}
			if got := c.SecretValue("credentials", "user-reader"); got != tc.want {
				t.Errorf("%s\nThe managers: want %q, got %q", tc.reason, tc.want, got)
			}
			if got := c.SecretValue("user-reader", "password"); got != tc.want {
				t.Errorf("%s\nThe application: want %q, got %q", tc.reason, tc.want, got)
			}
			u, err := url.Parse(c.SecretValue("user-reader", "uri"))
			if err != nil {
				t.Fatalf("%s\nuri: %v", tc.reason, err)
			}
			if got, _ := u.User.Password(); got != tc.want || u.User.Username() != "reader" || u.Host != "orders-primary.team.svc:5432" {
				t.Errorf("%s\nuri: want password %q, got %q in %s", tc.reason, tc.want, got, u)
			}
			j, err := url.Parse(strings.TrimPrefix(c.SecretValue("user-reader", "jdbc-uri"), "jdbc:"))
			if err != nil {
				t.Fatalf("%s\njdbc-uri: %v", tc.reason, err)
			}
			if got := j.Query().Get("password"); got != tc.want {
				t.Errorf("%s\njdbc-uri: want password %q, got %q", tc.reason, tc.want, got)
			}
		})
	}
}

// TestBroughtPasswordChanges: the password follows the user's Secret, and everything stays the same
// if that is lost.
func TestBroughtPasswordChanges(t *testing.T) {
	c := simulate(t, broughtPassword)
	c.Others = []*structpb.Struct{functionstest.Secret(t, "mine", map[string]string{"password": "one"})}
	c.Settle()
	c.Others = []*structpb.Struct{functionstest.Secret(t, "mine", map[string]string{"password": "two"})}
	c.Reconcile()
	if got := c.SecretValue("credentials", "user-reader") + " " + c.SecretValue("user-reader", "password"); got != "two two" {
		t.Errorf("want the new password in both Secrets, got %s", got)
	}
	c.Settle()

	before := c.ComponentNames()
	c.Others = nil
	rsp := c.Reconcile()
	if r := rsp.GetResults(); len(r) != 1 || r[0].GetSeverity() != fnv1.Severity_SEVERITY_FATAL {
		t.Errorf("want a fatal result, got %v", r)
	}
	if diff := cmp.Diff(before, c.ComponentNames()); diff != "" || c.SecretValue("user-reader", "password") != "two" {
		t.Errorf("want all as it was: -before, +after:\n%s", diff)
	}
	if rsp.GetRequirements().GetResources()["password-reader"] == nil {
		t.Errorf("the Secret is asked for still, so that its return is noticed")
	}
}

// TestUserGoes: the Secret of a removed user is deleted, and no other one.
func TestUserGoes(t *testing.T) {
	c := simulate(t, "{size: 1, version: '17', users: [{name: reader}, {name: writer}]}")
	c.Settle()
	writer := c.SecretValue("user-writer", "password")
	c.Edit([]any{map[string]any{"name": "writer"}}, "users")
	c.Settle()
	if c.Observed["user-reader"] != nil || c.SecretValue("credentials", "user-reader") != "" {
		t.Errorf("what was the reader's is gone, got %v", c.ComponentNames())
	}
	if c.SecretValue("user-writer", "password") != writer || c.SecretValue("credentials", "user-writer") != writer {
		t.Errorf("what is the writer's stays")
	}
}
