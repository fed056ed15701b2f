package databasecluster

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"slices"

	"google.golang.org/protobuf/types/known/structpb"

	appsv1 "github.com/storeplane/storeplane/apis/apps/v1"
	backupv1 "github.com/storeplane/storeplane/apis/backup/v1"
	"github.com/storeplane/storeplane/internal/backup"
	"github.com/storeplane/storeplane/internal/build"
	"github.com/storeplane/storeplane/internal/compose"
	"github.com/storeplane/storeplane/internal/health"
	"github.com/storeplane/storeplane/internal/instance"
	"github.com/storeplane/storeplane/internal/label"
	"github.com/storeplane/storeplane/internal/pgbackrest"
)

// Names of components of backups, and of the schemas of Backups and RestoreGrants. The certificate
// and the account are of the part credentials, all other components of the part backup.
const (
	backups         = label.ComponentBackup
	backupTLS       = "backup-tls"
	backupStore     = "backup-store"
	backupAccount   = "backup-account"
	backupFull      = "backup-full"
	backupIncr      = "backup-incr"
	backupFirst     = "backup-first"
	backupGap       = "backup-gap"
	backupRoom      = "backup-room"
	backupSchema    = "backup"
	grantSchema     = "restoregrant"
	repository      = label.ComponentRepository
	repositoryHost  = "repository-service"
	repositoryGuard = "repository-networkpolicy"
	namedClaim      = label.ComponentNamedClaim
	namedClaimGuard = "named-claim-networkpolicy"
	backupGuard     = "backup-networkpolicy"
)

// defaultSchedule is that of spec.backup, as in the XRD, for claims without the field.
const defaultSchedule = "0 2 * * *"

// backing is the resolved configuration of a claim's backups.
type backing struct {
	enabled bool

	// unplaced is true if there are none only because there is no place for them.
	unplaced bool

	schedule, incremental, retention string

	// storage is the size of the volume claim that is created for backups, a quantity. smaller is
	// the message about one that exists and is too small for the schedule and the retention, or "".
	storage, smaller string

	// destination is that of the claim, or else of the installation. The bucket of type
	// volume is a volume claim.
	destination backupv1.Destination

	// own is true if the volume claim is created here. fallback is true if that is because neither
	// the claim nor the installation has a destination.
	own, fallback bool

	// authenticates is true if a Secret has credentials of the store.
	authenticates bool

	// store is a copy of the credentials of the installation's store, and
	// bounds is what they are for.
	store  map[string]string
	bounds *backup.Bounds

	encryption *appsv1.SecretKeyReference

	// key is the database's generated encryption key, or "". escrowed is true if the Backup
	// requests a copy of it, or the record that there is none.
	key      string
	escrowed bool

	// plain is true if the backups are not encrypted, though those of a new database would be.
	plain bool

	// physical is true if the provider copies the servers of an engine that does not archive its log itself,
	// and a pod archives it.
	physical bool

	// watched is true if the provider is installed, which monitors and verifies the backups.
	watched bool
}

// secret returns the name of the Secret with the store's credentials, or "".
func (b *backing) secret() string {
	if b.destination.SecretRef == nil {
		return ""
	}
	return b.destination.SecretRef.Name
}

func (b *backing) isVolume() bool { return b.destination.Type == backupv1.Volume }

// backing resolves the claim's backups. storage is the size of the database's volumes.
func (d *inputs) backing(c *compose.Claim, storage string) (backing, error) {
	b := backing{}
	err := d.resolveBackup(c, &b, storage)
	return b, err
}

func (d *inputs) resolveBackup(c *compose.Claim, b *backing, storage string) error {
	spec := d.spec.Backup
	if spec == nil {
		spec = &appsv1.DatabaseBackup{}
	}
	if b.enabled = backsUp(&d.spec); !b.enabled {
		return nil
	}
	if err := CheckBackup(&d.spec, &d.settings); err != nil {
		return err
	}
	b.watched = c.HasKind(backupSchema, backups)
	b.schedule, b.incremental, b.retention = cmp.Or(string(spec.Schedule), defaultSchedule), string(spec.IncrementalSchedule), cmp.Or(spec.Retention, backup.DefaultRetention)
	if spec.Encryption != nil {
		b.encryption = &spec.Encryption.SecretRef
	}
	from, where := placeOf(spec, &d.settings)
	if !d.traits.Archives {
		if isNowhere(from) {
			// No volume is created for dumps, since it would not outlive the claim. A condition reports it.
			b.enabled, b.unplaced, b.physical = false, true, spec.Method == string(backupv1.Physical)
			return nil
		}
		if err := d.resolveMethod(b, spec); err != nil {
			return err
		}
	}
	if from == nil {
		from, b.fallback = &appsv1.BackupDestination{Type: string(backupv1.Volume)}, true
	}
	b.destination = destinationOf(from)
	if b.isVolume() && b.destination.Bucket == "" {
		b.own, b.destination.Bucket = true, d.repositoryClaim()
	}
	if err := d.checkPlace(b.destination); err != nil {
		return compose.Invalidf("%s: %v", where, err)
	}
	if err := d.planRepository(b, spec.StorageSize, storage); err != nil {
		return err
	}
	if err := d.checkReplaced(c, b); err != nil {
		return err
	}
	platforms := spec.Destination == nil && d.settings.Backup != nil && !b.isVolume()
	if err := d.requireBackupSecrets(c, b, spec); err != nil || !d.traits.Archives {
		// The provider generates the keys of dumps.
		b.escrowed = platforms && d.settings.Backup.Generates() && b.encryption == nil
		return err
	}
	return d.ownKey(c, b, platforms)
}

// checkPlace refuses a destination that no backups of the engine can be stored at.
func (d *inputs) checkPlace(at backupv1.Destination) error {
	if d.traits.Archives {
		return (pgbackrest.Repository{Destination: at, Namespace: d.Namespace, Name: d.Claim}).Check()
	}
	return backup.CheckPlace(at, d.Namespace, d.backupName())
}

func destinationOf(d *appsv1.BackupDestination) backupv1.Destination {
	out := backupv1.Destination{Type: backupv1.StoreType(d.Type), Bucket: d.Bucket, Prefix: d.Prefix, Endpoint: d.Endpoint, Region: d.Region}
	if d.SecretRef != nil {
		out.SecretRef = &backupv1.LocalReference{Name: d.SecretRef.Name}
	}
	return out
}

// requireBackupSecrets checks that the Secrets which the backups need exist, and
// copies the installation's.
func (d *inputs) requireBackupSecrets(c *compose.Claim, b *backing, spec *appsv1.DatabaseBackup) error {
	name, namespace := b.secret(), d.Namespace
	if spec.Destination == nil && d.settings.Backup != nil && d.settings.Backup.SecretRef != nil {
		name, namespace = d.settings.Backup.SecretRef.Secret(d.Namespace)
		// The Secret that is requested is the one that is mounted, also if it is in this
		// namespace and nothing is copied.
		b.destination.SecretRef = &backupv1.LocalReference{Name: name}
		b.bounds = d.settings.Backup.Bounds(d.Namespace)
	}
	var store, key *structpb.Struct
	var pending, err error
	if name != "" {
		if store, err = requireSecretOf(c, storeRequirement, name, namespace); err != nil {
			pending = err
		}
	}
	if b.encryption != nil {
		if key, err = requireSecret(c, encryptionRequirement, b.encryption.Name); err != nil {
			pending = err
		}
	}
	if pending != nil {
		return pending
	}
	if name != "" && store == nil && !c.IsReview() {
		return compose.Invalidf("backups need Secret %s of namespace %s, which holds the store's credentials and does not exist: create it", name, namespace)
	}
	b.authenticates = authenticates(c, store, b.destination.Type)
	if spec.Destination != nil {
		bounds, err := readBounds(store, b.destination)
		if err != nil {
			return compose.Invalidf("backup: %v", err)
		}
		b.destination = bounds.Place(b.destination)
	}
	if e := b.encryption; e != nil && !c.IsReview() {
		if _, ok := compose.SecretValue(key, e.Key); !ok {
			return compose.Invalidf("backup.encryption.secretRef: Secret %s does not exist or has no key %s: create it", e.Name, e.Key)
		}
	}
	if namespace == d.Namespace {
		return nil
	}
	if b.store = storeValues(store); c.IsReview() {
		b.store = map[string]string{"credentials": compose.Placeholder}
	}
	b.destination.SecretRef = &backupv1.LocalReference{Name: d.Name(backupStore)}
	return nil
}

// authenticates reports whether a Secret has credentials of a store. An offline
// review assumes that it has.
func authenticates(c *compose.Claim, secret *structpb.Struct, t backupv1.StoreType) bool {
	return c.IsReview() || backup.Authenticates(t, func(key string) bool {
		_, ok := compose.SecretValue(secret, key)
		return ok
	})
}

// readBounds returns the bounds of a store's credentials, which may be a copy of the platform's,
// and an error if the destination of the backups is outside of them.
func readBounds(store *structpb.Struct, where backupv1.Destination) (*backup.Bounds, error) {
	annotations := map[string]string{}
	if raw := annotation(store, backup.BoundsAnnotation); raw != "" {
		annotations[backup.BoundsAnnotation] = raw
	}
	bounds, err := backup.ReadBounds(annotations)
	if err != nil {
		return nil, err
	}
	return bounds, bounds.Check(where)
}

// Names under which Secrets are requested.
const (
	storeRequirement      = "backup-store"
	encryptionRequirement = "backup-encryption"
)

// storeValues returns the credentials in a Secret of a store.
func storeValues(secret *structpb.Struct) map[string]string {
	out := secretValues(secret)
	maps.DeleteFunc(out, func(key, _ string) bool { return !slices.Contains(backup.CredentialKeys, key) })
	return out
}

// secretValues returns all values of a Secret.
func secretValues(secret *structpb.Struct) map[string]string {
	out := map[string]string{}
	for k := range secret.GetFields()["data"].GetStructValue().GetFields() {
		if v, ok := compose.SecretValue(secret, k); ok {
			out[k] = v
		}
	}
	return out
}

// needsRepository reports whether the servers have a certificate for backups. Those that were
// restored keep it for good, since to remove it would replace their pods.
func (d *cluster) needsRepository() bool {
	return d.traits.Archives && (d.backup.enabled || d.spec.RestoreFrom != nil)
}

// archives reports whether the servers archive their log, and are backed up physically.
func (d *cluster) archives() bool { return d.backup.enabled && d.traits.Archives }

// backupName returns the name of the Backup, which its definition limits to 40 characters.
func (d *inputs) backupName() string { return BackupName(d.Claim) }

// BackupName returns the name of the Backup of a DatabaseCluster.
func BackupName(claim string) string {
	const most, digest = 33, 10
	if len(claim) > most {
		claim = claim[:most-digest-1] + "-" + build.Digest(claim)
	}
	return claim + "-" + backups
}

// repositoryOf returns the repository of the claim's own backups.
func (d *cluster) repositoryOf() pgbackrest.Repository {
	r := pgbackrest.Repository{Destination: d.backup.destination, Namespace: d.Namespace, Name: d.Claim, Encrypted: d.backup.encryption != nil}
	if d.backup.isVolume() {
		r.Host = serviceHost(d.Claim, repository, d.Namespace)
	}
	return r
}

// backupFiles returns what the servers read about their backups, by the names of the files.
func (d *cluster) backupFiles() (map[string]string, error) {
	if !d.archives() {
		return map[string]string{}, nil
	}
	encoded, err := json.Marshal(d.desiredBackup())
	if err != nil {
		return nil, fmt.Errorf("cannot write where backups are: %w", err)
	}
	out := map[string]string{instance.BackupFile: string(encoded) + "\n"}
	if out[pgbackrest.FileConfig], err = d.repositoryOf().ServerConfig(); err != nil {
		return nil, err
	}
	if d.backup.isVolume() {
		if out[fileRepository], err = d.repositoryOf().VolumeConfig(); err != nil {
			return nil, err
		}
	}
	return out, nil
}

// fileRepository is the file with the configuration of the pgBackRest
// server that serves the volume.
const fileRepository = "repository.conf"

// desiredBackup returns the description of the backups for the instance managers, or nil.
func (d *cluster) desiredBackup() *instance.Backup {
	if !d.archives() && !d.archivesLogs() {
		return nil
	}
	return &instance.Backup{Destination: d.backup.destination, Encrypted: d.backup.encryption != nil}
}

// alwaysHealthy judges components whose state a condition reports: a database
// serves without a backup too.
func alwaysHealthy(*structpb.Struct) health.Status { return health.Status{State: health.Healthy} }

// addBackups declares the components of backups. What makes a backup waits for the database, except
// for the one that makes room.
func (d *cluster) addBackups(add func(compose.Component)) {
	if d.needsRepository() {
		add(compose.Component{Name: backupTLS, Part: credentials, Object: d.backupCertificate()})
		add(compose.Component{Name: backupAccount, Part: credentials, Object: build.ServiceAccount(d.Scope, backups, d.server)})
	}
	if d.restores() {
		d.addSource(add)
	}
	if !d.backup.enabled {
		return
	}
	b := &d.backup
	if b.store != nil {
		meta := d.Meta(backupStore, d.server)
		meta.Annotations = b.bounds.Annotations()
		add(compose.Component{Name: backupStore, Part: backups, Object: build.Secret(meta, b.store)})
	}
	if !d.traits.Archives {
		d.addDumps(add)
		d.addLogArchive(add)
		return
	}
	if b.isVolume() {
		d.addRepository(add)
	}
	if d.sleepsEmpty() {
		// The cluster has never run, so there is nothing to back up.
		return
	}
	add(compose.Component{Name: backupGuard, Part: backups, Object: d.backupPolicy()})
	// Once these are healthy the system identifier is known, too.
	after := []string{d.server, instances}
	if d.backsUpAlone() {
		after = nil
	}
	add(compose.Component{Name: backupFull, Part: backups, After: after, Make: func() compose.Object {
		return d.backupCronJob(backupFull, b.schedule, true)
	}})
	if b.incremental != "" {
		add(compose.Component{Name: backupIncr, Part: backups, After: after, Make: func() compose.Object {
			return d.backupCronJob(backupIncr, b.incremental, false)
		}})
	}
	// Without a backup after a gap, or with none at all, nothing is restored. Such a backup waits for
	// a primary alone: a gap comes from a lost volume, whose server may be missing for days.
	urgent := after
	if d.live.primary() != "" {
		urgent = nil
	}
	firstAfter := after
	if d.live.cluster.Archive.Lost() {
		firstAfter = urgent
	}
	for _, name := range d.firstJobs() {
		add(compose.Component{Name: name, Part: backups, After: firstAfter, Once: true, Health: alwaysHealthy, Make: func() compose.Object {
			return d.firstBackup(name)
		}})
	}
	for _, name := range d.gapJobs() {
		add(compose.Component{Name: name, Part: backups, After: urgent, Once: true, Aside: true, Make: func() compose.Object {
			return d.firstBackup(name)
		}})
	}
	if name := d.roomName(); name != "" {
		// It waits for the primary alone, and not for the other servers: all keep
		// WAL until there is room.
		add(compose.Component{Name: name, Part: backups, Once: true, Aside: true, Make: func() compose.Object {
			return d.roomBackup(name)
		}})
	}
	if b.watched && b.key == "" {
		add(compose.Component{Name: backups, After: after, Health: alwaysHealthy, Make: func() compose.Object { return d.backupResource() }})
	}
}

// sleepsEmpty reports whether the cluster is hibernated and has never run.
func (d *inputs) sleepsEmpty() bool { return d.spec.Hibernated && d.live.cluster.System == "" }

// backupResource returns the Backup, by which the provider monitors and verifies the backups.
func (d *cluster) backupResource() *backupv1.Backup {
	b := &backupv1.Backup{}
	b.APIVersion, b.Kind = backupv1.GroupVersion.String(), backupv1.BackupKind
	b.ObjectMeta = d.Named(d.backupName(), backups, d.server)
	build.SetExternalName(b)
	if d.backup.escrowed {
		b.Annotations[backup.EscrowAnnotation] = "true"
	}
	p := &b.Spec.ForProvider
	p.Source = backupv1.Database{
		Type: d.traits.Type, Version: d.release.Series,
		Connection: backupv1.Connection{DatabaseClusterRef: &backupv1.LocalReference{Name: d.Claim}},
	}
	p.Destination, p.Method, p.Retention, p.Suspend = d.backup.destination, backupv1.Physical, d.backup.retention, d.spec.Hibernated
	p.DeletionPolicy = backupv1.Orphan
	if e := d.backup.encryption; e != nil {
		p.Encryption = &backupv1.Encryption{SecretRef: backupv1.SecretKey{Name: e.Name, Key: e.Key}}
	}
	if !d.traits.Archives {
		d.dump(b)
	}
	return b
}
