package plan

import (
	"testing"

	backupv1 "github.com/storeplane/storeplane/apis/backup/v1"
	"github.com/storeplane/storeplane/internal/backup"
)

// TestStandIn: a Secret that may not be read counts as one with credentials of any store. The plan
// would otherwise add what pods without credentials need.
func TestStandIn(t *testing.T) {
	data, _ := standIn(Object{APIVersion: "v1", Kind: "Secret", Namespace: "team", Name: "store"}).Object["data"].(map[string]any)
	for _, store := range []backupv1.StoreType{backupv1.S3, backupv1.GCS, backupv1.Azure} {
		if !backup.Authenticates(store, func(key string) bool { return data[key] != nil }) {
			t.Errorf("store %s: the stand-in has no credentials: %v", store, data)
		}
	}
}
