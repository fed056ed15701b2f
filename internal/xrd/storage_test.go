package xrd_test

import (
	"fmt"
	"testing"

	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"pgregory.net/rapid"
)

// quantity draws a positive quantity as users write it: with a binary, a decimal or no unit, with a
// fraction, with an exponent.
func quantity() *rapid.Generator[string] {
	return rapid.Custom(func(t *rapid.T) string {
		whole := rapid.IntRange(1, 9999).Draw(t, "whole")
		switch rapid.IntRange(0, 2).Draw(t, "form") {
		case 0:
			unit := rapid.SampledFrom([]string{"", "k", "M", "G", "T", "P", "Ki", "Mi", "Gi", "Ti", "Pi"}).Draw(t, "unit")
			return fmt.Sprintf("%d%s", whole, unit)
		case 1:
			unit := rapid.SampledFrom([]string{"M", "G", "T", "Mi", "Gi", "Ti"}).Draw(t, "unit")
			return fmt.Sprintf("%d.%d%s", whole, rapid.IntRange(0, 99).Draw(t, "fraction"), unit)
		default:
			return fmt.Sprintf("%de%d", whole, rapid.IntRange(0, 12).Draw(t, "exponent"))
		}
	})
}

func TestStorageOnlyGrows(t *testing.T) {
	fields := map[string]struct {
		claim *unstructured.Unstructured
		path  []string
	}{
		"DatabaseCluster":   {claim: parse(t, databaseCluster), path: []string{"spec", "storageSize"}},
		"EcommercePlatform": {claim: parse(t, productionStore), path: []string{"spec", "database", "storage"}},
	}
	for name, f := range fields {
		t.Run(name, func(t *testing.T) {
			rapid.Check(t, func(t *rapid.T) {
				from, to := quantity().Draw(t, "from"), quantity().Draw(t, "to")
				old, claim := f.claim.DeepCopy(), f.claim.DeepCopy()
				if err := unstructured.SetNestedField(old.Object, from, f.path...); err != nil {
					t.Fatal(err)
				}
				if err := unstructured.SetNestedField(claim.Object, to, f.path...); err != nil {
					t.Fatal(err)
				}
				err := schemas.ValidateUpdate(old, claim)
				before, after := resource.MustParse(from), resource.MustParse(to)
				shrinks := after.Cmp(before) < 0
				if shrinks && err == nil {
					t.Fatalf("%s to %s shrinks and is accepted", from, to)
				}
				if !shrinks && err != nil {
					t.Fatalf("%s to %s does not shrink and is refused: %v", from, to, err)
				}
			})
		})
	}
}
