package databasecluster_test

import (
	"encoding/base64"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"sigs.k8s.io/yaml"

	"github.com/storeplane/storeplane/functions/functionstest"
	"github.com/storeplane/storeplane/internal/instance"
)

// drawn returns all passwords of a claim, by Secret and key.
func drawn(c *crossplane) map[string]string {
	out := map[string]string{}
	for _, n := range c.ComponentNames() {
		if functionstest.Get(c.Observed[n], "kind").GetStringValue() != "Secret" {
			continue
		}
		for k := range functionstest.Get(c.Observed[n], "data").GetStructValue().GetFields() {
			if k == "password" || strings.HasSuffix(k, "-password") || strings.HasPrefix(k, "user-") {
				out[n+"/"+k] = c.SecretValue(n, k)
			}
		}
	}
	return out
}

func TestPasswords(t *testing.T) {
	spec := strings.Replace(functionstest.Production, "{", "{users: [{name: reader}], ", 1)
	c := simulate(t, spec)
	c.Settle()
	passwords := drawn(c)
	keys := []string{
		"connection/password", "credentials/replication-password", "credentials/restapi-password", "credentials/rewind-password", "credentials/superuser-password",
		"credentials/user-app", "credentials/user-reader", "user-reader/password",
	}
	if diff := cmp.Diff(keys, slices.Sorted(maps.Keys(passwords))); diff != "" {
		t.Errorf("-want, +got:\n%s", diff)
	}
	for k, v := range passwords {
		if len(v) != 32 {
			t.Errorf("%s: want 32 characters, got %d", k, len(v))
		}
	}
	if n := len(slices.Compact(slices.Sorted(maps.Values(passwords)))); n != 6 {
		t.Errorf("want six different passwords, got %d", n)
	}
	for application, servers := range map[string]string{"connection/password": "credentials/user-app", "user-reader/password": "credentials/user-reader"} {
		if passwords[application] != passwords[servers] {
			t.Errorf("%s is not %s", application, servers)
		}
	}

	// They stay the same through all changes.
	for _, change := range []func(){
		func() {}, func() { c.Edit(4, "size") }, func() { c.Edit("17.5", "version") }, func() { c.Edit(map[string]any{"work_mem": "1MB"}, "parameters") },
		func() { c.Edit([]any{map[string]any{"name": "shop", "owner": "reader"}}, "databases") }, func() { c.Edit(true, "hibernated") }, func() { c.Edit(false, "hibernated") },
	} {
		change()
		c.Settle()
		if diff := cmp.Diff(passwords, drawn(c)); diff != "" {
			t.Errorf("-before, +after:\n%s", diff)
		}
	}

	// Another claim has other passwords.
	other := simulate(t, functionstest.Production)
	other.Settle()
	for k, v := range drawn(other) {
		if v == passwords[k] {
			t.Errorf("two claims share %s", k)
		}
	}
}

// TestSetPassword: an administrator may change a password in the Secret from which it is read.
func TestSetPassword(t *testing.T) {
	c := simulate(t, functionstest.Production)
	c.Settle()
	functionstest.Set(c.Observed["connection"], base64.StdEncoding.EncodeToString([]byte("changed")), "data", "password")
	c.Settle()
	if c.SecretValue("credentials", "user-app") != "changed" || c.SecretValue("connection", "password") != "changed" || !strings.Contains(c.SecretValue("connection", "uri"), ":changed@") {
		t.Errorf("what is in the connection Secret holds, and goes on to the servers")
	}
}

// TestRotation: a key that is removed from its Secret is generated again and reaches the servers,
// and nothing else changes.
func TestRotation(t *testing.T) {
	cases := map[string]struct {
		reason string
		change func(*crossplane)
		want   []string
	}{
		"Nothing":     {reason: "What is there is read back.", change: func(*crossplane) {}},
		"App":         {reason: "The application's.", change: takeKey("connection", "password"), want: []string{"connection/password", "credentials/user-app"}},
		"AppEmpty":    {reason: "To empty it is to take it out.", change: func(c *crossplane) { functionstest.Set(c.Observed["connection"], "", "data", "password") }, want: []string{"connection/password", "credentials/user-app"}},
		"AppSecret":   {reason: "To delete the Secret too.", change: func(c *crossplane) { delete(c.Observed, "connection") }, want: []string{"connection/password", "credentials/user-app"}},
		"AppData":     {reason: "And to empty it.", change: func(c *crossplane) { delete(functionstest.Fields(c.Observed["connection"]), "data") }, want: []string{"connection/password", "credentials/user-app"}},
		"User":        {reason: "Another user's.", change: takeKey("user-reader", "password"), want: []string{"credentials/user-reader", "user-reader/password"}},
		"Superuser":   {reason: "The superuser's.", change: takeKey("credentials", "superuser-password"), want: []string{"credentials/superuser-password"}},
		"Replication": {reason: "The standbys'.", change: takeKey("credentials", "replication-password"), want: []string{"credentials/replication-password"}},
		"Rewind":      {reason: "That of rewinding.", change: takeKey("credentials", "rewind-password"), want: []string{"credentials/rewind-password"}},
		"RestAPI":     {reason: "Patroni's.", change: takeKey("credentials", "restapi-password"), want: []string{"credentials/restapi-password"}},
		"Copy":        {reason: "What the servers have of an application's is a copy.", change: takeKey("credentials", "user-app")},
		"File":        {reason: "So is their file.", change: takeKey("credentials", "credentials.yaml")},
		"Credentials": {
			reason: "Without the servers' Secret theirs are drawn again: the managers set them where they need none. Applications keep theirs.",
			change: func(c *crossplane) { delete(c.Observed, "credentials") },
			want:   []string{"credentials/replication-password", "credentials/restapi-password", "credentials/rewind-password", "credentials/superuser-password"},
		},
		"Two": {
			reason: "Two at once.",
			change: func(c *crossplane) {
				takeKey("connection", "password")(c)
				takeKey("credentials", "rewind-password")(c)
			},
			want: []string{"connection/password", "credentials/rewind-password", "credentials/user-app"},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			c := simulate(t, strings.Replace(functionstest.Production, "{", "{users: [{name: reader}], ", 1))
			c.Settle()
			before, pods := drawn(c), functionstest.Get(c.Observed["postgresql"], "spec")
			tc.change(c)
			c.Reconcile()
			var got []string
			after := drawn(c)
			for _, k := range slices.Sorted(maps.Keys(after)) {
				if after[k] != before[k] {
					got = append(got, k)
				}
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("%s\n-want, +got:\n%s", tc.reason, diff)
			}
			if after["connection/password"] != after["credentials/user-app"] || !strings.Contains(c.SecretValue("connection", "uri"), after["connection/password"]) {
				t.Errorf("%s\nan application and the servers have the same password", tc.reason)
			}
			if !strings.Contains(c.SecretValue("credentials", "credentials.yaml"), after["credentials/superuser-password"]) {
				t.Errorf("%s\nPatroni's file has the password as it is", tc.reason)
			}
			if diff := cmp.Diff(pods.AsInterface(), functionstest.Get(c.Observed["postgresql"], "spec").AsInterface()); diff != "" {
				t.Errorf("%s\nno pod is replaced for a password: -before, +after:\n%s", tc.reason, diff)
			}
			c.Settle()
			if diff := cmp.Diff(after, drawn(c)); diff != "" {
				t.Errorf("%s\nit is drawn once: -before, +after:\n%s", tc.reason, diff)
			}
		})
	}
}

func takeKey(component, key string) func(*crossplane) {
	return func(c *crossplane) { delete(functionstest.Fields(c.Observed[component], "data"), key) }
}

// TestRotationReady: the claim is only ready when the servers use the new password.
func TestRotationReady(t *testing.T) {
	const lining = "Waiting for postgresql (Reconciling databases, users and passwords)"
	for name, change := range map[string]func(*crossplane){"User": takeKey("connection", "password"), "Servers": takeKey("credentials", "superuser-password")} {
		t.Run(name, func(t *testing.T) {
			c := simulate(t, functionstest.Production)
			c.Settle()
			version := func() string {
				return functionstest.Get(c.Observed["credentials"], "metadata", "resourceVersion").GetStringValue()
			}
			old := version()
			change(c)
			// The pass that generates the password still observes the old Secret.
			for range 3 {
				rsp := c.Reconcile()
				if diff := cmp.Diff([]string{"instances"}, functionstest.Waiting(rsp)); diff != "" || c.Message() != lining {
					t.Errorf("want to wait for the managers, got %s, %q:\n%s", c.Phase(), c.Message(), diff)
				}
			}
			if version() == old {
				t.Fatalf("the Secret was to change")
			}
			c.ReportCluster(func(r *instance.Cluster) { r.Credentials = old })
			if c.Reconcile(); c.Message() != lining {
				t.Errorf("want to wait while they tell of the old Secret, got %s, %q", c.Phase(), c.Message())
			}
			c.ReportCluster(func(r *instance.Cluster) { r.Credentials = version() })
			if rsp := c.Reconcile(); len(functionstest.Waiting(rsp)) > 0 || c.Phase() != "Running" {
				t.Errorf("want Running once they tell of the new one, got %s, %q", c.Phase(), c.Message())
			}
		})
	}
}

// TestCredentialsFile: the file that Patroni reads is valid YAML for any password.
func TestCredentialsFile(t *testing.T) {
	for _, password := range []string{"plain", `"`, `\`, "a: b", "x'y", "a\nb", "#", "ünï", "😀", "\x07\x7f", "{{x}}", "%"} {
		c := simulate(t, functionstest.OneServer)
		c.Reconcile()
		for _, k := range []string{"superuser-password", "replication-password", "rewind-password", "restapi-password"} {
			functionstest.Set(c.Observed["credentials"], base64.StdEncoding.EncodeToString([]byte(password)), "data", k)
		}
		c.Reconcile()
		var got map[string]any
		if err := yaml.UnmarshalStrict([]byte(c.SecretValue("credentials", "credentials.yaml")), &got); err != nil {
			t.Fatalf("%q: %v", password, err)
		}
		with := func(user string) map[string]any {
			if user == "" {
				return map[string]any{"password": password}
			}
			return map[string]any{"username": user, "password": password}
		}
		want := map[string]any{
			"postgresql": map[string]any{"authentication": map[string]any{"superuser": with(""), "replication": with(""), "rewind": with("")}},
			"restapi":    map[string]any{"authentication": with("patroni")},
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%q: -want, +got:\n%s", password, diff)
		}
	}
}
