package databasecluster_test

import (
	"encoding/base64"
	"encoding/json"
	"strings"
	"testing"

	"google.golang.org/protobuf/types/known/structpb"
	"sigs.k8s.io/yaml"

	"github.com/storeplane/storeplane/functions/functionstest"
	"github.com/storeplane/storeplane/internal/backup"
	"github.com/storeplane/storeplane/internal/converge"
	"github.com/storeplane/storeplane/internal/instance"
)

// generating returns settings with this backup.encryption: Generated generates a key for each
// database, None does not.
func generating(encryption string) string {
	return "{backup: {type: s3, bucket: b, encryption: " + encryption + ", secretRef: {name: store, namespace: platform, shared: true}, grants: [{of: lost, to: [team]}]}}"
}

// inShared simulates a claim that is backed up to a store that namespaces share.
func inShared(t *testing.T, spec, encryption string) *crossplane {
	t.Helper()
	c := simulate(t, spec)
	c.InstallSettings(generating(encryption))
	c.Serve("backup")
	platform := functionstest.Secret(t, "store", map[string]string{"AWS_ACCESS_KEY_ID": "k"})
	functionstest.Fields(platform, "metadata")["namespace"] = structpb.NewStringValue("platform")
	c.Others = append(c.Others, platform)
	return c
}

// escrow returns the Secret that holds the copy of a key, without data if key is empty.
func escrow(namespace, name, key string) string {
	data := ""
	if key != "" {
		data = "key: " + base64.StdEncoding.EncodeToString([]byte(key))
	}
	return "{apiVersion: v1, kind: Secret, metadata: {namespace: " + backup.EscrowNamespace + ", name: " + namespace + "." + name + "}, data: {" + data + "}}"
}

const inStore = "{size: 1, version: '17', backup: {enabled: true}}"

// encryptedBy returns the name of the Secret with the key of a claim's backups, which must be the
// same in its Backup, its servers and its Jobs.
func encryptedBy(t *testing.T, c *crossplane) string {
	t.Helper()
	name := functionstest.Get(c.Observed["backup"], "spec", "forProvider", "encryption", "secretRef", "name").GetStringValue()
	desired := instance.Backup{}
	if err := json.Unmarshal([]byte(functionstest.Get(c.Observed["config"], "data", instance.BackupFile).GetStringValue()), &desired); err != nil {
		t.Fatal(err)
	}
	mounted := ""
	for _, v := range servers(t, c).Spec.Template.Spec.Volumes {
		if v.Name == "encryption" {
			mounted = v.Secret.SecretName
		}
	}
	if desired.Encrypted != (name != "") || mounted != name {
		t.Errorf("The Backup names Secret %q, the servers mount %q, and their configuration has encrypted: %t", name, mounted, desired.Encrypted)
	}
	return name
}

func TestOwnKey(t *testing.T) {
	cases := map[string]struct {
		reason, spec, encryption string
		others                   []string
		want, key                string
		escrowed                 bool
	}{
		"New":       {reason: "A new database has a key of its own.", spec: inStore, encryption: "Generated", want: "orders-backup-key", escrowed: true},
		"Default":   {reason: "So it has where the installation says nothing.", spec: inStore, encryption: "", want: "orders-backup-key", escrowed: true},
		"Kept":      {reason: "One that was lost with its namespace goes on with its key.", spec: inStore, encryption: "Generated", others: []string{escrow("team", "orders", "k1")}, want: "orders-backup-key", key: "k1", escrowed: true},
		"Plain":     {reason: "What is plain goes on so.", spec: inStore, encryption: "Generated", others: []string{escrow("team", "orders", "")}, escrowed: true},
		"Others":    {reason: "Another namespace's key is not this one's.", spec: inStore, encryption: "Generated", others: []string{escrow("bank", "orders", "k1")}, want: "orders-backup-key", escrowed: true},
		"None":      {reason: "An installation without has none.", spec: inStore, encryption: "None", others: []string{escrow("bank", "orders", "k1")}},
		"KeptNone":  {reason: "What began with a key goes on with it.", spec: inStore, encryption: "None", others: []string{escrow("team", "orders", "k1")}, want: "orders-backup-key", key: "k1", escrowed: true},
		"Brought":   {reason: "A key that the claim names is the claim's.", spec: "{size: 1, version: '17', backup: {enabled: true, encryption: {secretRef: {name: mine, key: k}}}}", encryption: "Generated", others: []string{"{apiVersion: v1, kind: Secret, metadata: {namespace: team, name: mine}, data: {k: azE=}}"}, want: "mine"},
		"Moved":     {reason: "It has it wherever it moves.", spec: "{size: 1, version: '17', backup: {enabled: true, destination: {type: s3, bucket: own}}}", encryption: "None", others: []string{escrow("team", "orders", "k1")}, want: "orders-backup-key", key: "k1", escrowed: true},
		"Restored":  {reason: "What goes on with plain backups of its name is plain.", spec: "{size: 1, version: '17', backup: {enabled: true}, restoreFrom: {destination: {type: s3, bucket: b}, name: orders}}", encryption: "Generated", escrowed: true},
		"Elsewhere": {reason: "A place of the claim's own is the claim's.", spec: "{size: 1, version: '17', backup: {enabled: true, destination: {type: s3, bucket: own}}}", encryption: "Generated"},
		"Volume":    {reason: "So is a volume.", spec: "{size: 1, version: '17', backup: {enabled: true, destination: {type: volume}}}", encryption: "Generated"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			c := inShared(t, tc.spec, tc.encryption)
			for _, o := range tc.others {
				c.Add(o)
			}
			c.Settle()
			if c.Phase() != "Running" {
				t.Fatalf("%s: %s", c.Phase(), c.Message())
			}
			if got := encryptedBy(t, c); got != tc.want {
				t.Errorf("%s\nencrypted by Secret %q, want %q", tc.reason, got, tc.want)
			}
			own := tc.want == "orders-backup-key"
			if has := c.Observed["backup-key"] != nil; has != own {
				t.Errorf("%s\nthere is a Secret for the key: %t", tc.reason, has)
			}
			if own {
				if got := c.SecretValue("backup-key", backup.EscrowKey); got == "" || tc.key != "" && got != tc.key {
					t.Errorf("%s\nthe key is %q, want %q", tc.reason, got, tc.key)
				}
			}
			if got := functionstest.Get(c.Observed["backup"], "metadata", "annotations", backup.EscrowAnnotation).GetStringValue() == "true"; got != tc.escrowed {
				t.Errorf("%s\nthe Backup asks for a copy: %t", tc.reason, got)
			}
		})
	}
}

// TestOwnKeyStays: a repository keeps the key with which it was created.
func TestOwnKeyStays(t *testing.T) {
	t.Run("TurnedOn", func(t *testing.T) {
		c := inShared(t, inStore, "None")
		c.Settle()
		before := servers(t, c).Spec.Template
		c.InstallSettings(generating("Generated"))
		c.Settle()
		if got := encryptedBy(t, c); got != "" || c.Observed["backup-key"] != nil {
			t.Errorf("A plain repository would be read with key %q", got)
		}
		if after := servers(t, c).Spec.Template; len(after.Spec.Volumes) != len(before.Spec.Volumes) {
			t.Error("The servers are replaced for nothing")
		}
		if functionstest.Get(c.Observed["backup"], "metadata", "annotations", backup.EscrowAnnotation).GetStringValue() == "" {
			t.Error("That the backups are plain is not written down: the claim could be created again")
		}
		c.SetStatus("backup", `{conditions: [{type: Ready, status: "True", reason: Available}, {type: Verified, status: "True", reason: Verified}]}`)
		c.Reconcile()
		const want = "True NotEncrypted Backups are not encrypted, since their repository has no key: to encrypt them, name another backup.destination, with backup.encryption"
		if got := c.ConditionLine("BackupHealthy"); got != want {
			t.Errorf("want %q, got %q", want, got)
		}
		c.InstallSettings(generating("None"))
		c.Reconcile()
		if got := c.ConditionLine("BackupHealthy"); got != "True Healthy" {
			t.Errorf("An installation that wants plain backups has them: got %q", got)
		}
	})
	t.Run("TurnedOff", func(t *testing.T) {
		c := inShared(t, inStore, "Generated")
		c.Settle()
		key := c.SecretValue("backup-key", backup.EscrowKey)
		c.InstallSettings(generating("None"))
		c.Settle()
		if got := c.SecretValue("backup-key", backup.EscrowKey); got != key || encryptedBy(t, c) != "orders-backup-key" {
			t.Errorf("An encrypted repository would be read with key %q, was written with %q", got, key)
		}
	})
	t.Run("SwitchedOff", func(t *testing.T) {
		c := inShared(t, inStore, "Generated")
		c.Settle()
		key := c.SecretValue("backup-key", backup.EscrowKey)
		c.Edit(false, "backup", "enabled")
		c.Settle()
		delete(c.Observed, "backup-key")
		c.Add(escrow("team", "orders", key))
		c.Edit(true, "backup", "enabled")
		c.Settle()
		if got := c.SecretValue("backup-key", backup.EscrowKey); got != key || encryptedBy(t, c) != "orders-backup-key" {
			t.Errorf("Backups that are turned on again go on with key %q, got %q", key, got)
		}
	})
	t.Run("DeletedByMistake", func(t *testing.T) {
		c := inShared(t, inStore, "Generated")
		c.Settle()
		key := c.SecretValue("backup-key", backup.EscrowKey)
		const want = "backups are encrypted with the key in Secret orders-backup-key, which does not exist, and neither does the copy of it: have the platform team create Secret team.orders in namespace storeplane-escrow with the key in key"
		delete(c.Observed, "backup-key")
		rsp := c.Reconcile()
		if _, message := c.Condition("Accepted"); message != want || !converge.IsFatal(rsp) {
			t.Fatalf("Another key reads nothing: got %q", message)
		}
		c.Add(escrow("team", "orders", key))
		c.Settle()
		if got := c.SecretValue("backup-key", backup.EscrowKey); got != key || c.Phase() != "Running" {
			t.Errorf("The copy has the key %q, got %q: %s", key, got, c.Message())
		}
	})
	t.Run("DeletedWithProvider", func(t *testing.T) {
		c := inShared(t, inStore, "Generated")
		c.Settle()
		key := c.SecretValue("backup-key", backup.EscrowKey)
		c.Schemas = nil
		delete(c.Observed, "backup")
		delete(c.Observed, "backup-key")
		if rsp := c.Reconcile(); !converge.IsFatal(rsp) {
			t.Fatal("Servers that were given a key go on without it")
		}
		c.Add(escrow("team", "orders", key))
		c.Settle()
		if got := c.SecretValue("backup-key", backup.EscrowKey); got != key {
			t.Errorf("The copy has the key %q, got %q: %s", key, got, c.Message())
		}
	})
}

// TestKeyChanges: an edit that would change the key of a repository is refused.
func TestKeyChanges(t *testing.T) {
	const mine = "encryption: {secretRef: {name: mine, key: k}}"
	const ways = ": name another backup.destination with it, or undo the change"
	const added = "backup.encryption cannot be added: the backups of this database are "
	cases := map[string]struct{ reason, before, after, then, encryption, want string }{
		"Added":     {reason: "The schema cannot compare with a backup that was not in the claim.", before: "{}", after: "{" + mine + "}", encryption: "None", want: added + "not encrypted" + ways},
		"OwnKey":    {reason: "What was drawn is a key too.", before: "{}", after: "{" + mine + "}", encryption: "Generated", want: added + "encrypted with the key in Secret orders-backup-key" + ways},
		"Removed":   {reason: "Nor when it goes.", before: "{" + mine + "}", after: "{}", encryption: "None", want: "backup.encryption cannot be removed: the backups of this database are encrypted with Secret mine" + ways},
		"Moved":     {reason: "Another place begins with another key.", before: "{}", after: "{destination: {type: s3, bucket: own}, " + mine + "}", encryption: "None"},
		"MovedBack": {reason: "In both directions.", before: "{destination: {type: s3, bucket: own}, " + mine + "}", after: "{}", encryption: "None"},
		"Same":      {reason: "The key that was drawn can be named.", before: "{}", after: "{encryption: {secretRef: {name: orders-backup-key, key: key}}}", encryption: "Generated"},
		"SameBack":  {reason: "And left to the claim's own again.", before: "{}", after: "{encryption: {secretRef: {name: orders-backup-key, key: key}}}", then: "{}", encryption: "Generated"},
		"Entry":     {reason: "Another entry of its Secret is another key.", before: "{}", after: "{encryption: {secretRef: {name: orders-backup-key, key: other}}}", encryption: "Generated", want: added + "encrypted with the key in Secret orders-backup-key" + ways},
		"Region":    {reason: "The same place by another region is the same.", before: "{destination: {type: s3, bucket: own}}", after: "{destination: {type: s3, bucket: own, region: eu}, " + mine + "}", encryption: "None", want: added + "not encrypted" + ways},
		"Renamed":   {reason: "A key of the claim's own may move to another Secret.", before: "{" + mine + "}", after: "{encryption: {secretRef: {name: ours, key: k}}}", encryption: "None"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			c := inShared(t, "{environment: production, size: 1, version: '17', backup: "+tc.before+"}", tc.encryption)
			secret := func(name, key string) {
				c.Add("{apiVersion: v1, kind: Secret, metadata: {namespace: team, name: " + name + "}, data: {" + key + ": azE=}}")
			}
			secret("mine", "k")
			secret("ours", "k")
			c.Settle()
			c.Add("{apiVersion: v1, kind: Secret, metadata: {namespace: team, name: orders-backup-key}, data: {key: azE=, other: azI=}}")
			if c.Phase() != "Running" {
				t.Fatalf("%s: %s", c.Phase(), c.Message())
			}
			edit := func(text string) {
				after := map[string]any{}
				if err := yaml.Unmarshal([]byte(text), &after); err != nil {
					t.Fatal(err)
				}
				c.Edit(after, "backup")
			}
			change := func() { edit(tc.after) }
			if tc.want != "" {
				if got := functionstest.RefusedWhileRunning(t, c, change); got != tc.want {
					t.Errorf("%s\nwant %q\ngot  %q", tc.reason, tc.want, got)
				}
				return
			}
			change()
			c.Settle()
			if tc.then != "" {
				edit(tc.then)
				c.Settle()
			}
			if c.Phase() != "Running" {
				t.Errorf("%s\n%s: %s", tc.reason, c.Phase(), c.Message())
			}
		})
	}
}

// TestOwnKeyFirst: no server runs before the copy of its key is stored.
func TestOwnKeyFirst(t *testing.T) {
	c := inShared(t, inStore, "Generated")
	c.Reconcile()
	key := c.SecretValue("backup-key", backup.EscrowKey)
	if c.Observed["backup"] != nil {
		t.Fatal("A copy of a key is asked for that may never be there")
	}
	c.Reconcile()
	if c.Observed["postgresql"] != nil || c.Observed["backup"] == nil || key == "" {
		t.Fatalf("A server runs before its key is kept: %v", c.ComponentNames())
	}
	// A pass that was interrupted here has stored no key, and nothing was encrypted with it.
	delete(c.Observed, "backup-key")
	if rsp := c.Reconcile(); converge.IsFatal(rsp) || c.SecretValue("backup-key", backup.EscrowKey) == "" {
		t.Fatalf("A claim whose key was never stored has no way out: %v", rsp.GetResults())
	}
	key = c.SecretValue("backup-key", backup.EscrowKey)
	c.SetStatus("backup", `{conditions: [{type: Escrowed, status: "False", reason: EscrowNotFound, observedGeneration: 1, message: Namespace storeplane-escrow does not exist}]}`)
	c.Reconcile()
	if c.Observed["postgresql"] != nil || !strings.Contains(c.Message(), "Namespace storeplane-escrow does not exist") {
		t.Fatalf("The claim does not say what it waits for: %s", c.Message())
	}
	c.SetStatus("backup", `{conditions: [{type: Escrowed, status: "True", reason: Kept, observedGeneration: 1}]}`)
	c.Reconcile()
	if c.Observed["postgresql"] == nil || c.SecretValue("backup-key", backup.EscrowKey) != key {
		t.Errorf("The servers do not start with the key that is kept: %s", c.Message())
	}
	c.Settle()
	c.SetStatus("backup", `{conditions: [{type: Escrowed, status: "False", reason: EscrowDiffers, observedGeneration: 1, message: another}]}`)
	c.Reconcile()
	if c.Phase() != "Running" {
		t.Errorf("A database that runs does not wait for its copy: %s %s", c.Phase(), c.Message())
	}
}

// TestOwnKeyNoProvider: without the provider nothing stores a copy of the key, so no server is
// created.
func TestOwnKeyNoProvider(t *testing.T) {
	c := inShared(t, inStore, "Generated")
	c.Schemas = nil
	c.Reconcile()
	c.Reconcile()
	const want = "backups are encrypted with a key of the database's own, of which provider-storeplane keeps a copy, and it is not installed: install it, name a key in backup.encryption, or have the platform team set backup.encryption: None in EnvironmentConfig storeplane"
	if c.Message() != want || c.Observed["postgresql"] != nil {
		t.Errorf("want %q, got %q", want, c.Message())
	}

	// Settings do not matter for a database that has a key already.
	c = inShared(t, inStore, "None")
	c.Schemas = nil
	c.Add(escrow("team", "orders", "k1"))
	c.Reconcile()
	c.Reconcile()
	const kept = "backups are encrypted with a key of the database's own, of which provider-storeplane keeps a copy, and it is not installed: install it, or name a key in backup.encryption"
	if c.Message() != kept || c.Observed["postgresql"] != nil {
		t.Errorf("want %q, got %q", kept, c.Message())
	}
}

// TestRestoreEscrow: backups of a namespace that is lost are restored with the copy of its key, by
// the namespaces to which the platform team has granted that.
func TestRestoreEscrow(t *testing.T) {
	cases := map[string]struct {
		reason, of string
		others     []string
		want       string
	}{
		"Lost":  {reason: "It was granted.", of: "lost", others: []string{escrow("lost", "sales", "k1")}, want: "k1"},
		"Own":   {reason: "It is the namespace's own.", of: "team", others: []string{escrow("team", "sales", "k2")}, want: "k2"},
		"Plain": {reason: "It was plain.", of: "lost", others: []string{escrow("lost", "sales", "")}},
		"None":  {reason: "It is from before there were copies.", of: "lost"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			c := inShared(t, "{size: 1, version: '17', restoreFrom: {destination: {type: s3, bucket: b}, namespace: "+tc.of+", name: sales}}", "Generated")
			for _, o := range tc.others {
				c.Add(o)
			}
			c.Reconcile()
			c.Reconcile()
			r := instance.Restore{}
			if err := json.Unmarshal([]byte(c.SecretValue("source", instance.RestoreFile)), &r); err != nil {
				t.Fatalf("%v: %s", err, c.Message())
			}
			key, _ := base64.StdEncoding.DecodeString(functionstest.Get(c.Observed["source"], "data", instance.RestoreKey).GetStringValue())
			if string(key) != tc.want || r.Encrypted != (tc.want != "") {
				t.Errorf("%s\nread with key %q, encrypted %t, want %q", tc.reason, key, r.Encrypted, tc.want)
			}
		})
	}
	t.Run("Identity", func(t *testing.T) {
		for _, settings := range []string{"{backup: {type: s3, bucket: b, grants: [{of: lost, to: [team]}]}}", "{backup: {type: s3, bucket: b, secretRef: {name: own}, grants: [{of: lost, to: [team]}]}}"} {
			for of, want := range map[string]string{"lost": "k1", "bank": ""} {
				c := inShared(t, "{size: 1, version: '17', restoreFrom: {destination: {type: s3, bucket: b, secretRef: {name: own}}, namespace: "+of+", name: sales}}", "Generated")
				c.InstallSettings(settings)
				c.Others = append(c.Others, functionstest.Secret(t, "own", map[string]string{"AWS_ACCESS_KEY_ID": "k"}))
				c.Add(escrow("lost", "sales", "k1"))
				c.Add(escrow("bank", "sales", "k2"))
				c.Reconcile()
				c.Reconcile()
				key, _ := base64.StdEncoding.DecodeString(functionstest.Get(c.Observed["source"], "data", instance.RestoreKey).GetStringValue())
				if c.Observed["source"] == nil || string(key) != want {
					t.Errorf("with settings %s backups of %s are read with key %q, want %q: %s", settings, of, key, want, c.Message())
				}
			}
		}
	})
	t.Run("OwnCredentials", func(t *testing.T) {
		forged := functionstest.Secret(t, "forged", map[string]string{"AWS_ACCESS_KEY_ID": "k"})
		functionstest.Fields(forged, "metadata")["annotations"] = structpb.NewStructValue(&structpb.Struct{Fields: map[string]*structpb.Value{
			backup.BoundsAnnotation: structpb.NewStringValue(`{"of":"x","bucket":"mine","reads":["bank"]}`),
		}})
		for of, want := range map[string]string{"team, name: sales": "k2", "bank, name: sales": "", "lost, name: sales": "k3"} {
			for _, secret := range []string{"mine", "forged"} {
				if secret == "forged" && !strings.HasPrefix(of, "bank") {
					continue
				}
				c := inShared(t, "{size: 1, version: '17', restoreFrom: {destination: {type: s3, bucket: mine, secretRef: {name: "+secret+"}}, namespace: "+of+"}}", "Generated")
				c.Others = append(c.Others, functionstest.Secret(t, "mine", map[string]string{"AWS_ACCESS_KEY_ID": "k"}))
				c.Add(escrow("team", "sales", "k2"))
				c.Others = append(c.Others, forged)
				c.Add(escrow("bank", "sales", "k1"))
				c.Add(escrow("lost", "sales", "k3"))
				c.Reconcile()
				c.Reconcile()
				key, _ := base64.StdEncoding.DecodeString(functionstest.Get(c.Observed["source"], "data", instance.RestoreKey).GetStringValue())
				if c.Observed["source"] == nil || string(key) != want {
					t.Errorf("backups of %s are read with Secret %s and key %q, want %q: %s", of, secret, key, want, c.Message())
				}
			}
		}
	})
	t.Run("NotGranted", func(t *testing.T) {
		c := inShared(t, "{size: 1, version: '17', restoreFrom: {destination: {type: s3, bucket: b}, namespace: bank, name: sales}}", "Generated")
		c.Add(escrow("bank", "sales", "k1"))
		c.Reconcile()
		if c.Observed["source"] != nil || !strings.Contains(c.Message(), "backups of namespace bank may not be restored here") {
			t.Errorf("The key of another namespace's backups was given away: %s", c.Message())
		}
	})
}
