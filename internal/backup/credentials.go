package backup

import backupv1 "github.com/storeplane/storeplane/apis/backup/v1"

// Authenticates tells whether a Secret that has certain keys holds credentials of a store.
// Without them a pod asks its cloud for an identity, also where the Secret has something else:
// the name of Azure's account, or the authority of a store's certificate.
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
