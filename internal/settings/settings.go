// Package settings reads what an installation may configure for all claims: one EnvironmentConfig
// named storeplane. Everything works without it.
package settings

import (
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	appsv1 "github.com/storeplane/storeplane/apis/apps/v1"
	backupv1 "github.com/storeplane/storeplane/apis/backup/v1"
	storeplanev1 "github.com/storeplane/storeplane/apis/storeplane/v1"
	"github.com/storeplane/storeplane/internal/backup"
	"github.com/storeplane/storeplane/internal/compose"
	"github.com/storeplane/storeplane/internal/images"
	"github.com/storeplane/storeplane/internal/waves"
)

// Settings are those of an installation: the data of the EnvironmentConfig storeplane.
type Settings struct {
	// ImageRegistry is the registry and path of Storeplane's own images, for example
	// registry.example.com/storeplane. It defaults to the one that the function's own image was
	// built for.
	ImageRegistry string `json:"imageRegistry,omitempty"`

	// Digests of Storeplane's own images are those of the release. No installation sets them: a
	// registry of its own holds copies of the images.
	Digests images.Digests `json:"-"`

	// Ingress of all claims.
	Ingress Ingress `json:"ingress,omitzero"`

	// StorageClassName of volumes whose claim names none. Defaults to the
	// cluster's default class.
	StorageClassName string `json:"storageClassName,omitempty"`

	// Backup is the destination of backups whose claim names none.
	Backup *Backup `json:"backup,omitempty"`

	// Monitoring of all claims.
	Monitoring Monitoring `json:"monitoring,omitzero"`

	// Policy holds the guardrails of all claims.
	Policy Policy `json:"policy,omitzero"`

	// Version is that of the release with which claims are composed, and AdmitAll is true if no
	// upgrade waits. An installation sets neither.
	Version  string `json:"-"`
	AdmitAll bool   `json:"-"`

	// Maintenance is when pods may be replaced for a new release or for other settings, of claims
	// without a window of their own, by environment: development, staging or production.
	Maintenance map[appsv1.Environment]*appsv1.Maintenance `json:"maintenance,omitempty"`

	// Upgrades of claims.
	Upgrades Upgrades `json:"upgrades,omitzero"`

	// PollInterval is the interval in which Crossplane composes a claim that has settled, although
	// nothing that it watches has changed: a duration like 1m, from 10s to 24h. Without it each
	// claim is composed every 10 to 30 minutes. Crossplane before 2.4 does not watch this
	// EnvironmentConfig, nor Secrets and grants that claims name: there it is also how long a
	// change of those takes to reach claims.
	PollInterval string `json:"pollInterval,omitempty"`
}

// Interval returns PollInterval, or 0 if there is none.
func (s *Settings) Interval() time.Duration {
	d, _ := time.ParseDuration(s.PollInterval) // It has been checked.
	return d
}

// Upgrades are the settings of upgrades.
type Upgrades struct {
	// Urgent are versions of Storeplane that wait for no maintenance window, for example v0.2.1,
	// since they fix a vulnerability. A later version contains them.
	Urgent []string `json:"urgent,omitempty"`

	// Waves in which claims are upgraded to another release or to other settings, one after the
	// other. Without any, all claims are upgraded at once, each in its window if it has one.
	Waves []waves.Wave `json:"waves,omitempty"`
}

// Policy are the settings of guardrails.
type Policy struct {
	// ApprovedRegistries are the registries that images of claims may come from: hosts, with or
	// without a path. Without any, images may come from all registries.
	ApprovedRegistries []string `json:"approvedRegistries,omitempty"`

	// AllowedIngressHosts are the hosts that claims may have: names, or *.example.com for all below
	// a domain. {namespace} in one stands for the claim's namespace. Without any, claims may have
	// all hosts.
	AllowedIngressHosts []string `json:"allowedIngressHosts,omitempty"`

	// AllowedIngressAnnotations are the annotations that claims may set on an Ingress or HTTPRoute:
	// keys, or example.com/* for all of a prefix. Without any, claims may set all annotations.
	AllowedIngressAnnotations []string `json:"allowedIngressAnnotations,omitempty"`

	// AllowedIngressClasses are the classes that claims may name: names of IngressClasses, and
	// Gateways as namespace/name. {namespace} in one stands for the claim's namespace. Without any,
	// claims may name all classes.
	AllowedIngressClasses []string `json:"allowedIngressClasses,omitempty"`

	// AllowedTolerations are the keys of taints that pods of claims may tolerate. Without any, they
	// may tolerate all taints.
	AllowedTolerations []string `json:"allowedTolerations,omitempty"`

	// AllowedNodeSelectors are the labels of nodes that claims may name: keys, or key=value.
	// Without any, claims may name all labels.
	AllowedNodeSelectors []string `json:"allowedNodeSelectors,omitempty"`

	// AllowedPriorityClasses are the PriorityClasses that claims may name. Without any, claims may
	// name all.
	AllowedPriorityClasses []string `json:"allowedPriorityClasses,omitempty"`

	// AllowedPodLabels and AllowedPodAnnotations are those that claims may set on their pods: keys,
	// or example.com/* for all of a prefix. Without any, claims may set all except Storeplane's
	// own.
	AllowedPodLabels      []string `json:"allowedPodLabels,omitempty"`
	AllowedPodAnnotations []string `json:"allowedPodAnnotations,omitempty"`
}

// Backup is a destination as in a claim, except that its Secret is named with its namespace, and
// copied into that of each claim.
type Backup struct {
	Type      string     `json:"type"`
	Bucket    string     `json:"bucket,omitempty"`
	Prefix    string     `json:"prefix,omitempty"`
	Endpoint  string     `json:"endpoint,omitempty"`
	Region    string     `json:"region,omitempty"`
	SecretRef *SecretRef `json:"secretRef,omitempty"`

	// Encryption of databases whose claims name no key. Generated creates one for each new database
	// and stores it in the claim's namespace, and a copy in namespace storeplane-escrow. None
	// leaves their backups unencrypted. Defaults to Generated, except for type volume, where each
	// claim has a volume of its own: there it is None.
	Encryption string `json:"encryption,omitempty"`

	// Grants let claims of one namespace restore backups that another one has made with the Secret,
	// for example after a namespace is lost.
	Grants []Grant `json:"grants,omitempty"`
}

// SecretRef names a Secret. Without a namespace it is in that of each claim.
type SecretRef struct {
	Name      string `json:"name"`
	Namespace string `json:"namespace,omitempty"`

	// PerNamespace is true if there is one Secret for each namespace of claims, whose name follows
	// after a hyphen: store-shop.
	PerNamespace bool `json:"perNamespace,omitempty"`

	// Shared is true if all claims use this one Secret: users who may read Secrets in the namespace
	// of a claim can then read and delete the backups of all claims.
	Shared bool `json:"shared,omitempty"`
}

// Grant lets namespaces restore the backups of another one.
type Grant struct {
	Of string   `json:"of"`
	To []string `json:"to"`
}

// Secret returns the name of the Secret for claims of a namespace, and the namespace that it is in.
func (r *SecretRef) Secret(namespace string) (name, in string) {
	switch {
	case r.Namespace == "":
		return r.Name, namespace
	case r.PerNamespace:
		return r.Name + "-" + namespace, r.Namespace
	}
	return r.Name, r.Namespace
}

// Bounds returns the bounds of the Secret's credentials in a namespace, or nil if the Secret is the
// namespace's own.
func (b *Backup) Bounds(namespace string) *backup.Bounds {
	if b.SecretRef == nil || b.SecretRef.Namespace == "" {
		return nil
	}
	return b.Readable(namespace)
}

// Readable returns the place of backups, and of which namespaces a namespace may read them,
// whatever credentials it has: the platform decides which namespaces get the keys that encrypt
// them.
func (b *Backup) Readable(namespace string) *backup.Bounds {
	out := &backup.Bounds{Of: "EnvironmentConfig storeplane", Bucket: b.Bucket, Prefix: b.Prefix, Endpoint: b.Endpoint, Region: b.Region, Reads: []string{namespace}}
	for _, g := range b.Grants {
		if slices.Contains(g.To, namespace) {
			out.Reads = append(out.Reads, g.Of)
		}
	}
	return out
}

// Values of Backup.Encryption.
const (
	EncryptionNone      = string(storeplanev1.EncryptionNone)
	EncryptionGenerated = string(storeplanev1.EncryptionGenerated)
)

// Generates reports whether new databases get a generated key for their backups.
func (b *Backup) Generates() bool {
	return b != nil && b.Type != string(backupv1.Volume) && b.Encryption != EncryptionNone
}

// Destination returns the destination of a claim that names none.
func (b *Backup) Destination() *appsv1.BackupDestination {
	d := &appsv1.BackupDestination{Type: b.Type, Bucket: b.Bucket, Prefix: b.Prefix, Endpoint: b.Endpoint, Region: b.Region}
	if b.SecretRef != nil {
		d.SecretRef = &appsv1.LocalSecretReference{Name: b.SecretRef.Name}
	}
	return d
}

// Monitoring are the settings of monitoring.
type Monitoring struct {
	// Namespace in which Prometheus' pods run. Network policies admit it to metrics. Without it
	// they admit no namespace.
	Namespace string `json:"namespace,omitempty"`
}

// Ingress are the settings of ingresses.
type Ingress struct {
	// ClassName of Ingresses whose claim names none.
	ClassName string `json:"className,omitempty"`

	// Namespace in which the ingress controller's pods run. Network policies admit it. Without it
	// they admit all namespaces to pods that have an ingress.
	Namespace string `json:"namespace,omitempty"`
}

var (
	registry = regexp.MustCompile(`^[a-z0-9][a-z0-9.-]*(:[0-9]+)?(/[a-z0-9._-]+)*$`)
	// An image's registry always has a host: a dot, a port, or localhost.
	approved = regexp.MustCompile(`^(localhost|[a-z0-9-]+(\.[a-z0-9-]+)+(:[0-9]+)?|[a-z0-9-]+:[0-9]+)(/[a-z0-9._-]+)*$`)
	endpoint = regexp.MustCompile(`^https://[^\s/]+/?$`)

	hostPattern  = regexp.MustCompile(`^(\*\.)?([a-z0-9-]|\{namespace\})+(\.([a-z0-9-]|\{namespace\})+)*$`)
	classPattern = regexp.MustCompile(`^(([a-z0-9-]|\{namespace\})+/)?[a-z0-9]([-a-z0-9.]*[a-z0-9])?$`)
	labelKey     = regexp.MustCompile(`^([a-z0-9][a-z0-9.-]*/)?[A-Za-z0-9][A-Za-z0-9._-]*$`)
	keyPattern   = regexp.MustCompile(`^(([a-z0-9][a-z0-9.-]*/)?[A-Za-z0-9][A-Za-z0-9._-]*|[a-z0-9][a-z0-9.-]*/\*)$`)
	labelPattern = regexp.MustCompile(`^([a-z0-9][a-z0-9.-]*/)?[A-Za-z0-9][A-Za-z0-9._-]*(=[A-Za-z0-9._-]*)?$`)

	dnsName = regexp.MustCompile(`^[a-z0-9]([-a-z0-9.]*[a-z0-9])?$`)
)

// Image returns one of Storeplane's own images, by its name without a registry.
func (s *Settings) Image(name string) string {
	return images.Set{Registry: s.ImageRegistry, Digests: s.Digests}.Image(name)
}

// Read returns the installation's settings over the given defaults. Settings that cannot be used
// are an error of the claim, unless the claim continues with its previous ones: see
// compose.Claim.Settings.
func Read(c *compose.Claim, defaults Settings) (Settings, error) {
	s := defaults
	err := c.Settings(func(data compose.Data) (any, error) {
		var err error
		if s, err = parse(data, defaults); err != nil {
			return nil, err
		}
		used := Settings{}
		err = data.Decode(&used)
		return used, err
	})
	return s, err
}

// parse reads the data of the EnvironmentConfig. Settings that were accepted before are not checked
// again.
func parse(data compose.Data, defaults Settings) (Settings, error) {
	s := defaults
	if err := data.Decode(&s); err != nil {
		return Settings{}, err
	}
	if s.ImageRegistry == "" {
		s.ImageRegistry = defaults.ImageRegistry
	}
	if data.IsAccepted() {
		s.Backup = s.Backup.asAccepted()
		return s, nil
	}
	if err := s.check(); err != nil {
		return Settings{}, err
	}
	// With a misspelt field a wave would take all claims.
	raw := struct {
		Upgrades struct {
			Waves []map[string]any `json:"waves"`
		} `json:"upgrades"`
	}{}
	if err := data.Decode(&raw); err != nil {
		return Settings{}, err
	}
	if err := waves.CheckFields(raw.Upgrades.Waves); err != nil {
		return Settings{}, compose.Invalidf("cannot use EnvironmentConfig storeplane: data.upgrades.waves%v", err)
	}
	return s, nil
}

// check checks all settings.
func (s *Settings) check() error {
	checks := []struct {
		field, value string
		valid        *regexp.Regexp
		want         string
	}{
		{"imageRegistry", s.ImageRegistry, registry, "a registry and path like registry.example.com/storeplane"},
		{"ingress.className", s.Ingress.ClassName, dnsName, "the name of an IngressClass"},
		{"ingress.namespace", s.Ingress.Namespace, dnsName, "the name of a namespace"},
		{"monitoring.namespace", s.Monitoring.Namespace, dnsName, "the name of a namespace"},
		{"storageClassName", s.StorageClassName, dnsName, "the name of a StorageClass"},
	}
	for _, k := range checks {
		if k.value != "" && !k.valid.MatchString(k.value) {
			return compose.Invalidf("cannot use EnvironmentConfig storeplane: data.%s must be %s, is %q", k.field, k.want, k.value)
		}
	}
	if err := s.Upgrades.check(); err != nil {
		return err
	}
	if s.PollInterval != "" {
		if d, err := time.ParseDuration(s.PollInterval); err != nil || d < 10*time.Second || d > 24*time.Hour {
			return compose.Invalidf("cannot use EnvironmentConfig storeplane: data.pollInterval must be a duration from 10s to 24h, like 1m, is %q", s.PollInterval)
		}
	}
	if err := s.checkMaintenance(); err != nil {
		return err
	}
	if err := waves.Check(s.Upgrades.Waves); err != nil {
		return compose.Invalidf("cannot use EnvironmentConfig storeplane: data.upgrades.waves%v", err)
	}
	if err := s.Backup.check(); err != nil {
		return err
	}
	return s.Policy.check()
}

// check checks that each registry can be that of an image: one that cannot would approve nothing,
// without a message.
func (p *Policy) check() error {
	for i, r := range p.ApprovedRegistries {
		if !approved.MatchString(r) {
			return compose.Invalidf("cannot use EnvironmentConfig storeplane: data.policy.approvedRegistries[%d] must be the host of a registry with or without a path, like registry.example.com/team, is %q", i, r)
		}
	}
	for _, l := range []struct {
		field  string
		values []string
		valid  *regexp.Regexp
		want   string
	}{
		{"allowedIngressHosts", p.AllowedIngressHosts, hostPattern, "a host like shop.example.com, *.example.com or {namespace}.example.com"},
		{"allowedIngressAnnotations", p.AllowedIngressAnnotations, keyPattern, "the key of an annotation like example.com/rate, or example.com/*"},
		{"allowedIngressClasses", p.AllowedIngressClasses, classPattern, "the name of an IngressClass, or namespace/name of a Gateway"},
		{"allowedTolerations", p.AllowedTolerations, labelKey, "the key of a taint like example.com/gpu"},
		{"allowedNodeSelectors", p.AllowedNodeSelectors, labelPattern, "a label like example.com/disk or example.com/disk=fast"},
		{"allowedPriorityClasses", p.AllowedPriorityClasses, dnsName, "the name of a PriorityClass"},
		{"allowedPodLabels", p.AllowedPodLabels, keyPattern, "the key of a label like example.com/team, or example.com/*"},
		{"allowedPodAnnotations", p.AllowedPodAnnotations, keyPattern, "the key of an annotation like example.com/rate, or example.com/*"},
	} {
		for i, v := range l.values {
			if !l.valid.MatchString(v) {
				return compose.Invalidf("cannot use EnvironmentConfig storeplane: data.policy.%s[%d] must be %s, is %q", l.field, i, l.want, v)
			}
		}
	}
	return nil
}

// check checks what the XRD checks of a claim's own destination.
func (b *Backup) check() error {
	fault := ""
	switch {
	case b == nil:
	case !slices.Contains([]backupv1.StoreType{backupv1.S3, backupv1.GCS, backupv1.Azure, backupv1.Volume}, backupv1.StoreType(b.Type)):
		fault = "type must be s3, gcs, azure or volume, is " + strconv.Quote(b.Type)
	case b.Type != string(backupv1.Volume) && b.Bucket == "":
		fault = "bucket is needed for type " + b.Type
	case b.Type == string(backupv1.Volume) && b.Bucket != "":
		fault = "bucket must be left out for type volume: each claim gets a volume of its own"
	case b.Endpoint != "" && !endpoint.MatchString(b.Endpoint):
		fault = "endpoint must be a URL like https://store.example.com, is " + strconv.Quote(b.Endpoint)
	case strings.HasPrefix(b.Prefix, "/") || strings.Contains(b.Prefix, "..") || strings.Contains(b.Prefix, "//"):
		fault = "prefix must be a relative path like team/backups, is " + strconv.Quote(b.Prefix)
	case b.SecretRef != nil && !dnsName.MatchString(b.SecretRef.Name):
		fault = "secretRef.name must be the name of a Secret, is " + strconv.Quote(b.SecretRef.Name)
	case b.SecretRef != nil && b.SecretRef.Namespace != "" && !dnsName.MatchString(b.SecretRef.Namespace):
		fault = "secretRef.namespace must be the name of a namespace, is " + strconv.Quote(b.SecretRef.Namespace)
	case b.SecretRef != nil && b.SecretRef.Namespace == "" && (b.SecretRef.PerNamespace || b.SecretRef.Shared):
		fault = "secretRef.perNamespace and shared need secretRef.namespace: without it each namespace has a Secret of its own"
	case b.SecretRef != nil && b.SecretRef.Namespace != "" && b.SecretRef.PerNamespace == b.SecretRef.Shared:
		fault = "secretRef needs either perNamespace: true, for a Secret " + b.SecretRef.Name + "-<namespace> for the claims of each namespace, or shared: true, for one that lets a user who may read Secrets in one of them read and delete the backups of all"
	case !slices.Contains([]string{"", EncryptionNone, EncryptionGenerated}, b.Encryption):
		fault = "encryption must be None or Generated, is " + strconv.Quote(b.Encryption)
	case b.Encryption == EncryptionGenerated && b.Type == string(backupv1.Volume):
		fault = "encryption: Generated is for stores that namespaces share: type volume is a volume for each claim"
	case slices.ContainsFunc(b.Grants, func(g Grant) bool { return !dnsName.MatchString(g.Of) || len(g.To) == 0 }):
		fault = "grants need of, the namespace whose backups may be restored, and to, the namespaces that may"
	}
	if fault != "" {
		return compose.Invalidf("cannot use EnvironmentConfig storeplane: data.backup.%s", fault)
	}
	return nil
}

// asAccepted returns settings that an older release accepted with their meaning at that time: a
// Secret with a namespace was one for all claims, before perNamespace or shared had to be set.
func (b *Backup) asAccepted() *Backup {
	if b == nil || b.SecretRef == nil || b.SecretRef.Namespace == "" || b.SecretRef.PerNamespace {
		return b
	}
	out, ref := *b, *b.SecretRef
	ref.Shared = true
	out.SecretRef = &ref
	return &out
}
