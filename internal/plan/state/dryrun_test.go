package state_test

import (
	"errors"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	extv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/storeplane/storeplane/internal/plan"
	"github.com/storeplane/storeplane/internal/plan/state"
	"github.com/storeplane/storeplane/internal/render"
	"github.com/storeplane/storeplane/test/plane/planetest"
)

// pipeline is a user who may get, list, create and patch everything in a namespace, and who neither
// binds Roles nor has the rights that those of a database grant.
const pipeline = "ci"

// tries is the namespace of the claims that are planned with dry runs.
const tries = "tries"

// dryRunPlans checks that plans with dry runs refuse what the API server refuses when the claim is
// applied, and nothing else.
func dryRunPlans(t *testing.T, c client.Client, admin, config *rest.Config) {
	t.Helper()
	prepare(t, c)
	gateway := exposed(map[string]any{"host": "web.example.com", "gateway": map[string]any{"name": "public"}})
	cases := map[string]struct {
		reason     string
		config     *rest.Config
		claim      *unstructured.Unstructured
		namespaces []string
		// rejected is in the messages of what is refused, and unknown in sentences about what was
		// not tried.
		rejected, unknown []string
	}{
		"Replaced": {
			reason: "A field that the edit removes is not there together with the one that it sets.",
			config: config, claim: gateway,
		},
		"Removed": {
			reason: "A policy is asked about the removal of a field.",
			config: config, claim: exposed(nil),
			rejected: []string{"denied request: the ingress stays"},
		},
		"Database": {
			reason: "What the pipeline may not grant, and what refers to an object that is created as well, is not tried.",
			config: config, claim: example(t, "databasecluster/production.yaml", tries),
			unknown: []string{
				"is attempting to grant RBAC permissions not currently held",
				"RoleBinding objects: Role orders-postgresql does not exist yet",
			},
		},
		"NamespaceToCome": {
			reason: "The namespace is created together with the claim.",
			config: admin, claim: example(t, "databasecluster/production.yaml", "to-come"), namespaces: []string{"to-come"},
			unknown: []string{"Namespace to-come does not exist yet, so nothing could be tried"},
		},
		"NamespaceThere": {
			reason: "The namespace that is created together with the claim exists already.",
			config: admin, claim: example(t, "databasecluster/production.yaml", tries), namespaces: []string{tries},
		},
		"NamespaceMissing": {
			reason: "All objects are refused, a RoleBinding too: it is the namespace that is missing, and not its Role.",
			config: admin, claim: example(t, "databasecluster/minimal.yaml", "no-such"),
			rejected: []string{`namespaces "no-such" not found`, "RoleBinding orders-postgresql: "},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			l, err := state.NewLive(tc.config)
			if err != nil {
				t.Fatal(err)
			}
			p, err := plan.New(l)
			if err != nil {
				t.Fatal(err)
			}
			p.Replace, p.DryRun, p.Namespaces = true, l.DryRun, tc.namespaces
			got, err := p.Plan(t.Context(), tc.claim)
			if err != nil {
				t.Fatal(err)
			}
			var rejected []string
			for _, r := range got.Rejected {
				rejected = append(rejected, r.Object.String()+": "+r.Message)
			}
			if got.Refusal != "" || !match(rejected, tc.rejected) || (got.Verdict == plan.Refused) != (len(tc.rejected) > 0) {
				t.Errorf("%s\nwant refused %q, got verdict %s, refusal %q, refused %q", tc.reason, tc.rejected, got.Verdict, got.Refusal, rejected)
			}
			tried := slices.DeleteFunc(slices.Clone(got.Unknown), func(s string) bool {
				return !strings.Contains(s, "API server") || strings.Contains(s, "does not serve")
			})
			if !match(tried, tc.unknown) || slices.ContainsFunc(tried, func(s string) bool { return strings.Contains(s, "\n") }) {
				t.Errorf("%s\nwant unknown %q, got %q", tc.reason, tc.unknown, tried)
			}
		})
	}
}

// match reports whether each text has one of the parts, and each part is in one of the texts.
func match(texts, parts []string) bool {
	return !slices.ContainsFunc(texts, func(text string) bool {
		return !slices.ContainsFunc(parts, func(part string) bool { return strings.Contains(text, part) })
	}) && !slices.ContainsFunc(parts, func(part string) bool {
		return !slices.ContainsFunc(texts, func(text string) bool { return strings.Contains(text, part) })
	})
}

// example returns the claim of an example in a namespace.
func example(t *testing.T, path, namespace string) *unstructured.Unstructured {
	t.Helper()
	all, err := render.Load(filepath.Join("../../../examples", path))
	if err != nil {
		t.Fatal(err)
	}
	all[0].SetNamespace(namespace)
	return all[0]
}

// exposed returns a WebApp with an ingress, or without one where that is nil.
func exposed(ingress map[string]any) *unstructured.Unstructured {
	spec := map[string]any{"image": "registry.example.com/web:v1"}
	if ingress != nil {
		spec["ingress"] = ingress
	}
	u := &unstructured.Unstructured{Object: map[string]any{"spec": spec}}
	u.SetGroupVersionKind(webApp)
	u.SetNamespace(tries)
	u.SetName("exposed")
	return u
}

// routes returns a definition of HTTPRoutes, without which no WebApp may name a Gateway.
func routes() *extv1.CustomResourceDefinition {
	crd := &extv1.CustomResourceDefinition{Spec: extv1.CustomResourceDefinitionSpec{
		Group: "gateway.networking.k8s.io",
		Names: extv1.CustomResourceDefinitionNames{Plural: "httproutes", Singular: "httproute", Kind: "HTTPRoute", ListKind: "HTTPRouteList"},
		Scope: extv1.NamespaceScoped,
		Versions: []extv1.CustomResourceDefinitionVersion{{
			Name: "v1", Served: true, Storage: true,
			Schema: &extv1.CustomResourceValidation{OpenAPIV3Schema: &extv1.JSONSchemaProps{Type: "object", XPreserveUnknownFields: new(true)}},
		}},
	}}
	crd.SetName("httproutes.gateway.networking.k8s.io")
	crd.SetAnnotations(map[string]string{extv1.KubeAPIApprovedAnnotation: "unapproved, for a test"})
	return crd
}

// prepare creates the namespace of the claims, the rights of the pipeline in it, a WebApp with an
// ingress, and a policy by which no WebApp may lose its ingress.
func prepare(t *testing.T, c client.Client) {
	t.Helper()
	named := metav1.ObjectMeta{Namespace: tries, Name: pipeline}
	everything := []rbacv1.PolicyRule{{APIGroups: []string{"*"}, Resources: []string{"*"}, Verbs: []string{"get", "list", "create", "patch"}}}
	kept := metav1.ObjectMeta{Name: "keep-ingress"}
	for _, o := range []client.Object{
		&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: tries}},
		&rbacv1.Role{ObjectMeta: named, Rules: everything},
		&rbacv1.RoleBinding{
			ObjectMeta: named,
			RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: pipeline},
			Subjects:   []rbacv1.Subject{{Kind: "User", APIGroup: rbacv1.GroupName, Name: pipeline}},
		},
		exposed(map[string]any{"host": "web.example.com", "className": "nginx"}),
		&admissionv1.ValidatingAdmissionPolicy{ObjectMeta: kept, Spec: admissionv1.ValidatingAdmissionPolicySpec{
			MatchConstraints: &admissionv1.MatchResources{ResourceRules: []admissionv1.NamedRuleWithOperations{{RuleWithOperations: admissionv1.RuleWithOperations{
				Operations: []admissionv1.OperationType{admissionv1.Update},
				Rule:       admissionv1.Rule{APIGroups: []string{webApp.Group}, APIVersions: []string{"*"}, Resources: []string{"webapps"}},
			}}}},
			Validations: []admissionv1.Validation{{Expression: "!has(oldObject.spec.ingress) || has(object.spec.ingress)", Message: "the ingress stays"}},
		}},
		&admissionv1.ValidatingAdmissionPolicyBinding{ObjectMeta: kept, Spec: admissionv1.ValidatingAdmissionPolicyBindingSpec{
			PolicyName: kept.Name, ValidationActions: []admissionv1.ValidationAction{admissionv1.Deny},
		}},
	} {
		if err := c.Create(t.Context(), o); err != nil {
			t.Fatal(err)
		}
	}
	without := client.RawPatch("application/merge-patch+json", []byte(`{"spec":{"ingress":null}}`))
	planetest.Eventually(t, time.Minute, "the policy is in force", func() error {
		if err := c.Patch(t.Context(), exposed(nil), without, client.DryRunAll); err == nil {
			return errors.New("the removal is accepted")
		} else if !strings.Contains(err.Error(), "the ingress stays") {
			return err
		}
		return nil
	})
}
