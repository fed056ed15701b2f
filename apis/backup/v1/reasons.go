package v1

// Reasons of the conditions of a Backup, and of its events.
const (
	// ReasonInvalidSchedule means that schedule or verification.schedule is no valid schedule:
	// correct it.
	// +storeplane:of=Backup: Ready, Stalled, event
	ReasonInvalidSchedule = "InvalidSchedule"

	// ReasonCronJobNotFound means that the DatabaseCluster has no CronJobs yet: wait, and describe
	// the DatabaseCluster if it lasts.
	// +storeplane:of=Backup: Ready, event
	ReasonCronJobNotFound = "CronJobNotFound"

	// ReasonChecking means that the first contact with the database and the store is under way: wait
	// a minute.
	// +storeplane:of=Backup: Ready
	ReasonChecking = "Checking"

	// ReasonNoBackup means that there is no good backup: the message has the error of the last
	// failure.
	// +storeplane:of=Backup: Ready, Verified, event
	ReasonNoBackup = "NoBackup"

	// ReasonBackupOverdue means that the newest good backup is older than two periods of the
	// schedule: the message has the error of the last failure.
	// +storeplane:of=Backup: Ready, event
	ReasonBackupOverdue = "BackupOverdue"

	// ReasonAlreadyExists means that an object that this one has to create exists, and is not its
	// own: delete the object, or choose another name.
	// +storeplane:of=Backup: Ready, Stalled, event
	// +storeplane:of=Restore: Ready, Stalled, event
	ReasonAlreadyExists = "AlreadyExists"

	// ReasonKept means that namespace storeplane-escrow holds a copy of the database's own key.
	// +storeplane:of=Backup: Escrowed
	ReasonKept = "Kept"

	// ReasonEscrowNotFound means that namespace storeplane-escrow does not exist: create it.
	// +storeplane:of=Backup: Ready, Escrowed, event
	ReasonEscrowNotFound = "EscrowNotFound"

	// ReasonEscrowPending means that the database's own key, or its copy in namespace
	// storeplane-escrow, does not exist yet: wait.
	// +storeplane:of=Backup: Ready, Escrowed, event
	ReasonEscrowPending = "EscrowPending"

	// ReasonEscrowDiffers means that namespace storeplane-escrow holds another key than the one in
	// use: restore the kept key in the Secret that encryption names, or have the platform team
	// delete the copy once no backup needs it.
	// +storeplane:of=Backup: Ready, Stalled, Escrowed, event
	ReasonEscrowDiffers = "EscrowDiffers"

	// ReasonRestored means that a backup was restored: by a Restore, or to verify it.
	// +storeplane:of=Backup: Verified
	// +storeplane:of=Restore: event
	ReasonRestored = "Restored"

	// ReasonVerificationPending means that no backup has been verified yet.
	// +storeplane:of=Backup: Verified
	ReasonVerificationPending = "VerificationPending"

	// ReasonDisabled means that verification.enabled is false.
	// +storeplane:of=Backup: Verified
	ReasonDisabled = "Disabled"

	// ReasonVerificationOverdue means that the last good verification is older than two periods of
	// its schedule: the message has the error of the last one, as long as its Job exists.
	// +storeplane:of=Backup: Verified, event
	ReasonVerificationOverdue = "VerificationOverdue"

	// ReasonUnsealed means that backups from before encryption was turned on are in the store: while
	// Verified is False there is no encrypted one yet, so set annotation backup.example.com/run-now.
	// +storeplane:of=Backup: Verified, event
	ReasonUnsealed = "Unsealed"

	// ReasonBackupSucceeded means that a backup was created.
	// +storeplane:of=Backup: event
	ReasonBackupSucceeded = "BackupSucceeded"

	// ReasonBackupFailed means that a backup failed: the message has the reason of the failure and
	// its error.
	// +storeplane:of=Backup: event
	ReasonBackupFailed = "BackupFailed"

	// ReasonReady means that the condition Ready has become True.
	// +storeplane:of=Backup: event
	ReasonReady = "Ready"

	// ReasonVerified means that the condition Verified has become True.
	// +storeplane:of=Backup: event
	ReasonVerified = "Verified"

	// ReasonEscrowed means that the condition Escrowed has become True.
	// +storeplane:of=Backup: event
	ReasonEscrowed = "Escrowed"

	// ReasonNotStalled means that nothing keeps it from becoming Ready, or being so, by itself.
	// +storeplane:of=Backup: Stalled
	// +storeplane:of=Restore: Stalled
	ReasonNotStalled = "NotStalled"
)

// Reasons of the conditions of a Restore.
const (
	// ReasonWaiting means that the Job is being created.
	// +storeplane:of=Restore: Ready
	ReasonWaiting = "Waiting"

	// ReasonRunning means that the Job runs: the message has the error of a failed attempt.
	// +storeplane:of=Restore: Ready, event
	ReasonRunning = "Running"

	// ReasonJobNotFound means that the Job was deleted before it ended: check the target, and apply
	// another Restore.
	// +storeplane:of=Restore: Ready, Stalled, status.atProvider.failure, event
	ReasonJobNotFound = "JobNotFound"

	// ReasonMethodNotSupported means that the backup cannot be restored into this target: restore a
	// physical backup by restoreFrom of a new DatabaseCluster, and others into a database of their
	// type. Of a Backup it means that no database could be filled with what its method makes at this
	// destination.
	// +storeplane:of=Restore: Ready, Stalled, event
	// +storeplane:of=Backup: Ready, Stalled, event
	ReasonMethodNotSupported = "MethodNotSupported"

	// ReasonNotGranted means that the backups are another namespace's, and the credentials the
	// platform's: have a RestoreGrant created in that namespace, or name credentials of your own.
	// +storeplane:of=Restore: Ready, event
	ReasonNotGranted = "NotGranted"
)

// Reasons of objects that have to be created or corrected first.
const (
	// ReasonSecretNotFound means that the named Secret does not exist: create it.
	// +storeplane:of=Backup: Ready, Escrowed, event
	// +storeplane:of=Restore: Ready, event
	ReasonSecretNotFound = "SecretNotFound"

	// ReasonSecretKeyNotFound means that the named Secret lacks a key: add it.
	// +storeplane:of=Backup: Ready, Escrowed, event
	// +storeplane:of=Restore: Ready, event
	ReasonSecretKeyNotFound = "SecretKeyNotFound"

	// ReasonCredentialsMissing means that the named Secret, or the provider's environment, has no
	// valid credentials of the store: add them.
	// +storeplane:of=Backup: Ready, event
	// +storeplane:of=Restore: Ready, event
	ReasonCredentialsMissing = "CredentialsMissing"

	// ReasonServiceAccountNotFound means that the named ServiceAccount does not exist: create it.
	// +storeplane:of=Backup: Ready, event
	// +storeplane:of=Restore: Ready, event
	ReasonServiceAccountNotFound = "ServiceAccountNotFound"

	// ReasonDatabaseClusterNotFound means that the named DatabaseCluster does not exist: create it,
	// or correct the name.
	// +storeplane:of=Backup: Ready, event
	// +storeplane:of=Restore: Ready, event
	ReasonDatabaseClusterNotFound = "DatabaseClusterNotFound"

	// ReasonDatabaseClusterNotReady means that the named DatabaseCluster is not Ready yet: wait, and
	// describe it if it lasts.
	// +storeplane:of=Backup: Ready, event
	// +storeplane:of=Restore: Ready, event
	ReasonDatabaseClusterNotReady = "DatabaseClusterNotReady"

	// ReasonProviderConfigNotFound means that the named ProviderConfig or ClusterProviderConfig does
	// not exist: create it, or correct providerConfigRef.
	// +storeplane:of=Backup: Ready, event
	// +storeplane:of=Restore: Ready, event
	ReasonProviderConfigNotFound = "ProviderConfigNotFound"

	// ReasonProviderConfigInvalid means that the ProviderConfig cannot be used: correct what the
	// message names.
	// +storeplane:of=Backup: Ready, event
	// +storeplane:of=Restore: Ready, event
	ReasonProviderConfigInvalid = "ProviderConfigInvalid"

	// ReasonDestinationInvalid means that the destination, or the source of a Restore, cannot be
	// used: correct what the message names.
	// +storeplane:of=Backup: Ready, Stalled, event
	// +storeplane:of=Restore: Ready, Stalled, event
	ReasonDestinationInvalid = "DestinationInvalid"

	// ReasonVolumeNotFound means that the PersistentVolumeClaim that destination.bucket names does
	// not exist: create it.
	// +storeplane:of=Backup: Ready, event
	// +storeplane:of=Restore: Ready, event
	ReasonVolumeNotFound = "VolumeNotFound"

	// ReasonVersionUnknown means that there are no tools for the version of the database server: the
	// message has the newest version that is supported.
	// +storeplane:of=Backup: Ready, Stalled, event
	// +storeplane:of=Restore: Ready, Stalled, event
	ReasonVersionUnknown = "VersionUnknown"
)

// Reasons of failures that the program backup reports.
const (
	// ReasonInvalidTask means that the connection or another field of the spec is invalid: correct
	// what the message names.
	// +storeplane:of=Backup: Ready, Stalled, Verified, status.atProvider.lastFailure, event
	// +storeplane:of=Restore: Ready, Stalled, status.atProvider.failure, event
	ReasonInvalidTask = "InvalidTask"

	// ReasonStoreUnreachable means that the store does not answer, or the connection was lost: check
	// endpoint, network policies and firewalls; it is retried.
	// +storeplane:of=Backup: Ready, status.atProvider.lastFailure, event
	// +storeplane:of=Restore: Ready, Stalled, status.atProvider.failure, event
	ReasonStoreUnreachable = "StoreUnreachable"

	// ReasonStoreDenied means that the store does not accept the credentials, or they lack
	// permission to list, read and write: correct the Secret.
	// +storeplane:of=Backup: Ready, Verified, status.atProvider.lastFailure, event
	// +storeplane:of=Restore: Ready, Stalled, status.atProvider.failure, event
	ReasonStoreDenied = "StoreDenied"

	// ReasonBucketMissing means that the bucket, container or volume does not exist: create it, or
	// correct destination.bucket.
	// +storeplane:of=Backup: Ready, Verified, status.atProvider.lastFailure, event
	// +storeplane:of=Restore: Ready, Stalled, status.atProvider.failure, event
	ReasonBucketMissing = "BucketMissing"

	// ReasonStoreFull means that the store has no space: free space, expand the volume, or shorten
	// retention.
	// +storeplane:of=Backup: Ready, Verified, status.atProvider.lastFailure, event
	// +storeplane:of=Restore: Ready, Stalled, status.atProvider.failure, event
	ReasonStoreFull = "StoreFull"

	// ReasonSourceUnreachable means that the database does not answer, or the connection was lost:
	// check that it is up, and its host and port.
	// +storeplane:of=Backup: Ready, Verified, status.atProvider.lastFailure, event
	// +storeplane:of=Restore: Ready, Stalled, status.atProvider.failure, event
	ReasonSourceUnreachable = "SourceUnreachable"

	// ReasonSourceDenied means that the database does not accept the user: correct the connection's
	// Secret.
	// +storeplane:of=Backup: Ready, Verified, status.atProvider.lastFailure, event
	// +storeplane:of=Restore: Ready, Stalled, status.atProvider.failure, event
	ReasonSourceDenied = "SourceDenied"

	// ReasonToolFailed means that a dump or a restore ended with an error, which the message has:
	// mostly the user lacks privileges.
	// +storeplane:of=Backup: Ready, Verified, status.atProvider.lastFailure, event
	// +storeplane:of=Restore: Ready, Stalled, status.atProvider.failure, event
	ReasonToolFailed = "ToolFailed"

	// ReasonBackupMissing means that the backup, or the Backup that a Restore names, does not exist:
	// choose another one.
	// +storeplane:of=Backup: Verified, event
	// +storeplane:of=Restore: Ready, Stalled, status.atProvider.failure, event
	ReasonBackupMissing = "BackupMissing"

	// ReasonArchiveGap means that WAL is missing in the archive after the backup, so that nothing
	// beyond can be restored from it: create a backup now, which ends the gap.
	// +storeplane:of=Backup: Verified, event
	ReasonArchiveGap = "ArchiveGap"

	// ReasonBackupCorrupt means that an object of the backup is missing, truncated or not what was
	// written: create a backup now, and check the store; older backups may be good.
	// +storeplane:of=Backup: Verified, status.atProvider.lastFailure, event
	// +storeplane:of=Restore: Ready, Stalled, status.atProvider.failure, event
	ReasonBackupCorrupt = "BackupCorrupt"

	// ReasonContentDiffers means that the restored database does not hold what was backed up, or the
	// verification query returned false: create a backup now, and verify it.
	// +storeplane:of=Backup: Verified, event
	// +storeplane:of=Restore: Ready, Stalled, status.atProvider.failure, event
	ReasonContentDiffers = "ContentDiffers"

	// ReasonTargetNotEmpty means that the database to restore into is not empty: restore into
	// another one, or set overwrite in another Restore.
	// +storeplane:of=Restore: Ready, Stalled, status.atProvider.failure, event
	ReasonTargetNotEmpty = "TargetNotEmpty"

	// ReasonTargetLocked means that a Restore writes into the database: wait until it has ended. A
	// Backup also has it while the database holds a part of a backup, since a Restore was stopped
	// half-way.
	// +storeplane:of=Backup: Ready, status.atProvider.lastFailure, event
	// +storeplane:of=Restore: Ready, Stalled, status.atProvider.failure, event
	ReasonTargetLocked = "TargetLocked"

	// ReasonKeyMissing means that the backup is encrypted, and the key is not its key: restore the
	// right one.
	// +storeplane:of=Backup: Ready, Verified, status.atProvider.lastFailure, event
	// +storeplane:of=Restore: Ready, Stalled, status.atProvider.failure, event
	ReasonKeyMissing = "KeyMissing"

	// ReasonBackupNotAuthentic means that a backup in the store was not written with the key, and is
	// not restored: another program may write to the store, so change its credentials, and delete
	// that backup there.
	// +storeplane:of=Backup: Verified, event
	// +storeplane:of=Restore: Ready, Stalled, status.atProvider.failure, event
	ReasonBackupNotAuthentic = "BackupNotAuthentic"

	// ReasonNoSpace means that the pod's own storage is full: set verification.storage, or raise
	// resources.limits.ephemeral-storage.
	// +storeplane:of=Backup: Ready, Verified, status.atProvider.lastFailure, event
	// +storeplane:of=Restore: Ready, Stalled, status.atProvider.failure, event
	ReasonNoSpace = "NoSpace"

	// ReasonInterrupted means that the pod was stopped before its end; it is retried.
	// +storeplane:of=Backup: Ready, status.atProvider.lastFailure, event
	// +storeplane:of=Restore: Ready, Stalled, status.atProvider.failure, event
	ReasonInterrupted = "Interrupted"
)

// Reasons of failures of pods that could not report.
const (
	// ReasonOutOfMemory means that the pod was killed for its memory: raise resources.limits.memory.
	// +storeplane:of=Backup: Ready, Verified, status.atProvider.lastFailure, event
	// +storeplane:of=Restore: Ready, Stalled, status.atProvider.failure, event
	ReasonOutOfMemory = "OutOfMemory"

	// ReasonEvicted means that the kubelet evicted the pod: free space on the node, or raise
	// resources.
	// +storeplane:of=Backup: Ready, status.atProvider.lastFailure, event
	// +storeplane:of=Restore: Ready, Stalled, status.atProvider.failure, event
	ReasonEvicted = "Evicted"

	// ReasonPodTerminated means that the pod was killed from outside or deleted, without a result;
	// it is retried.
	// +storeplane:of=Backup: Ready, status.atProvider.lastFailure, event
	// +storeplane:of=Restore: Ready, Stalled, status.atProvider.failure, event
	ReasonPodTerminated = "PodTerminated"

	// ReasonCrashed means that the program crashed without a result: report it with the pod's log.
	// +storeplane:of=Backup: Ready, Verified, status.atProvider.lastFailure, event
	// +storeplane:of=Restore: Ready, Stalled, status.atProvider.failure, event
	ReasonCrashed = "Crashed"

	// ReasonDeadlineExceeded means that the Job did not end before its deadline: raise resources, or
	// check what slows it down.
	// +storeplane:of=Backup: Ready, Verified, status.atProvider.lastFailure, event
	// +storeplane:of=Restore: Ready, Stalled, status.atProvider.failure, event
	ReasonDeadlineExceeded = "DeadlineExceeded"

	// ReasonPodNotStarted means that the pod does not start: the message has the cause.
	// +storeplane:of=Backup: Ready, status.atProvider.lastFailure, event
	// +storeplane:of=Restore: Ready, Stalled, status.atProvider.failure, event
	ReasonPodNotStarted = "PodNotStarted"

	// ReasonResultMissing means that the pod ended without a result.
	// +storeplane:of=Backup: Ready, status.atProvider.lastFailure, event
	// +storeplane:of=Restore: Ready, Stalled, status.atProvider.failure, event
	ReasonResultMissing = "ResultMissing"
)
