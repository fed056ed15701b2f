package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	"k8s.io/apiextensions-apiserver/pkg/apis/apiextensions"
	extv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema"
	crdcel "k8s.io/apiextensions-apiserver/pkg/apiserver/schema/cel"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/cel/model"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/version"
	"k8s.io/apiserver/pkg/admission/plugin/cel"
	"k8s.io/apiserver/pkg/admission/plugin/policy/validating"
	"k8s.io/apiserver/pkg/admission/plugin/webhook/matchconditions"
	celconfig "k8s.io/apiserver/pkg/apis/cel"
	"k8s.io/apiserver/pkg/cel/environment"
)

const repository = "../.."

func TestRequirements(t *testing.T) {
	t.Chdir(repository)
	needs, err := readRequirements()
	if err != nil {
		t.Fatal(err)
	}
	if needs.kubernetes == "" || needs.crossplane == "" || !strings.HasPrefix(needs.testedKubernetes, "v1.") || !strings.HasPrefix(needs.testedCrossplane, "v2.") {
		t.Errorf("want all versions, got %+v", needs)
	}
	for _, file := range []string{"package/function/crossplane.yaml", "package/provider/crossplane.yaml"} {
		if got, err := crossplaneConstraint(file); err != nil || got != needs.crossplane {
			t.Errorf("%s: want Crossplane %s as in %s, got %q, %v", file, needs.crossplane, configurationFile, got, err)
		}
	}
}

// TestPagesNameRequirements: the pages name the versions that a release requires.
func TestPagesNameRequirements(t *testing.T) {
	t.Chdir(repository)
	needs, err := readRequirements()
	if err != nil {
		t.Fatal(err)
	}
	for _, page := range []string{"README.md", "docs/operations.md"} {
		b, err := os.ReadFile(page)
		if err != nil {
			t.Fatal(err)
		}
		text := strings.Join(strings.Fields(string(b)), " ")
		for _, want := range []string{"Kubernetes v" + needs.kubernetes + " or later", "Crossplane v" + needs.crossplane + " or later"} {
			if !strings.Contains(text, want) {
				t.Errorf("%s does not say that it needs %s", page, want)
			}
		}
	}
}

func TestRequirementsRefuse(t *testing.T) {
	cases := map[string]struct{ reason, chart, crossplane, want string }{
		"Nothing": {reason: "A chart without a version would be installed anywhere.", chart: "name: storeplane", crossplane: ">=v2.2.0-0", want: `cannot use kubeVersion "" of package/helm/Chart.yaml: write it like >=1.30.0-0`},
		"Range":   {reason: "What the scripts cannot compare they do not check.", chart: `kubeVersion: ">=1.30.0-0"`, crossplane: "^2.2", want: `cannot use spec.crossplane.version "^2.2" of crossplane.yaml: write it like >=v2.2.0-0`},
		"Tested":  {reason: "A release says what it was tested with.", chart: `kubeVersion: ">=1.30.0-0"`, crossplane: ">=v2.2.0-0", want: "cannot read the version that a release is tested with: open test/cluster/tools/kubernetes/go.mod"},
		"NoChart": {reason: "The files are the tree's.", want: "cannot read the versions that a release needs: open package/helm/Chart.yaml"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Chdir(t.TempDir())
			if tc.chart != "" {
				write(t, chartMetadata, tc.chart)
			}
			write(t, configurationFile, `spec: {crossplane: {version: "`+tc.crossplane+`"}}`)
			if _, err := readRequirements(); err == nil || !strings.Contains(err.Error(), tc.want) {
				t.Errorf("%s\nwant an error with %q, got %v", tc.reason, tc.want, err)
			}
		})
	}
}

func write(t *testing.T, path, data string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(data), 0o644); err != nil {
		t.Fatal(err)
	}
}

// TestOldestKubernetes: the CEL rules of policies and definitions compile in the oldest
// Kubernetes that a release supports.
func TestOldestKubernetes(t *testing.T) {
	t.Chdir(repository)
	needs, err := readRequirements()
	if err != nil {
		t.Fatal(err)
	}
	env := environment.MustBaseEnvSet(version.MustParseGeneric(needs.kubernetes))
	var rules int
	files, err := testRelease(t).installed(os.DirFS("package/install"))
	if err != nil {
		t.Fatal(err)
	}
	for file, data := range files {
		for _, u := range objectsOf(t, data) {
			if u.GetKind() != "ValidatingAdmissionPolicy" {
				continue
			}
			p := &admissionv1.ValidatingAdmissionPolicy{}
			if err := runtime.DefaultUnstructuredConverter.FromUnstructured(u.Object, p); err != nil {
				t.Fatal(err)
			}
			rules += compilePolicy(t, file, p, env)
		}
	}
	for _, d := range definitions(t, ".") {
		for _, v := range d.Spec.Versions {
			rules += compileSchema(t, v.Schema.OpenAPIV3Schema, env)
		}
	}
	if rules < 100 {
		t.Errorf("want all rules compiled, got %d", rules)
	}
}

// compilePolicy compiles a policy as an API server does, and returns the number of its
// expressions.
func compilePolicy(t *testing.T, file string, p *admissionv1.ValidatingAdmissionPolicy, env *environment.EnvSet) int {
	t.Helper()
	compiler, err := cel.NewCompositedCompiler(env)
	if err != nil {
		t.Fatal(err)
	}
	options := cel.OptionalVariableDeclarations{HasParams: p.Spec.ParamKind != nil, HasAuthorizer: true}
	n := 0
	check := func(result cel.CompilationResult) {
		n++
		if result.Error != nil {
			t.Errorf("%s, %s: %s: %v", file, p.Name, result.ExpressionAccessor.GetExpression(), result.Error)
		}
	}
	for _, c := range p.Spec.MatchConditions {
		check(compiler.CompileCELExpression(&matchconditions.MatchCondition{Name: c.Name, Expression: c.Expression}, options, environment.NewExpressions))
	}
	for _, v := range p.Spec.Variables {
		check(compiler.CompileAndStoreVariable(&validating.Variable{Name: v.Name, Expression: v.Expression}, options, environment.NewExpressions))
	}
	for _, v := range p.Spec.Validations {
		check(compiler.CompileCELExpression(&validating.ValidationCondition{Expression: v.Expression}, options, environment.NewExpressions))
		if v.MessageExpression != "" {
			check(compiler.CompileCELExpression(&validating.MessageExpressionCondition{MessageExpression: v.MessageExpression}, options, environment.NewExpressions))
		}
	}
	return n
}

// compileSchema compiles a schema as an API server does on creation, and returns the number of
// its rules.
func compileSchema(t *testing.T, props *extv1.JSONSchemaProps, env *environment.EnvSet) int {
	t.Helper()
	in := &apiextensions.JSONSchemaProps{}
	if err := extv1.Convert_v1_JSONSchemaProps_To_apiextensions_JSONSchemaProps(props, in, nil); err != nil {
		t.Fatal(err)
	}
	root, err := schema.NewStructural(in)
	if err != nil {
		t.Fatal(err)
	}
	n := 0
	var walk func(s *schema.Structural, isRoot bool)
	walk = func(s *schema.Structural, isRoot bool) {
		results, err := crdcel.Compile(s, model.SchemaDeclType(s, isRoot), celconfig.PerCallLimit, env, crdcel.NewExpressionsEnvLoader())
		if err != nil {
			t.Error(err)
		}
		for i, r := range results {
			n++
			if r.Error != nil {
				t.Errorf("%s: %v", s.XValidations[i].Rule, r.Error)
			}
		}
		for name := range s.Properties {
			child := s.Properties[name]
			walk(&child, false)
		}
		if s.Items != nil {
			walk(s.Items, false)
		}
		if s.AdditionalProperties != nil && s.AdditionalProperties.Structural != nil {
			walk(s.AdditionalProperties.Structural, false)
		}
	}
	walk(root, true)
	return n
}
