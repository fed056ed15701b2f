package databasecluster

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	fnv1 "github.com/crossplane/function-sdk-go/proto/v1"
	"google.golang.org/protobuf/types/known/structpb"
	k8sappsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	appsv1 "github.com/storeplane/storeplane/apis/apps/v1"
	backupv1 "github.com/storeplane/storeplane/apis/backup/v1"
	"github.com/storeplane/storeplane/internal/backup"
	"github.com/storeplane/storeplane/internal/build"
	"github.com/storeplane/storeplane/internal/compose"
	"github.com/storeplane/storeplane/internal/instance"
	"github.com/storeplane/storeplane/internal/pgbackrest"
	"github.com/storeplane/storeplane/internal/structs"
)

// Names of components of a restore. They are removed once the cluster has its data.
const (
	source       = "source"
	sourceConfig = "source-config"
	sourceServer = "source-server"
	sourceHost   = "source-service"
	sourceGuard  = "source-networkpolicy"
)

// Names under which objects of the source are requested.
const (
	sourceRequirement           = "restore-backup"
	sourceStoreRequirement      = "restore-store"
	sourceEncryptionRequirement = "restore-encryption"
	sourceGrantsRequirement     = "restore-grants"
)

// restores reports whether the cluster is being filled from a backup. It is false once the
// cluster has had a primary.
func (d *inputs) restores() bool { return d.spec.RestoreFrom != nil && !d.hasData() }

// hasData reports whether a server has ever been primary. The claim's status remembers it where the
// report was deleted.
func (d *inputs) hasData() bool { return d.live.cluster.Primary != "" || d.live.timeline > 0 }

// origin is what a cluster is filled from.
type origin struct {
	restore instance.Restore

	// values are those of the Secret that the servers read: the restore itself, credentials of the
	// store, and the encryption key.
	values map[string]string

	// bounds are what those credentials are for.
	bounds *backup.Bounds

	// authenticates is true if a Secret has credentials of the store.
	authenticates bool

	// config is the configuration of the pgBackRest server that serves the volume with the backups.
	config string

	// cluster is the DatabaseCluster whose backups they are, if it is in this namespace.
	cluster string
}

// origin resolves what a new cluster is filled from. It returns nil if the cluster is not filled.
func (d *inputs) origin(c *compose.Claim) (*origin, error) {
	if !d.restores() {
		return nil, nil
	}
	from := d.spec.RestoreFrom
	if from.ID != "" && d.traits.Archives {
		return nil, compose.Invalidf("restoreFrom.id is not available with engine %s: it restores to a time: create the claim again with restoreFrom.time", d.server)
	}
	if from.BeforeTransaction != "" && d.traits.Archives {
		return nil, compose.Invalidf("restoreFrom.beforeTransaction is not available with engine %s: it restores to a time: create the claim again with restoreFrom.time", d.server)
	}
	if from.Time != nil && !c.IsReview() && from.Time.After(c.Now()) {
		return nil, compose.Invalidf("restoreFrom.time has not come yet: %s", from.Time.UTC().Format("2006-01-02T15:04:05Z"))
	}
	where, credentials, key, err := d.originOf(c)
	if err != nil {
		return nil, err
	}
	o := &origin{restore: where, values: map[string]string{}}
	if !c.IsReview() || from.BackupRef == nil {
		if err := d.checkSource(o); err != nil {
			return nil, compose.Invalidf("restoreFrom: %v", err)
		}
	}
	if where.Namespace == d.Namespace {
		o.cluster = where.Name
	}
	var store, encryption *structpb.Struct
	var pending error
	if credentials.secret != "" {
		if store, err = requireSecretOf(c, sourceStoreRequirement, credentials.secret, credentials.namespace); err != nil {
			pending = err
		}
	}
	if key != nil {
		if encryption, err = requireSecret(c, sourceEncryptionRequirement, key.Name); err != nil {
			pending = err
		}
	}
	generated, err := d.generatedKey(c, &where, key)
	if errors.Is(err, compose.ErrPending) {
		pending = err
	} else if err != nil {
		return nil, err
	}
	if pending != nil {
		return nil, pending
	}
	o.authenticates = authenticates(c, store, where.Destination.Type)
	if !c.IsReview() {
		if err := d.open(c, o, credentials, store); err != nil {
			return nil, err
		}
		if err := o.decrypt(key, encryption, generated); err != nil {
			return nil, err
		}
	}
	if where.Destination.Type == backupv1.Volume {
		o.restore.Host = serviceHost(d.Claim, source, d.Namespace)
	}
	o.restore.Destination.SecretRef, o.restore.System, o.restore.ID, o.restore.Before = nil, from.SystemIdentifier, from.ID, from.BeforeTransaction
	if from.Time != nil {
		o.restore.Time = new(from.Time.UTC())
	}
	encoded, err := json.Marshal(o.restore)
	if err != nil {
		return nil, fmt.Errorf("cannot write what to restore: %w", err)
	}
	o.values[instance.RestoreFile] = string(encoded) + "\n"
	return o, nil
}

// checkSource refuses a place that backups of the engine cannot be read from.
func (d *inputs) checkSource(o *origin) (err error) {
	r := &o.restore
	switch {
	case d.traits.Archives:
		o.config, err = pgbackrest.Repository{Destination: r.Destination, Namespace: r.Namespace, Name: r.Name, Encrypted: r.Encrypted}.VolumeConfig()
		return err
	case r.Destination.Type == backupv1.Volume:
		return fmt.Errorf("the backups of %s/%s are on a volume, which servers of engine %s cannot read: create the claim again with one in an object store, or without restoreFrom to restore a dump with a Restore", r.Namespace, r.Name, d.server)
	}
	return backup.CheckPlace(r.Destination, r.Namespace, r.Name)
}

// open adds the credentials of the store to an origin, and what they are for. It is an error if the
// claim may not read its source with them.
func (d *inputs) open(c *compose.Claim, o *origin, credentials credentialsOf, store *structpb.Struct) (err error) {
	if credentials.secret != "" && store == nil {
		return compose.Invalidf("restoreFrom: Secret %s of namespace %s, which holds the store's credentials, does not exist: create it", credentials.secret, credentials.namespace)
	}
	if o.bounds = credentials.bounds; o.bounds == nil {
		if o.bounds, err = readBounds(store, o.restore.Destination); err != nil {
			return compose.Invalidf("restoreFrom: %v", err)
		}
		if err := d.checkRead(c, o.bounds, o.restore.Namespace); err != nil {
			return err
		}
	}
	o.restore.Destination = o.bounds.Place(o.restore.Destination)
	o.values = storeValues(store)
	return nil
}

// generatedKey returns the key that was generated for the source, for a claim that names none. A Backup of
// pgBackRest declares itself whether it is encrypted. All that is requested is requested at once:
// Crossplane runs a function only so often for what it requires.
func (d *inputs) generatedKey(c *compose.Claim, from *instance.Restore, named *appsv1.SecretKeyReference) (string, error) {
	if named != nil || c.IsReview() || d.spec.RestoreFrom.BackupRef != nil && d.traits.Archives {
		return "", nil
	}
	return d.sourceKey(c, from.Namespace, from.Name)
}

// decrypt adds the key of the encryption to an origin: the one that the claim or the Backup names, or
// else the generated one.
func (o *origin) decrypt(named *appsv1.SecretKeyReference, encryption *structpb.Struct, generated string) error {
	switch {
	case named != nil:
		v, ok := compose.SecretValue(encryption, named.Key)
		if !ok {
			return compose.Invalidf("restoreFrom: Secret %s, which holds the key of the encryption, does not exist or has no key %s: create it", named.Name, named.Key)
		}
		o.values[instance.RestoreKey] = v
	case generated != "":
		o.restore.Encrypted, o.values[instance.RestoreKey] = true, generated
	}
	return nil
}

// credentialsOf are the credentials of a source: a Secret, and what it is for if
// it is the platform's own.
type credentialsOf struct {
	secret, namespace string
	bounds            *backup.Bounds
}

// originOf returns the source of the claim's data, a Backup or a place, with the credentials and
// the encryption key that the source names.
func (d *inputs) originOf(c *compose.Claim) (instance.Restore, credentialsOf, *appsv1.SecretKeyReference, error) {
	from := d.spec.RestoreFrom
	if from.BackupRef == nil {
		r := instance.Restore{Destination: destinationOf(from.Destination), Namespace: cmp.Or(from.Namespace, d.Namespace), Name: from.Name}
		var key *appsv1.SecretKeyReference
		if from.Encryption != nil {
			key, r.Encrypted = &from.Encryption.SecretRef, true
		}
		secret, err := d.sourceCredentials(c, &r)
		return r, secret, key, err
	}
	name := from.BackupRef.Name
	if c.IsReview() {
		of := strings.TrimSuffix(name, "-"+backups)
		if !d.traits.Archives {
			of = name
		}
		return instance.Restore{Namespace: d.Namespace, Name: of}, credentialsOf{}, nil, nil
	}
	if !c.HasKind(backupSchema, backups) {
		return instance.Restore{}, credentialsOf{}, nil, compose.Invalidf("restoreFrom.backupRef: there are no Backups in this cluster: install provider-storeplane, or create the claim again with restoreFrom.destination")
	}
	found, fetched := c.Require(sourceRequirement, &fnv1.ResourceSelector{
		ApiVersion: backupv1.GroupVersion.String(), Kind: backupv1.BackupKind, Namespace: &d.Namespace,
		Match: &fnv1.ResourceSelector_MatchName{MatchName: name},
	})
	if !fetched {
		return instance.Restore{}, credentialsOf{}, nil, compose.ErrPending
	}
	if len(found) == 0 {
		return instance.Restore{}, credentialsOf{}, nil, compose.Invalidf("restoreFrom.backupRef: Backup %s does not exist: create the claim again with restoreFrom.destination if its data still does", name)
	}
	return d.originOfBackup(name, found[0])
}

func (d *inputs) originOfBackup(name string, found *structpb.Struct) (instance.Restore, credentialsOf, *appsv1.SecretKeyReference, error) {
	b := struct {
		ForProvider struct {
			Method string `json:"method"`
			Source struct {
				Type       string `json:"type"`
				Connection struct {
					DatabaseClusterRef struct {
						Name string `json:"name"`
					} `json:"databaseClusterRef"`
				} `json:"connection"`
			} `json:"source"`
			Destination backupv1.Destination `json:"destination"`
			Encryption  *backupv1.Encryption `json:"encryption"`
		} `json:"forProvider"`
	}{}
	if err := structs.Decode(found.GetFields()["spec"].GetStructValue(), &b); err != nil {
		return instance.Restore{}, credentialsOf{}, nil, fmt.Errorf("cannot read Backup %s: %w", name, err)
	}
	p := b.ForProvider
	if p.Method != string(backupv1.Physical) {
		return instance.Restore{}, credentialsOf{}, nil, compose.Invalidf("restoreFrom.backupRef: Backup %s has method %s: create the claim again without restoreFrom, and restore it with a Restore", name, cmp.Or(p.Method, string(backupv1.Logical)))
	}
	if t := p.Source.Type; t != string(d.traits.Type) {
		return instance.Restore{}, credentialsOf{}, nil, compose.Invalidf("restoreFrom.backupRef: Backup %s has source.type %s, and this claim has engine %s: create the claim again with a Backup of the same engine", name, t, d.server)
	}
	r := instance.Restore{Destination: p.Destination, Namespace: d.Namespace, Name: p.Source.Connection.DatabaseClusterRef.Name}
	if !d.traits.Archives {
		// The provider makes them, in the folder of the Backup.
		r.Name = name
		if p.Destination.SecretRef == nil && p.Destination.Type != backupv1.Volume {
			return instance.Restore{}, credentialsOf{}, nil, compose.Invalidf("restoreFrom.backupRef: Backup %s has no destination.secretRef, and its ProviderConfig is not read here: create the claim again with restoreFrom.destination, the bucket, prefix, endpoint and secretRef of its backups, or without secretRef for those in the platform's store, and restoreFrom.name: %s", name, name)
		}
	}
	var key *appsv1.SecretKeyReference
	if p.Encryption != nil {
		key, r.Encrypted = &appsv1.SecretKeyReference{Name: p.Encryption.SecretRef.Name, Key: p.Encryption.SecretRef.Key}, true
	}
	secret := credentialsOf{namespace: d.Namespace}
	if p.Destination.SecretRef != nil {
		secret.secret = p.Destination.SecretRef.Name
	}
	return r, secret, key, nil
}

// sourceCredentials returns the credentials of a place: those that the claim names, or
// else the installation's. Those are for the installation's place, and for backups that
// this namespace may read.
func (d *inputs) sourceCredentials(c *compose.Claim, r *instance.Restore) (credentialsOf, error) {
	if ref := d.spec.RestoreFrom.Destination.SecretRef; ref != nil {
		return credentialsOf{secret: ref.Name, namespace: d.Namespace}, nil
	}
	s := d.settings.Backup
	if s == nil || s.SecretRef == nil || s.SecretRef.Namespace == "" || r.Destination.Type == backupv1.Volume {
		return credentialsOf{}, nil
	}
	out := credentialsOf{bounds: s.Bounds(d.Namespace)}
	out.secret, out.namespace = s.SecretRef.Secret(d.Namespace)
	if err := out.bounds.Check(r.Destination); err != nil {
		return credentialsOf{}, compose.Invalidf("restoreFrom: %v", err)
	}
	if err := d.checkRead(c, out.bounds, r.Namespace); err != nil {
		return credentialsOf{}, err
	}
	r.Destination = out.bounds.Place(r.Destination)
	return out, nil
}

// checkRead refuses to restore the backups of another namespace without a grant. An offline review
// cannot read the grants of that namespace, and assumes that there is one. If a grant is withdrawn
// while the cluster is filled, the claim is refused as long as it has no data: the Secrets that are
// observed prove no grant, since any user who edits Secrets could have written them.
func (d *inputs) checkRead(c *compose.Claim, b *backup.Bounds, of string) error {
	if b.MayRead(of) || c.IsReview() {
		return nil
	}
	var grants []backupv1.RestoreGrant
	if c.HasKind(grantSchema, "") {
		found, fetched := c.Require(sourceGrantsRequirement, &fnv1.ResourceSelector{
			ApiVersion: backupv1.GroupVersion.String(), Kind: backupv1.RestoreGrantKind, Namespace: &of,
			Match: &fnv1.ResourceSelector_MatchLabels{MatchLabels: &fnv1.MatchLabels{}},
		})
		if !fetched {
			return compose.ErrPending
		}
		grants = make([]backupv1.RestoreGrant, len(found))
		for i, g := range found {
			if err := structs.Decode(g, &grants[i]); err != nil {
				return fmt.Errorf("cannot read a RestoreGrant of namespace %s: %w", of, err)
			}
		}
	}
	if err := b.CheckRead(of, d.Namespace, grants); err != nil {
		return compose.Invalidf("restoreFrom: %v", err)
	}
	return nil
}

// addSource declares what the servers read from while they are filled.
func (d *cluster) addSource(add func(compose.Component)) {
	o := d.origin
	if o == nil {
		return
	}
	meta := d.Meta(source, d.server)
	// This copy of the platform's credentials has the same bounds as the first one.
	meta.Annotations = o.bounds.Annotations()
	add(compose.Component{Name: source, Part: credentials, Object: build.Secret(meta, o.values)})
	if o.restore.Destination.Type != backupv1.Volume {
		return
	}
	add(compose.Component{Name: sourceConfig, Part: source, Object: build.ConfigMap(d.Meta(source, d.server), map[string]string{fileRepository: o.config})})
	add(compose.Component{Name: sourceServer, Part: source, Object: d.sourceServer()})
	add(compose.Component{Name: sourceHost, Part: source, Object: d.repositoryService(source, source)})
	add(compose.Component{Name: sourceGuard, Part: source, Object: d.repositoryPolicy(source)})
}

// sourceServer returns the StatefulSet that serves the volume with the backups, if possible on the
// node where the server of these backups has it mounted.
func (d *cluster) sourceServer() *k8sappsv1.StatefulSet {
	s := d.volumeServer(source, &d.live.source, d.origin.restore.Destination.Bucket, d.Name(source))
	if d.origin.cluster != "" {
		s.Spec.Template.Spec.Affinity = &corev1.Affinity{PodAffinity: &corev1.PodAffinity{
			PreferredDuringSchedulingIgnoredDuringExecution: besideServer(build.Scope{Claim: d.origin.cluster}, d.origin.restore.Destination.Bucket),
		}}
	}
	return s
}

// besideServer prefers the node of the pod that serves a volume claim for a DatabaseCluster. One that
// was not created for it is served as namedClaim, or where none was created as repository.
func besideServer(of build.Scope, claim string) []corev1.WeightedPodAffinityTerm {
	prefer := func(weight int32, component string) corev1.WeightedPodAffinityTerm {
		return corev1.WeightedPodAffinityTerm{Weight: weight, PodAffinityTerm: corev1.PodAffinityTerm{
			TopologyKey: corev1.LabelHostname, LabelSelector: &metav1.LabelSelector{MatchLabels: of.Selector(component)},
		}}
	}
	const first, second = 100, 50
	if claim == repositoryClaim(of) {
		return []corev1.WeightedPodAffinityTerm{prefer(first, repository)}
	}
	return []corev1.WeightedPodAffinityTerm{prefer(first, namedClaim), prefer(second, repository)}
}

// restoring returns a message about the progress of the restore, and whether it has failed.
func (d *cluster) restoring() (message string, failed bool) {
	if !d.restores() {
		return "", false
	}
	for i := range d.spec.Size {
		s := d.live.members[d.podName(i)].Restore
		switch {
		case s == nil:
		case s.Failed:
			return s.Message, true
		default:
			message = cmp.Or(message, s.Message)
		}
	}
	held := d.held()
	return cmp.Or(message, held.Message, "The backup is being restored"), message == "" && held.Undecided
}
