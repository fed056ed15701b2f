package backup

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	backupv1 "github.com/storeplane/storeplane/apis/backup/v1"
)

// BoundsAnnotation is the annotation of a Secret that limits what its credentials may be used
// for: Bounds as JSON. It is on the copies of the platform's credentials, so that a Backup that
// names such a copy reaches only the platform's own place.
const BoundsAnnotation = "storeplane.example.com/credentials-for"

// Bounds are the limits of credentials that belong to the platform. Without them the credentials
// would open data of other namespaces, or be sent to an endpoint that a namespace chooses.
type Bounds struct {
	// Of is the owner of the credentials: "ClusterProviderConfig default".
	Of string `json:"of"`

	// Bucket, Prefix, Endpoint and Region are the place that the credentials are for.
	Bucket   string `json:"bucket"`
	Prefix   string `json:"prefix,omitempty"`
	Endpoint string `json:"endpoint,omitempty"`
	Region   string `json:"region,omitempty"`

	// Insecure allows an endpoint without TLS.
	Insecure bool `json:"insecure,omitempty"`

	// Reads are the namespaces whose backups may be read with the credentials.
	Reads []string `json:"reads"`
}

// ReadBounds returns the bounds in a Secret's annotations, or nil if it has none.
func ReadBounds(annotations map[string]string) (*Bounds, error) {
	raw, ok := annotations[BoundsAnnotation]
	if !ok {
		return nil, nil
	}
	b := &Bounds{}
	if err := json.Unmarshal([]byte(raw), b); err != nil {
		return nil, fmt.Errorf("cannot read annotation %s: %w", BoundsAnnotation, err)
	}
	return b, nil
}

// Annotations returns the annotations that carry the bounds, or nil if there are none.
func (b *Bounds) Annotations() map[string]string {
	if b == nil {
		return nil
	}
	raw, _ := json.Marshal(b) //nolint:errchkjson // it cannot fail: all fields are text, text lists or booleans
	return map[string]string{BoundsAnnotation: string(raw)}
}

// Check returns an error unless a destination is the place that the credentials are for. A
// destination may leave out all but the bucket: Place fills in the rest.
func (b *Bounds) Check(d backupv1.Destination) error {
	if b == nil {
		return nil
	}
	for _, f := range []struct{ field, have, want, way string }{
		{"bucket", d.Bucket, b.Bucket, "name that one"},
		{"prefix", strings.Trim(d.Prefix, "/"), strings.Trim(b.Prefix, "/"), "leave it out"},
		{"endpoint", strings.TrimSuffix(d.Endpoint, "/"), strings.TrimSuffix(b.Endpoint, "/"), "leave it out"},
		{"region", d.Region, b.Region, "leave it out"},
	} {
		switch {
		case f.have == f.want, f.have == "" && f.field != "bucket":
		case f.want == "":
			return fmt.Errorf("destination.%s is %s, and the credentials of %s are for no %s of another's choice: leave it out, or name credentials of this namespace in destination.secretRef", f.field, f.have, b.Of, f.field)
		default:
			return fmt.Errorf("destination.%s is %s, and the credentials of %s are for %s alone: %s, or name credentials of this namespace in destination.secretRef", f.field, f.have, b.Of, f.want, f.way)
		}
	}
	return nil
}

// Place returns a destination with what it leaves out filled in from the bounds.
func (b *Bounds) Place(d backupv1.Destination) backupv1.Destination {
	if b != nil {
		d.Prefix, d.Endpoint, d.Region, d.Insecure = b.Prefix, b.Endpoint, b.Region, b.Insecure
	}
	return d
}

// MayRead reports whether backups of a namespace may be read. Credentials without bounds belong
// to the namespace itself: the store decides what they may read.
func (b *Bounds) MayRead(of string) bool { return b == nil || slices.Contains(b.Reads, of) }

// CheckRead returns an error if backups of namespace of may not be restored in namespace to:
// neither the bounds nor a RestoreGrant of the former allows it. A RestoreGrant does not become
// part of the bounds, because they are written on copies of the credentials, which may outlive
// it.
func (b *Bounds) CheckRead(of, to string, grants []backupv1.RestoreGrant) error {
	if b.MayRead(of) || slices.ContainsFunc(grants, func(g backupv1.RestoreGrant) bool { return g.Namespace == of && g.Allows(to) }) {
		return nil
	}
	return fmt.Errorf("backups of namespace %[1]s may not be restored here with the credentials of %[2]s: ask for a RestoreGrant to %[3]s in namespace %[1]s, or the platform team for a grant where that one is lost, or name credentials of this namespace in destination.secretRef", of, b.Of, to)
}
