package backup

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	backupv1 "github.com/storeplane/storeplane/apis/backup/v1"
)

// BoundsAnnotation on a Secret says what the credentials in it are for: Bounds as JSON. It
// is on the copies that are made of the platform's credentials, so that whoever names such
// a copy gets no further than the platform's own place.
const BoundsAnnotation = "storeplane.example.com/credentials-for"

// Bounds of credentials that are the platform's: elsewhere they would open what is not a
// namespace's, or be told to an endpoint of its choice.
type Bounds struct {
	// Of is whose credentials they are: "ClusterProviderConfig default".
	Of string `json:"of"`

	// Bucket, Prefix, Endpoint and Region of the place.
	Bucket   string `json:"bucket"`
	Prefix   string `json:"prefix,omitempty"`
	Endpoint string `json:"endpoint,omitempty"`
	Region   string `json:"region,omitempty"`

	// Insecure endpoints have no TLS.
	Insecure bool `json:"insecure,omitempty"`

	// Reads are the namespaces whose backups may be read with them.
	Reads []string `json:"reads"`
}

// ReadBounds from a Secret's annotations, nil where its credentials have none.
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

// Annotations that carry the bounds, nil for none.
func (b *Bounds) Annotations() map[string]string {
	if b == nil {
		return nil
	}
	// It cannot fail: all of it is text.
	raw, _ := json.Marshal(b)
	return map[string]string{BoundsAnnotation: string(raw)}
}

// Check that a destination is the place that the credentials are for. What it leaves out
// it takes from there, but for the bucket: see Place.
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

// Place is a destination with what it leaves out.
func (b *Bounds) Place(d backupv1.Destination) backupv1.Destination {
	if b != nil {
		d.Prefix, d.Endpoint, d.Region, d.Insecure = b.Prefix, b.Endpoint, b.Region, b.Insecure
	}
	return d
}

// MayRead tells whether backups of a namespace may be read. Credentials without bounds are
// a namespace's own: what they may read the store knows.
func (b *Bounds) MayRead(of string) bool { return b == nil || slices.Contains(b.Reads, of) }

// CheckRead says why backups of a namespace may not be read, if they may not: neither the
// platform has granted it nor one of the RestoreGrants of that namespace. Such a grant does
// not become part of the bounds: those are written on copies of the credentials, which may
// outlive it.
func (b *Bounds) CheckRead(of, to string, grants []backupv1.RestoreGrant) error {
	if b.MayRead(of) || slices.ContainsFunc(grants, func(g backupv1.RestoreGrant) bool { return g.Namespace == of && g.Allows(to) }) {
		return nil
	}
	return fmt.Errorf("backups of namespace %[1]s may not be restored here with the credentials of %[2]s: ask for a RestoreGrant to %[3]s in namespace %[1]s, or the platform team for a grant where that one is lost, or name credentials of this namespace in destination.secretRef", of, b.Of, to)
}
