package databasecluster_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	networkingv1 "k8s.io/api/networking/v1"

	backupv1 "github.com/storeplane/storeplane/apis/backup/v1"
	"github.com/storeplane/storeplane/functions/functionstest"
	"github.com/storeplane/storeplane/internal/backup"
	"github.com/storeplane/storeplane/internal/instance"
)

const dumped = `{engine: mysql, version: '9.7', size: 1, users: [{name: reports}], databases: [{name: reports, owner: reports}],
  backup: {enabled: true, schedule: '0 4 * * *', retention: 4w,
  destination: {type: s3, bucket: b, prefix: team, endpoint: 'https://store.example.com', secretRef: {name: store}},
  encryption: {secretRef: {name: key, key: passphrase}}}}`

// TestDumps: a database of an engine without an archive has a Backup that dumps all of it, from the first
// moment on, as a user of its own.
func TestDumps(t *testing.T) {
	c := simulate(t, dumped)
	functionstest.Set(c.Claim, "2025-06-01T00:00:00Z", "metadata", "creationTimestamp")
	c.Serve("backup")
	storeSecrets(t, c)
	c.Reconcile()
	if c.Observed["backup"] != nil {
		t.Error("there is a Backup before there is a database")
	}
	c.Settle()
	want := backupv1.BackupParameters{
		Source:      backupv1.Database{Type: "mysql", Connection: backupv1.Connection{DatabaseClusterRef: &backupv1.LocalReference{Name: "orders"}}},
		Destination: backupv1.Destination{Type: "s3", Bucket: "b", Prefix: "team", Endpoint: "https://store.example.com", SecretRef: &backupv1.LocalReference{Name: "store"}},
		Method:      backupv1.Logical, Schedule: "0 4 * * *", Retention: "4w", DeletionPolicy: backupv1.Orphan,
		Encryption: &backupv1.Encryption{SecretRef: backupv1.SecretKey{Name: "key", Key: "passphrase"}},
	}
	b := functionstest.As[backupv1.Backup](t, c.Observed["backup"])
	if diff := cmp.Diff(want, b.Spec.ForProvider); diff != "" || b.Name != "orders-backup" {
		t.Errorf("Backup %s: -want, +got:\n%s", b.Name, diff)
	}
	runs := func(when string, want map[string]string) {
		t.Helper()
		c.Reconcile()
		c.Reconcile()
		b := functionstest.As[backupv1.Backup](t, c.Observed["backup"])
		if diff := cmp.Diff(want, ownAnnotations(b.Annotations)); diff != "" {
			t.Errorf("%s: -want, +got:\n%s", when, diff)
		}
	}
	first := map[string]string{backupv1.RunNowAnnotation: "first-7073df4f"}
	runs("before the store was listed", map[string]string{})
	c.SetStatus("backup", `{atProvider: {catalogTime: "2026-01-01T00:00:00Z", count: 2, lastSuccessfulTime: "2026-01-01T00:00:00Z"}}`)
	runs("with backups of its own", map[string]string{})
	c.SetStatus("backup", `{conditions: [{type: Ready, status: "True", reason: Available}], atProvider: {catalogTime: "2026-01-01T00:00:00Z", count: 2, lastSuccessfulTime: "2025-01-01T00:00:00Z"}}`)
	runs("where an earlier claim of the name has backups", first)
	if got := c.ConditionLine("BackupHealthy"); got != "False Pending No backup has been made yet" {
		t.Errorf("with backups of an earlier claim: BackupHealthy is %s", got)
	}
	c.SetStatus("backup", `{atProvider: {catalogTime: "2026-01-01T00:00:00Z"}}`)
	runs("in an empty store", first)
	for _, n := range []string{"backup-full", "backup-tls", "repository", "backup-networkpolicy"} {
		if c.Observed[n] != nil {
			t.Errorf("there is %s, which only physical backups need", n)
		}
	}

	values := map[string]string{}
	for key := range functionstest.Fields(c.Observed["dumper"], "data") {
		values[key] = "set"
	}
	if diff := cmp.Diff(map[string]string{"username": "set", "password": "set", "host": "set", "port": "set", "uri": "set", "ca.crt": "set"}, values); diff != "" {
		t.Errorf("the Secret of backups: -want, +got:\n%s", diff)
	}
	if uri := c.SecretValue("dumper", "uri"); !strings.HasPrefix(uri, "mysql://storeplane_backup:") || !strings.Contains(uri, "@orders-primary.team.svc:3306/?") {
		t.Errorf("it leads to %s", uri)
	}

	c.SetStatus("backup", `{conditions: [{type: Ready, status: "True", reason: Available}, {type: Verified, status: "True", reason: Verified}], atProvider: {lastSuccessfulTime: "2026-01-01T00:00:00Z"}}`)
	c.Reconcile()
	if got := c.ConditionLine("BackupHealthy"); got != "True Healthy" {
		t.Errorf("with a backup: BackupHealthy is %s", got)
	}
	if got := c.ConditionLine("ArchivingHealthy"); got != "True Disabled Dumps can be restored, and no time between them, for which backup.method would have to be physical" {
		t.Errorf("ArchivingHealthy is %s", got)
	}
	runs("after the first backup", map[string]string{})
	c.SetStatus("backup", `{conditions: [{type: Ready, status: "False", reason: Failed, message: It failed}], atProvider: {lastFailure: {time: "2026-01-01T00:00:00Z", reason: StoreDenied, message: "cannot make a backup: 403"}}}`)
	c.Reconcile()
	if got := c.ConditionLine("BackupHealthy"); got != "False BackupFailed cannot make a backup: 403" {
		t.Errorf("after a failure: BackupHealthy is %s", got)
	}
	c.Edit(true, "hibernated")
	c.Reconcile()
	c.SetStatus("backup", `{atProvider: {catalogTime: "2026-01-01T00:00:00Z"}}`)
	runs("while the database sleeps", map[string]string{})
	if b = functionstest.As[backupv1.Backup](t, c.Observed["backup"]); !b.Spec.ForProvider.Suspend {
		t.Error("a sleeping database is backed up")
	}
}

// ownAnnotations are the annotations of Backups, without Crossplane's.
func ownAnnotations(all map[string]string) map[string]string {
	out := map[string]string{}
	for _, key := range []string{backupv1.RunNowAnnotation, backup.EscrowAnnotation} {
		if v, ok := all[key]; ok {
			out[key] = v
		}
	}
	return out
}

// TestDumpsPlace: where dumps are stored, and what is said where there is no place for them.
func TestDumpsPlace(t *testing.T) {
	const unplaced = "backup.destination is needed with engine mysql, and its bucket with type volume: name a store or a volume claim, or have the platform team set a store in EnvironmentConfig storeplane"
	const (
		prod    = "environment: production, "
		nowhere = "False NoDestination There are no backups, since there is no place for them: set backup.destination or the installation's, or backup.enabled to false"
		s3      = "{backup: {type: s3, bucket: b, secretRef: {name: store, namespace: platform, shared: true}}}"
	)
	cases := map[string]struct {
		reason, backup, environment, settings string
		noProvider                            bool
		want                                  string // BackupHealthy, or why the claim is refused
		archiving                             string // ArchivingHealthy, if it is checked
		bucket                                string
		escrowed                              bool
	}{
		"Development": {reason: "Development has none.", want: "True Disabled No backups are asked for"},
		"Off":         {reason: "A claim may do without.", environment: prod, backup: "{enabled: false}", want: "True Disabled No backups are asked for"},
		"Nowhere":     {reason: "Nor is there any where there is no place.", environment: prod, want: nowhere},
		"NowhereAll":  {reason: "Nor is anything archived.", environment: prod, backup: "{method: physical}", want: nowhere, archiving: nowhere},
		"NowhereSome": {reason: "Without an archive none is missing.", environment: prod, want: nowhere, archiving: "True Disabled Nothing is archived between dumps, for which backup.method would have to be physical"},
		"Incremental": {reason: "What an engine does not have is refused without a place, too.", environment: prod, backup: "{incrementalSchedule: '0 * * * *'}", want: "backup.incrementalSchedule is not available with engine mysql: each backup is a whole one: leave it out, and set backup.method to physical to archive what is written between them"},
		"Size":        {reason: "So is the size of a volume that is not created.", environment: prod, backup: "{storageSize: 100Gi}", want: "backup.storageSize is not available with engine mysql: name a volume claim in backup.destination.bucket"},
		"Asked":       {reason: "To ask for one without a place is a mistake.", backup: "{enabled: true}", want: unplaced},
		"NoVolume":    {reason: "No volume is created.", environment: prod, backup: "{destination: {type: volume}}", want: nowhere},
		"AskedVolume": {reason: "Nor for a claim that asks for backups.", backup: "{enabled: true, destination: {type: volume}}", want: unplaced},
		"Volume":      {reason: "One that exists is a place.", backup: "{enabled: true, destination: {type: volume, bucket: disk}}", bucket: "disk", want: "False Pending No backup has been made yet"},
		"Platforms":   {reason: "The platform's store is one too, and encrypted.", environment: prod, settings: s3, bucket: "b", escrowed: true, want: "False Pending No backup has been made yet"},
		"Own":         {reason: "Another store is the claim's business.", environment: prod, settings: s3, backup: "{destination: {type: s3, bucket: mine}}", bucket: "mine", want: "False Pending No backup has been made yet"},
		"NoProvider":  {reason: "The provider makes them.", environment: prod, settings: s3, noProvider: true, want: "False BackupProviderNotInstalled There are no backups: provider-storeplane, which makes them, is not installed"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			spec := "{engine: mysql, version: '9.7', " + tc.environment + "size: 1"
			if tc.backup != "" {
				spec += ", backup: " + tc.backup
			}
			c := simulate(t, spec+"}")
			if tc.settings != "" {
				c.InstallSettings(tc.settings)
			}
			platform := functionstest.Secret(t, "store", map[string]string{"AWS_ACCESS_KEY_ID": "k"})
			functionstest.Set(platform, "platform", "metadata", "namespace")
			c.Others = append(c.Others, platform)
			if !tc.noProvider {
				c.Serve("backup")
			}
			if strings.HasPrefix(tc.want, "backup.") {
				if got := functionstest.Refused(t, functionstest.DatabaseCluster(spec+"}")); got != tc.want {
					t.Errorf("%s\nwant %q, got %q", tc.reason, tc.want, got)
				}
				return
			}
			c.Settle()
			if got := c.ConditionLine("BackupHealthy"); got != tc.want {
				t.Errorf("%s\nwant %q, got %q", tc.reason, tc.want, got)
			}
			if got := c.ConditionLine("ArchivingHealthy"); tc.archiving != "" && got != tc.archiving {
				t.Errorf("%s\nwant ArchivingHealthy %q, got %q", tc.reason, tc.archiving, got)
			}
			if got := functionstest.Get(c.Observed["backup"], "spec", "forProvider", "destination", "bucket").GetStringValue(); got != tc.bucket {
				t.Errorf("%s\nwant bucket %q, got %q", tc.reason, tc.bucket, got)
			}
			if got := functionstest.Get(c.Observed["backup"], "metadata", "annotations", backup.EscrowAnnotation).GetStringValue() == "true"; got != tc.escrowed {
				t.Errorf("%s\nwant a key: %t, got %t", tc.reason, tc.escrowed, got)
			}
		})
	}
}

// TestWorkersReach: pods of Backups and Restores reach a database that only some pods do.
func TestWorkersReach(t *testing.T) {
	for engine, spec := range map[string]string{"postgresql": "{size: 1, version: '17', clients: {app: shop}}", "mysql": "{engine: mysql, size: 1, version: '9.7', clients: {app: shop}}"} {
		c := simulate(t, spec)
		c.Settle()
		policy := functionstest.As[networkingv1.NetworkPolicy](t, c.Observed["networkpolicy"])
		admitted := map[string]bool{}
		for _, rule := range policy.Spec.Ingress {
			for _, from := range rule.From {
				for _, e := range from.PodSelector.MatchExpressions {
					admitted[e.Key+" "+string(e.Operator)] = true
				}
			}
		}
		want := map[string]bool{backupv1.BackupLabel + " Exists": true, backupv1.RestoreLabel + " Exists": true}
		if diff := cmp.Diff(want, admitted); diff != "" {
			t.Errorf("%s: -want, +got:\n%s", engine, diff)
		}
	}
}

// TestDumpsOfOldServers: nothing connects as a user that servers of an older release do not have, and what is
// there already stays.
func TestDumpsOfOldServers(t *testing.T) {
	c := simulate(t, dumped)
	c.Serve("backup")
	storeSecrets(t, c)
	for range 4 {
		c.Reconcile()
		if functionstest.Get(c.Observed["instances"], "data", instance.ClusterKey) != nil {
			c.ReportCluster(func(r *instance.Cluster) { r.Dumps = false })
		}
	}
	if c.Observed["backup"] != nil || c.Observed["dumper"] != nil {
		t.Error("backups connect as a user that no server has reported")
	}
	c.Settle()
	c.ReportCluster(func(r *instance.Cluster) { r.Dumps = false })
	if desired := c.Run().GetDesired().GetResources(); desired["backup"] == nil || desired["dumper"] == nil {
		t.Error("backups end with a server that does not report their user")
	}
	if c.Observed["backup"] == nil || c.Observed["dumper"] == nil {
		t.Error("there are no backups any more")
	}
	// The report is lost, and the Secret deleted.
	c.ReportCluster(func(r *instance.Cluster) { r.Dumps = false })
	delete(c.Observed, "dumper")
	desired := c.Run().GetDesired().GetResources()
	if desired["backup"] == nil || desired["dumper"] == nil {
		t.Error("the Secret of backups is not created again")
	}
}

// TestDumpsRefused: fields that mean nothing for dumps are refused where there are dumps.
func TestDumpsRefused(t *testing.T) {
	for field, want := range map[string]string{
		"incrementalSchedule: '@hourly'": "backup.incrementalSchedule is not available with engine mysql: each backup is a whole one: leave it out, and set backup.method to physical to archive what is written between them",
		"storageSize: 5Gi":               "backup.storageSize is not available with engine mysql: name a volume claim in backup.destination.bucket",
	} {
		for enabled, want := range map[string]string{"true": want, "false": ""} {
			claim := functionstest.DatabaseCluster("{engine: mysql, version: '9.7', size: 1, backup: {enabled: " + enabled + ", destination: {type: volume, bucket: disk}, " + field + "}}")
			if got := functionstest.Refused(t, claim); got != want {
				t.Errorf("%s with enabled %s: want %q, got %q", field, enabled, want, got)
			}
		}
	}
}

// TestPlainDumps: a condition reports that backups in the platform's store began without a key.
func TestPlainDumps(t *testing.T) {
	c := inShared(t, "{engine: mysql, version: '9.7', size: 1, backup: {enabled: true}}", "Generated")
	c.Settle()
	const status = `{conditions: [{type: Ready, status: "True", reason: Available}, {type: Verified, status: "True", reason: Verified}, {type: Escrowed, status: "True", reason: Kept, message: "MESSAGE"}], atProvider: {lastSuccessfulTime: "2026-01-01T00:00:00Z"}}`
	for message, want := range map[string]string{
		"":                      "True Healthy",
		"The backups are plain": "True NotEncrypted Backups are not encrypted, since their repository has no key: to encrypt them, name another backup.destination, with backup.encryption",
	} {
		c.SetStatus("backup", strings.Replace(status, "MESSAGE", message, 1))
		c.Reconcile()
		if got := c.ConditionLine("BackupHealthy"); got != want {
			t.Errorf("Escrowed says %q: want %q, got %q", message, want, got)
		}
	}
}
