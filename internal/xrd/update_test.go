package xrd_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/storeplane/storeplane/internal/xrd"
)

// schedule returns the pattern of cron expressions, which only the definition contains.
func schedule(t testing.TB) string {
	t.Helper()
	var invalid *xrd.InvalidError
	err := schemas.Validate(with(t, databaseCluster, set("spec.backup", map[string]any{"schedule": "x"})))
	if !errors.As(err, &invalid) {
		t.Fatalf("cannot learn the pattern of a schedule: %v", err)
	}
	_, after, _ := strings.Cut(invalid.Problems[0].Message, "should match '")
	return strings.TrimSuffix(after, "'")
}

func TestValidateUpdate(t *testing.T) {
	cases := map[string]struct {
		reason string
		old    *unstructured.Unstructured
		claim  *unstructured.Unstructured
		want   string
	}{
		"Same":              {reason: "What does not change is let pass.", old: with(t, productionStore), claim: with(t, productionStore)},
		"Grow":              {reason: "Storage may grow.", old: with(t, databaseCluster), claim: with(t, databaseCluster, set("spec.storageSize", "21Gi"))},
		"SameInAnotherUnit": {reason: "The same size in another unit is no shrinking.", old: with(t, databaseCluster), claim: with(t, databaseCluster, set("spec.storageSize", "20480Mi"))},
		"Shrink": {
			reason: "Storage may not shrink, and the answer says from what to what.",
			old:    with(t, databaseCluster),
			claim:  with(t, databaseCluster, set("spec.storageSize", "10Gi")),
			want:   `DatabaseCluster "my-db" is invalid: spec.storageSize: Invalid value: "10Gi": storageSize may not shrink: 20Gi to 10Gi`,
		},
		"ShrinkOfAShop": {
			reason: "A shop's storage may not shrink either.",
			old:    with(t, productionStore),
			claim:  with(t, productionStore, set("spec.database.storage", "499Gi")),
			want:   `EcommercePlatform "production-store" is invalid: spec.database.storage: Invalid value: "499Gi": database.storage may not shrink: 500Gi to 499Gi`,
		},
		"RemoveStorageSize": {
			reason: "To remove the size is to fall back on a default that may be less.",
			old:    with(t, databaseCluster),
			claim:  with(t, databaseCluster, remove("spec.storageSize")),
			want:   `DatabaseCluster "my-db" is invalid: spec: storageSize may not be removed once it is set, since volumes may not shrink`,
		},
		"RemoveStorageOfAShop": {
			reason: "The same holds for a shop.",
			old:    with(t, productionStore),
			claim:  with(t, productionStore, remove("spec.database.storage")),
			want:   `EcommercePlatform "production-store" is invalid: spec.database: database.storage may not be removed once it is set, since volumes may not shrink`,
		},
		"RemoveDatabaseOfAShop": {
			reason: "To remove the whole database is to remove its storage too.",
			old:    with(t, productionStore),
			claim:  with(t, productionStore, remove("spec.database")),
			want:   `EcommercePlatform "production-store" is invalid: spec.database: database.storage may not be removed once it is set, since volumes may not shrink`,
		},
		"SetStorageSize": {reason: "A size may be set where the default was used; the function knows what is there.", old: with(t, databaseCluster, remove("spec.storageSize")), claim: with(t, databaseCluster)},
		"ChangeEngine": {
			reason: "The data of one engine is nothing to the other.",
			old:    with(t, databaseCluster),
			claim:  with(t, databaseCluster, set("spec.engine", "mysql")),
			want:   `DatabaseCluster "my-db" is invalid: spec.engine: Invalid value: "mysql": engine is immutable: claim a new DatabaseCluster and move the data`,
		},
		"SetTheDefaultEngine": {reason: "To write the default down is no change.", old: with(t, databaseCluster), claim: with(t, databaseCluster, set("spec.engine", "postgresql"))},
		"ChangeTypeOfAShop": {
			reason: "The same holds for a shop.",
			old:    with(t, productionStore),
			claim:  with(t, productionStore, set("spec.database.type", "mysql")),
			want:   `EcommercePlatform "production-store" is invalid: spec.database.type: Invalid value: "mysql": database.type is immutable: claim a new EcommercePlatform and move the data`,
		},
		"DatabaseDayTwo": {
			reason: "All of these may change at any time.",
			old:    with(t, databaseCluster),
			claim: with(t, databaseCluster, set("spec.size", int64(5)), set("spec.version", "14.6"), set("spec.synchronous", true), set("spec.synchronousMode", "strict"), set("spec.hibernated", true),
				set("spec.deletionProtection", true), set("spec.tls", map[string]any{"secretName": "certs"}), set("spec.users", []any{map[string]any{"name": "a"}}), set("spec.databases", []any{map[string]any{"name": "b"}})),
		},
		"ChangeStorageClass": {
			reason: "Volumes do not change their class.",
			old:    with(t, databaseCluster, set("spec.storageClassName", "fast")),
			claim:  with(t, databaseCluster, set("spec.storageClassName", "slow")),
			want:   `DatabaseCluster "my-db" is invalid: spec.storageClassName: Invalid value: "slow": storageClassName is immutable`,
		},
		"ChangeStorageClassOfAShop": {
			reason: "Nor do those of a shop's database get one later.",
			old:    with(t, productionStore),
			claim:  with(t, productionStore, set("spec.database.storageClassName", "slow")),
			want:   `EcommercePlatform "production-store" is invalid: spec.database: database.storageClassName is immutable`,
		},
		"RestoreARunningShop": {
			reason: "Only a new database can be filled from a backup.",
			old:    with(t, productionStore),
			claim:  with(t, productionStore, set("spec.database.restoreFrom", map[string]any{"backupRef": map[string]any{"name": "old"}})),
			want:   `EcommercePlatform "production-store" is invalid: spec.database: database.restoreFrom is immutable`,
		},
		"RestoreFromAnother": {
			reason: "What a database is filled from cannot be changed.",
			old:    with(t, databaseCluster, set("spec.restoreFrom", map[string]any{"backupRef": map[string]any{"name": "old"}})),
			claim:  with(t, databaseCluster, set("spec.restoreFrom", map[string]any{"backupRef": map[string]any{"name": "new"}})),
			want:   `DatabaseCluster "my-db" is invalid: spec.restoreFrom.backupRef: restoreFrom is immutable`,
		},
		"RestoreToAnotherTime": {
			reason: "Nor can the time be added.",
			old:    with(t, databaseCluster, set("spec.restoreFrom", map[string]any{"backupRef": map[string]any{"name": "old"}})),
			claim:  with(t, databaseCluster, set("spec.restoreFrom", map[string]any{"backupRef": map[string]any{"name": "old"}, "time": "2026-01-01T00:00:00Z"})),
			want:   `DatabaseCluster "my-db" is invalid: spec.restoreFrom: restoreFrom is immutable, except that systemIdentifier and id can be added`,
		},
		"RestoreToAnotherTransaction": {
			reason: "Nor can a transaction.",
			old:    with(t, databaseCluster, set("spec.restoreFrom", map[string]any{"backupRef": map[string]any{"name": "old"}})),
			claim:  with(t, databaseCluster, set("spec.restoreFrom", map[string]any{"backupRef": map[string]any{"name": "old"}, "beforeTransaction": "3e11fa47-71ca-11e1-9e33-c80aa9429562:23"})),
			want:   `DatabaseCluster "my-db" is invalid: spec.restoreFrom: restoreFrom is immutable, except that systemIdentifier and id can be added`,
		},
		"RestoreWhich": {
			reason: "Where the place has backups of several databases, the claim is asked which one.",
			old:    with(t, databaseCluster, set("spec.restoreFrom", map[string]any{"backupRef": map[string]any{"name": "old"}})),
			claim:  with(t, databaseCluster, set("spec.restoreFrom", map[string]any{"backupRef": map[string]any{"name": "old"}, "systemIdentifier": "7000000000000000001"})),
		},
		"RestoreAnotherOne": {
			reason: "Once it has said so it does not say otherwise.",
			old:    with(t, databaseCluster, set("spec.restoreFrom", map[string]any{"backupRef": map[string]any{"name": "old"}, "systemIdentifier": "7000000000000000001"})),
			claim:  with(t, databaseCluster, set("spec.restoreFrom", map[string]any{"backupRef": map[string]any{"name": "old"}, "systemIdentifier": "7000000000000000002"})),
			want:   `DatabaseCluster "my-db" is invalid: spec.restoreFrom.systemIdentifier: Invalid value: "7000000000000000002": restoreFrom.systemIdentifier is immutable once it is set`,
		},
		"RestoreNone": {
			reason: "Nor does it fall silent.",
			old:    with(t, databaseCluster, set("spec.restoreFrom", map[string]any{"backupRef": map[string]any{"name": "old"}, "systemIdentifier": "7000000000000000001"})),
			claim:  with(t, databaseCluster, set("spec.restoreFrom", map[string]any{"backupRef": map[string]any{"name": "old"}})),
			want:   `DatabaseCluster "my-db" is invalid: spec.restoreFrom: restoreFrom is immutable, except that systemIdentifier and id can be added`,
		},
		"WrongBeforeAndNow": {
			reason: "What was wrong before and has not changed is let pass, as the API server does.",
			old:    with(t, webApp, set("spec.image", "a b")),
			claim:  with(t, webApp, set("spec.image", "a b"), set("spec.replicas", int64(2))),
		},
		"WrongNow": {
			reason: "What a claim is refused for when created, it is refused for when changed.",
			old:    with(t, webApp),
			claim:  with(t, webApp, set("spec.replicas", int64(11))),
			want:   `WebApp "my-webapp" is invalid: spec: replicas may be at most 10 (more only where environment is development or staging)`,
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(tc.want, text(schemas.ValidateUpdate(tc.old, tc.claim))); diff != "" {
				t.Errorf("\n%s\nValidateUpdate(...): -want, +got:\n%s", tc.reason, diff)
			}
		})
	}
}
