package backup

import (
	backupv1 "github.com/storeplane/storeplane/apis/backup/v1"
	"github.com/storeplane/storeplane/internal/pki"
)

// Keys of the Secret with the credentials of a store, as backupv1.Destination describes them. The
// files of StoreDir have the same names, and the provider's environment has variables of them.
const (
	KeyAWSAccess  = "AWS_ACCESS_KEY_ID"
	KeyAWSSecret  = "AWS_SECRET_ACCESS_KEY" //nolint:gosec // a name
	KeyAWSSession = "AWS_SESSION_TOKEN"     //nolint:gosec // a name

	KeyGCS = "credentials.json"

	KeyAzureAccount = "AZURE_STORAGE_ACCOUNT"
	KeyAzure        = "AZURE_STORAGE_KEY"
	KeyAzureSAS     = "AZURE_STORAGE_SAS_TOKEN"

	// KeyAuthority is the authority of the store's or the database's server.
	KeyAuthority = pki.KeyAuthority
)

// Authenticates reports whether a Secret with certain keys holds credentials of a store. Without
// them a pod requests an identity from its cloud, even if the Secret holds something else: the
// name of the Azure account, or the certificate authority of a store.
func Authenticates(t backupv1.StoreType, has func(key string) bool) bool {
	switch t {
	case backupv1.S3:
		return has(KeyAWSAccess)
	case backupv1.GCS:
		return has(KeyGCS)
	case backupv1.Azure:
		return has(KeyAzure) || has(KeyAzureSAS)
	case backupv1.Volume:
	}
	return false
}

// CredentialKeys are the keys that are copied to a namespace from a Secret of the platform's, or from the
// provider's environment. Such a Secret may hold more, which is not for tenants.
var CredentialKeys = []string{
	KeyAWSAccess, KeyAWSSecret, KeyAWSSession,
	KeyGCS,
	KeyAzureAccount, KeyAzure, KeyAzureSAS,
	KeyAuthority,
}
