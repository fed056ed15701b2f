package functions_test

import (
	"testing"

	protectionv1beta1 "github.com/crossplane/crossplane/apis/v2/protection/v1beta1"
	"github.com/google/go-cmp/cmp"

	"github.com/storeplane/storeplane/functions/functionstest"
)

// TestDeletionProtection: the Usage that protects a claim from deletion refers to that claim.
func TestDeletionProtection(t *testing.T) {
	cases := map[string]struct {
		reason string
		claim  string
		want   *protectionv1beta1.NamespacedResource
		nested bool // the claim of the EcommercePlatform's database
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

// TestDeletionProtectionEnds: setting the field to false removes the Usage, and nothing else.
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

// TestProtectionsAreApart: a DatabaseCluster and an EcommercePlatform of the same name share no
// object.
func TestProtectionsAreApart(t *testing.T) {
	names := map[string]string{}
	for _, claim := range []string{functionstest.DatabaseCluster(functionstest.Production), functionstest.EcommercePlatform(functionstest.BigShop)} {
		c := functionstest.New(t, claim)
		functionstest.Set(c.Claim, "store", "metadata", "name")
		c.Settle()
		for component, o := range c.Observed {
			key := functionstest.Get(o, "kind").GetStringValue() + " " + functionstest.Get(o, "metadata", "name").GetStringValue()
			if other := names[key]; other != "" {
				t.Errorf("%s is %s of both kinds", key, component)
			}
			names[key] = component
		}
	}
}
