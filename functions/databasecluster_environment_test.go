package functions_test

import (
	"testing"

	protectionv1beta1 "github.com/crossplane/crossplane/apis/v2/protection/v1beta1"
	"github.com/google/go-cmp/cmp"
	k8sappsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"

	"github.com/storeplane/storeplane/functions/functionstest"
)

func TestDatabaseClusterEnvironments(t *testing.T) {
	type want struct {
		storage, whenDeleted                string
		budget, spread, affinity, protected bool
		synchronous                         any
		backup                              string
	}
	cases := map[string]struct {
		reason string
		spec   string
		want   want
	}{
		"Development": {
			reason: "The most frugal.", spec: "{size: 1, version: '17', environment: development}",
			want: want{storage: "10Gi", whenDeleted: "Delete", synchronous: false, backup: "True Disabled No backups are asked for"},
		},
		"None": {
			reason: "Without one it is development.", spec: "{size: 2, version: '17'}",
			want: want{storage: "10Gi", whenDeleted: "Delete", synchronous: false, backup: "True Disabled No backups are asked for"},
		},
		"Staging": {
			reason: "Available, not protected.", spec: "{size: 2, version: '17', environment: staging}",
			want: want{storage: "50Gi", whenDeleted: "Delete", budget: true, spread: true, affinity: true, synchronous: false, backup: noBackups},
		},
		"Production": {
			reason: "The safest.", spec: "{size: 3, version: '17', environment: production}",
			want: want{storage: "100Gi", whenDeleted: "Retain", budget: true, spread: true, affinity: true, protected: true, synchronous: "quorum", backup: noBackups},
		},
		"Overridden": {
			reason: "Every default gives way to its field.", spec: "{size: 3, version: '17', environment: production, storageSize: 1Gi, synchronous: false, backup: {enabled: false}, deletionProtection: false}",
			want: want{storage: "1Gi", whenDeleted: "Retain", budget: true, spread: true, affinity: true, synchronous: false, backup: "True Disabled No backups are asked for"},
		},
		"ProductionOfOne": {
			reason: "One server cannot wait for another.", spec: "{size: 1, version: '17', environment: production}",
			want: want{storage: "100Gi", whenDeleted: "Retain", budget: true, spread: true, affinity: true, protected: true, synchronous: false, backup: noBackups},
		},
		"ProtectedDevelopment": {
			reason: "Whoever wants protection has it.", spec: "{size: 1, version: '17', deletionProtection: true}",
			want: want{storage: "10Gi", whenDeleted: "Delete", protected: true, synchronous: false, backup: "True Disabled No backups are asked for"},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			c := functionstest.New(t, functionstest.DatabaseCluster(tc.spec))
			c.Settle()
			set := servers(t, c)
			q := set.Spec.VolumeClaimTemplates[0].Spec.Resources.Requests[corev1.ResourceStorage]
			got := want{
				storage: q.String(), whenDeleted: string(set.Spec.PersistentVolumeClaimRetentionPolicy.WhenDeleted), protected: c.Observed["protection"] != nil,
				budget: c.Observed["disruptionbudget"] != nil, spread: len(set.Spec.Template.Spec.TopologySpreadConstraints) > 0, affinity: set.Spec.Template.Spec.Affinity != nil,
				synchronous: dynamic(t, c)["synchronous_mode"], backup: c.ConditionLine("BackupHealthy"),
			}
			if diff := cmp.Diff(tc.want, got, cmp.AllowUnexported(want{})); diff != "" {
				t.Errorf("%s\n-want, +got:\n%s", tc.reason, diff)
			}
			if got := set.Spec.PersistentVolumeClaimRetentionPolicy.WhenScaled; got != k8sappsv1.RetainPersistentVolumeClaimRetentionPolicyType {
				t.Errorf("Scaling down keeps the data: got %s", got)
			}
			if pdb := c.Observed["disruptionbudget"]; pdb != nil {
				if diff := cmp.Diff(set.Spec.Selector.MatchLabels, functionstest.As[policyv1.PodDisruptionBudget](t, pdb).Spec.Selector.MatchLabels); diff != "" {
					t.Errorf("The budget is of the servers: -want, +got:\n%s", diff)
				}
			}
		})
	}
}

const noBackups = "False BackupProviderNotInstalled Backup verification is unavailable: provider-storeplane is not installed"

// TestDeletionProtection: a claim whose deletion is refused is named by the
// Usage that refuses it.
func TestDeletionProtection(t *testing.T) {
	cases := map[string]struct {
		reason string
		claim  string
		want   *protectionv1beta1.NamespacedResource
		nested bool // of the shop's database
	}{
		"Database":        {reason: "Production is protected.", claim: functionstest.DatabaseCluster(functionstest.Production), want: ofClaim("apps.example.com/v1", "DatabaseCluster", "orders")},
		"DatabaseOff":     {reason: "Unless the claim says no.", claim: functionstest.DatabaseCluster("{size: 1, version: '17', environment: production, deletionProtection: false}")},
		"DatabaseOn":      {reason: "Others are where it says yes.", claim: functionstest.DatabaseCluster("{size: 1, version: '17', deletionProtection: true}"), want: ofClaim("apps.example.com/v1", "DatabaseCluster", "orders")},
		"DatabaseStaging": {reason: "And not else.", claim: functionstest.DatabaseCluster("{size: 1, version: '17', environment: staging}")},
		"Shop":            {reason: "A shop in production is protected, and so is its database.", claim: functionstest.EcommercePlatform(functionstest.BigShop), want: ofClaim("platform.example.com/v1", "EcommercePlatform", "store"), nested: true},
		"ShopOff":         {reason: "Both give way to the shop's field.", claim: functionstest.EcommercePlatform("{environment: production, deletionProtection: false, frontend: {image: f:1}, backend: {image: b:1}}")},
		"ShopOn":          {reason: "In both directions.", claim: functionstest.EcommercePlatform("{deletionProtection: true, frontend: {image: f}, backend: {image: b}}"), want: ofClaim("platform.example.com/v1", "EcommercePlatform", "store"), nested: true},
		"ShopSmall":       {reason: "A small one is not.", claim: functionstest.EcommercePlatform(functionstest.SmallShop)},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			c := functionstest.New(t, tc.claim)
			var got *protectionv1beta1.NamespacedResource
			nested := false
			for _, o := range c.Expand() {
				switch {
				case o.Kind() != "Usage":
				case o.Claim == "DatabaseCluster store-database":
					nested = true
				default:
					u := functionstest.As[protectionv1beta1.Usage](t, o.Object)
					if got != nil || u.APIVersion != "protection.crossplane.io/v1beta1" || u.Spec.By != nil || u.Spec.Reason == nil || *u.Spec.Reason == "" {
						t.Errorf("%s\ngot %+v", tc.reason, u)
					}
					got = &u.Spec.Of
				}
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("%s\n-want, +got:\n%s", tc.reason, diff)
			}
			if nested != tc.nested {
				t.Errorf("%s\nthe shop's database: want protected %t, got %t", tc.reason, tc.nested, nested)
			}
		})
	}
}

func ofClaim(apiVersion, kind, name string) *protectionv1beta1.NamespacedResource {
	return &protectionv1beta1.NamespacedResource{APIVersion: apiVersion, Kind: kind, ResourceRef: &protectionv1beta1.NamespacedResourceRef{Name: name}}
}

// TestDeletionProtectionEnds: to set the field to false takes the Usage away,
// and nothing else.
func TestDeletionProtectionEnds(t *testing.T) {
	for name, claim := range map[string]string{"Database": functionstest.DatabaseCluster(functionstest.Production), "Shop": functionstest.EcommercePlatform(functionstest.BigShop)} {
		t.Run(name, func(t *testing.T) {
			c := functionstest.New(t, claim)
			c.Settle()
			before := c.ComponentNames()
			c.Edit(false, "deletionProtection")
			c.Settle()
			want := []string{}
			for _, n := range before {
				if n != "protection" {
					want = append(want, n)
				}
			}
			if diff := cmp.Diff(want, c.ComponentNames()); diff != "" {
				t.Errorf("-want, +got:\n%s", diff)
			}
		})
	}
}
