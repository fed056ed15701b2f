package functions_test

import (
	"testing"

	fnv1 "github.com/crossplane/function-sdk-go/proto/v1"
	"github.com/google/go-cmp/cmp"
	"google.golang.org/protobuf/types/known/structpb"
)

// TestSettingsOfAnOlderRelease: settings that an older release took, and this one does
// not, hold up no claim that was composed with them. What they meant stays: one Secret
// for all.
func TestSettingsOfAnOlderRelease(t *testing.T) {
	const (
		now  = "{backup: {type: s3, bucket: b, secretRef: {name: store, namespace: platform, shared: true}}}"
		old  = "{backup: {type: s3, bucket: b, secretRef: {name: store, namespace: platform}}}"
		had  = `{"backup":{"type":"s3","bucket":"b","secretRef":{"name":"store","namespace":"platform"}}}`
		want = "False SettingsInvalid cannot use EnvironmentConfig storeplane: data.backup.secretRef needs either perNamespace: true, for a Secret store-<namespace> for the claims of each namespace, or shared: true, for one that lets whoever may read Secrets in one of them read and delete the backups of all. The claim goes on with the settings that it had"
	)
	store := secretObject(t, "store", map[string]string{"AWS_ACCESS_KEY_ID": "k"})
	fields(store, "metadata")["namespace"] = structpb.NewStringValue("platform")
	cases := map[string]struct{ reason, claim, lost string }{
		"WebApp":            {reason: "A WebApp has no backups at all.", claim: bigApp, lost: "web"},
		"DatabaseCluster":   {reason: "Backups go where they went.", claim: databaseCluster(production), lost: "backup-store"},
		"EcommercePlatform": {reason: "The claims of a shop go on, too.", claim: ecommercePlatform(bigShop), lost: "database"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			c := newCluster(t, tc.claim)
			watched(c)
			c.others = append(c.others, store)
			c.install(now)
			c.settle()
			components := c.names()
			set(c.claim, had, "status", "acceptedSettings")
			c.install(old)
			if c.observed[tc.lost] == nil {
				t.Fatalf("no component %s among %v", tc.lost, components)
			}
			delete(c.observed, tc.lost)

			rsp := c.reconcile()
			for _, r := range rsp.GetResults() {
				if r.GetSeverity() == fnv1.Severity_SEVERITY_FATAL {
					t.Fatalf("%s\nwant the claim composed, got %s", tc.reason, r.GetMessage())
				}
			}
			c.settle()
			if diff := cmp.Diff(components, c.names()); diff != "" {
				t.Errorf("%s\nwhat was lost is created again: -want, +got:\n%s", tc.reason, diff)
			}
			if got := c.verdict("Accepted"); got != want {
				t.Errorf("%s\nwant %q, got %q", tc.reason, want, got)
			}
			if got := get(c.claim, "status", "acceptedSettings").GetStringValue(); got != had {
				t.Errorf("%s\nwant %s remembered, got %s", tc.reason, had, got)
			}
			if c.observed["backup-store"] != nil && c.value("backup-store", "AWS_ACCESS_KEY_ID") != "k" {
				t.Errorf("%s\nwant the credentials of the one Secret for all, got %v", tc.reason, c.observed["backup-store"])
			}
		})
	}
}
