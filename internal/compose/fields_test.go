package compose

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/protobuf/testing/protocmp"
	"google.golang.org/protobuf/types/known/structpb"
	"sigs.k8s.io/yaml"
)

func fromYAML(t testing.TB, text string) *structpb.Struct {
	t.Helper()
	m := map[string]any{}
	if err := yaml.Unmarshal([]byte(text), &m); err != nil {
		t.Fatal(err)
	}
	return mustStruct(t, m)
}

// TestKeepAppliesWhatWasApplied: fields that others have set on an object are not applied, because
// the claim would then own them.
func TestKeepAppliesWhatWasApplied(t *testing.T) {
	cases := map[string]struct {
		reason         string
		observed, want string
	}{
		"Deployment": {
			reason: "The autoscaler's replicas, a person's label and annotation, an injected container and the API server's defaults are theirs.",
			observed: `
apiVersion: apps/v1
kind: Deployment
metadata:
  name: shop-web
  namespace: team
  labels: {app: web, cost: "7"}
  annotations: {deployment.kubernetes.io/revision: "2"}
  managedFields:
  - manager: MANAGER
    operation: Apply
    fieldsV1:
      f:metadata: {f:labels: {f:app: {}}, f:ownerReferences: {'k:{"uid":"u"}': {}}}
      f:spec:
        f:selector: {}
        f:template:
          f:spec:
            f:containers:
              'k:{"name":"app"}':
                .: {}
                f:name: {}
                f:image: {}
                f:ports:
                  'k:{"containerPort":8080,"protocol":"TCP"}': {.: {}, f:containerPort: {}, f:name: {}}
            f:finalizers: {'v:"a"': {}}
  - manager: kube-controller-manager
    operation: Update
    subresource: status
    fieldsV1: {f:status: {}}
  - manager: hpa
    operation: Update
    subresource: scale
    fieldsV1: {f:spec: {f:replicas: {}}}
spec:
  replicas: 7
  selector: {matchLabels: {app: web}}
  template:
    spec:
      finalizers: [a, b]
      containers:
      - {name: sidecar, image: mesh}
      - name: app
        image: web:1
        imagePullPolicy: IfNotPresent
        ports: [{name: http, containerPort: 8080, protocol: TCP}, {name: extra, containerPort: 9090, protocol: TCP}]
status: {replicas: 7}
`,
			want: `
apiVersion: apps/v1
kind: Deployment
metadata: {name: shop-web, namespace: team, labels: {app: web}}
spec:
  selector: {matchLabels: {app: web}}
  template:
    spec:
      finalizers: [a]
      containers:
      - name: app
        image: web:1
        ports: [{name: http, containerPort: 8080, protocol: TCP}]
`,
		},
		"EmptyMap": {
			reason: "A map that was applied without any content stays.",
			observed: `
apiVersion: v1
kind: ConfigMap
metadata:
  name: shop-conf
  namespace: team
  managedFields:
  - {manager: MANAGER, operation: Apply, fieldsV1: {f:data: {.: {}, f:a: {}}}}
data: {a: "1", b: "2"}
`,
			want: "{apiVersion: v1, kind: ConfigMap, metadata: {name: shop-conf, namespace: team}, data: {a: '1'}}",
		},
		"Unknown": {
			reason: "Where managed fields do not say what was applied all of it is kept.",
			observed: `
apiVersion: v1
kind: ConfigMap
metadata: {name: shop-conf, namespace: team, labels: {a: b}, uid: u, managedFields: [{manager: kubectl, operation: Apply, fieldsV1: {f:data: {f:b: {}}}}]}
data: {a: "1", b: "2"}
`,
			want: "{apiVersion: v1, kind: ConfigMap, metadata: {name: shop-conf, namespace: team, labels: {a: b}}, data: {a: '1', b: '2'}}",
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(fromYAML(t, tc.want), claimOf(nil).keep(fromYAML(t, strings.ReplaceAll(tc.observed, "MANAGER", claimOf(nil).manager()))), protocmp.Transform()); diff != "" {
				t.Errorf("%s\nkeep(): -want, +got:\n%s", tc.reason, diff)
			}
		})
	}
}
