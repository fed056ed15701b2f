package explain

import (
	backupv1 "github.com/storeplane/storeplane/apis/backup/v1"
	configv1 "github.com/storeplane/storeplane/apis/config/v1"
	"github.com/storeplane/storeplane/internal/podfailure"
)

// remedy returns what to do about a pod's failure.
func remedy(why *podfailure.Failure) []string {
	if why.Restriction != "" {
		return []string{"Build another image, or " + why.Lift()}
	}
	switch why.Kind {
	case podfailure.ImagePull:
		return []string{"Push the image, correct its name in the claim, or name a Secret with the registry's credentials in imagePullSecrets"}
	case podfailure.ContainerStart:
		if why.Missing != "" {
			return []string{"Create " + why.MissingKind + " " + why.Missing + ", or correct the reference to it in the claim"}
		}
		return []string{"Correct the claim's fields of container " + why.Container}
	case podfailure.OutOfMemory:
		return []string{"Raise resources.limits.memory of the claim, or have container " + why.Container + " use less"}
	case podfailure.CrashLoop:
		return []string{"Read its log, and correct the image or its configuration: the claim's last edit can be undone by applying the one before"}
	case podfailure.Initializing:
		return []string{"See in its log what it waits for: kubectl logs, with -c " + why.Container}
	case podfailure.Unready:
		return []string{"Correct the port or the probe of the claim, or what answers it"}
	case podfailure.Unschedulable:
		return []string{"Request less, correct nodeSelector, tolerations or affinity of the claim, or add a node"}
	case podfailure.Preparing:
		return []string{"Create what it mounts, or correct the claim"}
	case podfailure.Stopped:
		return []string{"Nothing: another pod takes its place"}
	}
	return nil
}

// managedRemedies are what to do about a managed resource, by the reason of its condition.
var managedRemedies = map[string]string{
	backupv1.ReasonStoreUnreachable:       "Correct the endpoint, or let the store be reached: network policies and proxies of the cluster count",
	backupv1.ReasonStoreDenied:            "Correct the credentials, or what the store allows them",
	backupv1.ReasonBucketMissing:          "Create the bucket, or correct its name",
	backupv1.ReasonStoreFull:              "Give the store more room, or keep fewer backups by retention",
	backupv1.ReasonSecretNotFound:         "Create the Secret, or correct its name",
	backupv1.ReasonSecretKeyNotFound:      "Add the key to the Secret, or correct its name",
	backupv1.ReasonCredentialsMissing:     "Name credentials where the store is named",
	backupv1.ReasonProviderConfigNotFound: "Create the ProviderConfig, or correct its name",
	backupv1.ReasonBackupMissing:          "Name a backup that exists: status.backups of the Backup lists them",
	backupv1.ReasonSourceUnreachable:      "See why the database does not answer: storeplane explain of its claim",
	backupv1.ReasonSourceDenied:           "Correct the user and the password of the database in the Secret",
	configv1.ReasonSecretNotAllowed:       "Let the AppConfig read the Secret by its label, or leave it out",
	configv1.ReasonInvalidTemplate:        "Correct the template",
	configv1.ReasonRolledBack:             "Correct the content: the pods run what was there before",
}

func managedRemedy(reason string) []string {
	if do, ok := managedRemedies[reason]; ok {
		return []string{do}
	}
	return nil
}
