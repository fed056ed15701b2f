package xrd_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/storeplane/storeplane/internal/xrd"
)

const header = `
apiVersion: apiextensions.crossplane.io/v2
kind: CompositeResourceDefinition
metadata:
  name: things.example.org
spec:
  group: example.org
  names: {kind: Thing, plural: things}
`

// version is a definition up to the fields of its schema.
const version = header + `
  scope: Namespaced
  versions:
  - name: v1
    served: true
    referenceable: true
    schema:
      openAPIV3Schema:
        type: object`

func TestNew(t *testing.T) {
	cases := map[string]struct {
		reason     string
		definition string
		want       string
	}{
		"Smallest": {
			reason: "A definition that Crossplane copies whole is fine.",
			definition: version + `
        properties:
          spec: {type: object, properties: {size: {type: integer, default: 1}}}
`,
		},
		"NoScope": {
			reason: "Without a scope Crossplane's tools disagree about it.",
			definition: header + `
  versions: []
`,
			want: `cannot use CompositeResourceDefinition "things.example.org": its scope is "", not "Namespaced"`,
		},
		"AnotherKind": {
			reason:     "Only the definition of today's Crossplane is read.",
			definition: `{apiVersion: apiextensions.crossplane.io/v1, kind: CompositeResourceDefinition}`,
			want:       `cannot parse CompositeResourceDefinition: it is a "CompositeResourceDefinition" of "apiextensions.crossplane.io/v1"`,
		},
		"Lost": {
			reason: "What Crossplane drops at the root, in spec and in status is named, below them nothing is lost.",
			definition: version + `
        maxProperties: 9
        properties:
          other: {type: string}
          spec:
            type: object
            default: {}
            allOf: [{required: [a]}]
            properties:
              a: {type: object, default: {}, maxProperties: 3, additionalProperties: {type: string}}
          status:
            type: object
            anyOf: [{required: [b]}]
            properties:
              conditions: {type: array, items: {type: string}}
`,
			want: `cannot use CompositeResourceDefinition "things.example.org": Crossplane does not copy these parts of its schema into the CustomResourceDefinition, or replaces them:
  v1.maxProperties
  v1.properties.other
  v1.properties.spec.allOf
  v1.properties.spec.default
  v1.properties.status.anyOf
  v1.properties.status.properties.conditions.items.type`,
		},
		"NoSchemaField": {
			reason: "What is no part of a schema is lost as well.",
			definition: version + `
        properties:
          spec: {type: object, properties: {size: {type: integer, minValue: 1}}}
`,
			want: `cannot use CompositeResourceDefinition "things.example.org": Crossplane does not copy these parts of its schema into the CustomResourceDefinition, or replaces them:
  v1.properties.spec.properties.size.minValue`,
		},
		"TooExpensiveRule": {
			reason: "An API server refuses rules that may take too long, which a bound on each list prevents.",
			definition: version + `
        properties:
          spec:
            type: object
            properties: {names: {type: array, items: {type: string}}}
            x-kubernetes-validations:
            - rule: self.names.all(a, self.names.all(b, a == b))
`,
			want: `cannot accept CustomResourceDefinition "things.example.org": [spec.validation.openAPIV3Schema.properties[spec].x-kubernetes-validations[0].rule: Forbidden: estimated rule cost exceeds budget by factor of more than 100x (try simplifying the rule, or adding maxItems, maxProperties, and maxLength where arrays, maps, and strings are declared), spec.validation.openAPIV3Schema.properties[spec].x-kubernetes-validations[0].rule: Forbidden: contributed to estimated rule cost total exceeding cost limit for entire OpenAPIv3 schema, spec.validation.openAPIV3Schema: Forbidden: x-kubernetes-validations estimated rule cost total for entire OpenAPIv3 schema exceeds budget by factor of more than 100x (try simplifying the rule, or adding maxItems, maxProperties, and maxLength where arrays, maps, and strings are declared)]`,
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			_, err := xrd.New([]byte(tc.definition))
			if diff := cmp.Diff(tc.want, text(err)); diff != "" {
				t.Errorf("\n%s\nNew(...): -want, +got:\n%s", tc.reason, diff)
			}
		})
	}
}
