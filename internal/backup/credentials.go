package backup

import backupv1 "github.com/storeplane/storeplane/apis/backup/v1"

// Authenticates reports whether a Secret with certain keys holds credentials of a store. Without
// them a pod requests an identity from its cloud, even if the Secret holds something else: the
// name of the Azure account, or the certificate authority of a store.
func Authenticates(t backupv1.StoreType, has func(key string) bool) bool {
	switch t {
	case backupv1.S3:
		return has("AWS_ACCESS_KEY_ID")
	case backupv1.GCS:
		return has("credentials.json")
	case backupv1.Azure:
		return has("AZURE_STORAGE_KEY") || has("AZURE_STORAGE_SAS_TOKEN")
	case backupv1.Volume:
	}
	return false
}
