package backup

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	backupv1 "github.com/storeplane/storeplane/apis/backup/v1"
)

// TestBounds: the platform's credentials may be used only for the place that the platform names.
func TestBounds(t *testing.T) {
	const of = "the credentials of ClusterProviderConfig default are for "
	const ways = ", or name credentials of this namespace in destination.secretRef"
	all := &Bounds{Of: "ClusterProviderConfig default", Bucket: "b", Prefix: "p", Endpoint: "https://all", Region: "eu", Reads: []string{"shop"}}
	bare := &Bounds{Of: "ClusterProviderConfig default", Bucket: "b"}
	cases := map[string]struct {
		reason string
		bounds *Bounds
		d      backupv1.Destination
		want   string
		place  backupv1.Destination
	}{
		"Own":      {reason: "Credentials of a namespace go where it says.", d: backupv1.Destination{Bucket: "c", Endpoint: "https://mine"}, place: backupv1.Destination{Bucket: "c", Endpoint: "https://mine"}},
		"Left":     {reason: "What is left out is the platform's.", bounds: all, d: backupv1.Destination{Bucket: "b"}, place: backupv1.Destination{Bucket: "b", Prefix: "p", Endpoint: "https://all", Region: "eu"}},
		"Named":    {reason: "So it is where it is named.", bounds: all, d: backupv1.Destination{Bucket: "b", Prefix: "p/", Endpoint: "https://all/", Region: "eu"}, place: backupv1.Destination{Bucket: "b", Prefix: "p", Endpoint: "https://all", Region: "eu"}},
		"Endpoint": {reason: "Another endpoint would learn the credentials.", bounds: all, d: backupv1.Destination{Bucket: "b", Endpoint: "https://mine"}, want: "destination.endpoint is https://mine, and " + of + "https://all alone: leave it out" + ways},
		"Bucket":   {reason: "Another bucket is another team's.", bounds: all, d: backupv1.Destination{Bucket: "c"}, want: "destination.bucket is c, and " + of + "b alone: name that one" + ways},
		"Prefix":   {reason: "So is another prefix.", bounds: all, d: backupv1.Destination{Bucket: "b", Prefix: "p/other"}, want: "destination.prefix is p/other, and " + of + "p alone: leave it out" + ways},
		"Region":   {reason: "The region is part of the endpoint.", bounds: all, d: backupv1.Destination{Bucket: "b", Region: "us"}, want: "destination.region is us, and " + of + "eu alone: leave it out" + ways},
		"Cloud":    {reason: "Where none is named it is the cloud provider's.", bounds: bare, d: backupv1.Destination{Bucket: "b", Endpoint: "https://mine"}, want: "destination.endpoint is https://mine, and " + of + "no endpoint of another's choice: leave it out" + ways},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			got := ""
			if err := tc.bounds.Check(tc.d); err != nil {
				got = err.Error()
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Fatalf("%s\nCheck(): -want, +got:\n%s", tc.reason, diff)
			}
			if tc.want != "" {
				return
			}
			if diff := cmp.Diff(tc.place, tc.bounds.Place(tc.d)); diff != "" {
				t.Errorf("%s\nPlace(): -want, +got:\n%s", tc.reason, diff)
			}
			again, err := ReadBounds(tc.bounds.Annotations())
			if diff := cmp.Diff(tc.bounds, again); err != nil || diff != "" {
				t.Errorf("%s\nReadBounds(): -want, +got:\n%s%v", tc.reason, diff, err)
			}
		})
	}
	if _, err := ReadBounds(map[string]string{BoundsAnnotation: "{"}); err == nil {
		t.Error("ReadBounds(): want an error for what cannot be read")
	}
}

// TestCheckRead: backups of another namespace may be read only with a grant of that namespace or of
// the platform.
func TestCheckRead(t *testing.T) {
	const refused = "backups of namespace bank may not be restored here with the credentials of ClusterProviderConfig default: ask for a RestoreGrant to shop in namespace bank, or the platform team for a grant where that one is lost, or name credentials of this namespace in destination.secretRef"
	grant := func(of string, to ...string) backupv1.RestoreGrant {
		return backupv1.RestoreGrant{ObjectMeta: metav1.ObjectMeta{Namespace: of, Name: "g"}, Spec: backupv1.RestoreGrantSpec{To: to}}
	}
	going := grant("bank", "shop")
	going.DeletionTimestamp = &metav1.Time{}
	cases := map[string]struct {
		reason string
		bounds *Bounds
		grants []backupv1.RestoreGrant
		want   string
		reads  []string
	}{
		"Own":      {reason: "A namespace's own credentials know no bounds."},
		"Platform": {reason: "The platform has granted it.", bounds: &Bounds{Reads: []string{"shop", "bank"}}, reads: []string{"shop", "bank"}},
		"None":     {reason: "There is no grant.", bounds: &Bounds{Of: "ClusterProviderConfig default", Reads: []string{"shop"}}, want: refused, reads: []string{"shop"}},
		"Granted":  {reason: "The namespace has.", bounds: &Bounds{Reads: []string{"shop"}}, grants: []backupv1.RestoreGrant{grant("bank", "lab"), grant("bank", "lab", "shop")}, reads: []string{"shop"}},
		"Others":   {reason: "It has granted it to another.", bounds: &Bounds{Of: "ClusterProviderConfig default", Reads: []string{"shop"}}, grants: []backupv1.RestoreGrant{grant("bank", "lab")}, want: refused, reads: []string{"shop"}},
		"Strange":  {reason: "A namespace cannot grant what another one owns.", bounds: &Bounds{Of: "ClusterProviderConfig default", Reads: []string{"shop"}}, grants: []backupv1.RestoreGrant{grant("shop", "shop")}, want: refused, reads: []string{"shop"}},
		"Going":    {reason: "A grant that is being deleted is none.", bounds: &Bounds{Of: "ClusterProviderConfig default", Reads: []string{"shop"}}, grants: []backupv1.RestoreGrant{going}, want: refused, reads: []string{"shop"}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			got := ""
			if err := tc.bounds.CheckRead("bank", "shop", tc.grants); err != nil {
				got = err.Error()
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("%s\nCheckRead(): -want, +got:\n%s", tc.reason, diff)
			}
			if tc.bounds == nil {
				return
			}
			if diff := cmp.Diff(tc.reads, tc.bounds.Reads); diff != "" {
				t.Errorf("%s\nReads: -want, +got:\n%s", tc.reason, diff)
			}
		})
	}
}
