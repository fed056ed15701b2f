package functions_test

import (
	"testing"

	fnv1 "github.com/crossplane/function-sdk-go/proto/v1"
	"github.com/google/go-cmp/cmp"
	"google.golang.org/protobuf/types/known/structpb"

	"github.com/storeplane/storeplane/functions/functionstest"
)

// TestSettingsOfAnOlderRelease: settings that an older release accepted and this one does not
// accept do not block a claim that was composed with them. They keep their meaning: one Secret for
// all namespaces.
func TestSettingsOfAnOlderRelease(t *testing.T) {
	const (
		now  = "{backup: {type: s3, bucket: b, secretRef: {name: store, namespace: platform, shared: true}}}"
		old  = "{backup: {type: s3, bucket: b, secretRef: {name: store, namespace: platform}}}"
		had  = `{"backup":{"type":"s3","bucket":"b","secretRef":{"name":"store","namespace":"platform"}}}`
		want = "False SettingsInvalid cannot use EnvironmentConfig storeplane: data.backup.secretRef needs either perNamespace: true, for a Secret store-<namespace> for the claims of each namespace, or shared: true, for one that lets a user who may read Secrets in one of them read and delete the backups of all. The claim keeps the settings that it had"
	)
	store := functionstest.Secret(t, "store", map[string]string{"AWS_ACCESS_KEY_ID": "k"})
	functionstest.Fields(store, "metadata")["namespace"] = structpb.NewStringValue("platform")
	cases := map[string]struct{ reason, claim, lost string }{
		"WebApp":            {reason: "A WebApp has no backups at all.", claim: functionstest.BigApp, lost: "web"},
		"DatabaseCluster":   {reason: "Backups go where they went.", claim: functionstest.DatabaseCluster(functionstest.Production), lost: "backup-store"},
		"EcommercePlatform": {reason: "The claims of a shop go on, too.", claim: functionstest.EcommercePlatform(functionstest.BigShop), lost: "database"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			c := functionstest.New(t, tc.claim)
			c.Serve("backup")
			c.Others = append(c.Others, store)
			c.InstallSettings(now)
			c.Settle()
			components := c.ComponentNames()
			functionstest.Set(c.Claim, had, "status", "acceptedSettings")
			c.InstallSettings(old)
			if c.Observed[tc.lost] == nil {
				t.Fatalf("no component %s among %v", tc.lost, components)
			}
			delete(c.Observed, tc.lost)

			rsp := c.Reconcile()
			for _, r := range rsp.GetResults() {
				if r.GetSeverity() == fnv1.Severity_SEVERITY_FATAL {
					t.Fatalf("%s\nwant the claim composed, got %s", tc.reason, r.GetMessage())
				}
			}
			c.Settle()
			if diff := cmp.Diff(components, c.ComponentNames()); diff != "" {
				t.Errorf("%s\nwhat was lost is created again: -want, +got:\n%s", tc.reason, diff)
			}
			if got := c.ConditionLine("Accepted"); got != want {
				t.Errorf("%s\nwant %q, got %q", tc.reason, want, got)
			}
			if got := functionstest.Get(c.Claim, "status", "acceptedSettings").GetStringValue(); got != had {
				t.Errorf("%s\nwant %s remembered, got %s", tc.reason, had, got)
			}
			if c.Observed["backup-store"] != nil && c.SecretValue("backup-store", "AWS_ACCESS_KEY_ID") != "k" {
				t.Errorf("%s\nwant the credentials of the one Secret for all, got %v", tc.reason, c.Observed["backup-store"])
			}
		})
	}
}
