// Command specdoc writes the tables of fields in docs/ from the definitions under apis/ and the
// provider's custom resource definitions, and the tables of reasons from the constants under apis/.
// Each table is between two marks of its page. The rest of the page is written by hand.
package main

import (
	"bytes"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	apiextensionsv2 "github.com/crossplane/crossplane/apis/v2/apiextensions/v2"
	extv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"sigs.k8s.io/yaml"
)

func main() {
	if len(os.Args) != 4 {
		fmt.Fprintln(os.Stderr, "usage: specdoc APIS CRDS DOCS")
		os.Exit(2)
	}
	if err := run(os.Args[1], os.Args[2], os.Args[3]); err != nil {
		fmt.Fprintln(os.Stderr, "specdoc:", err)
		os.Exit(1)
	}
}

func run(apis, crds, docs string) error {
	files, err := filepath.Glob(filepath.Join(apis, "*", "definition.yaml"))
	if err != nil {
		return err
	}
	for _, f := range files {
		schema, err := readSchema(f)
		if err != nil {
			return fmt.Errorf("cannot read %s: %w", f, err)
		}
		if err := write(filepath.Join(docs, filepath.Base(filepath.Dir(f))+".md"), "", schema); err != nil {
			return err
		}
	}
	for _, r := range resources {
		f := filepath.Join(crds, r.file)
		schema, err := readCRD(f)
		if err != nil {
			return fmt.Errorf("cannot read %s: %w", f, err)
		}
		if err := write(filepath.Join(docs, r.page), r.prefix, schema); err != nil {
			return err
		}
	}
	return reasons(apis, filepath.Join(docs, "reasons.md"))
}

// resources are the provider's kinds, several of which share a page.
var resources = []struct{ file, page, prefix string }{
	{"backup.example.com_backups.yaml", "backup.md", "Backup "},
	{"backup.example.com_restores.yaml", "backup.md", "Restore "},
	{"backup.example.com_restoregrants.yaml", "backup.md", "RestoreGrant "},
	{"config.example.com_appconfigs.yaml", "appconfig.md", ""},
	{"storeplane.example.com_providerconfigs.yaml", "backup.md", "ProviderConfig "},
}

// write writes the sections of a kind into its page.
func write(page, prefix string, schema *extv1.JSONSchemaProps) error {
	b, err := os.ReadFile(page)
	if err != nil {
		return err
	}
	for _, section := range []string{"spec", "status"} {
		if _, ok := schema.Properties[section]; !ok && section == "status" {
			continue
		}
		if b, err = replace(b, prefix+section, table(schema.Properties[section])); err != nil {
			return fmt.Errorf("cannot write %s: %w", page, err)
		}
	}
	return os.WriteFile(page, b, 0o644)
}

func readCRD(path string) (*extv1.JSONSchemaProps, error) {
	b, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	crd := &extv1.CustomResourceDefinition{}
	if err := yaml.Unmarshal(b, crd); err != nil {
		return nil, err
	}
	if len(crd.Spec.Versions) == 0 || crd.Spec.Versions[0].Schema == nil {
		return nil, errors.New("it has no schema")
	}
	return crd.Spec.Versions[0].Schema.OpenAPIV3Schema, nil
}

func readSchema(path string) (*extv1.JSONSchemaProps, error) {
	b, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	def := &apiextensionsv2.CompositeResourceDefinition{}
	if err := yaml.Unmarshal(b, def); err != nil {
		return nil, err
	}
	schema := &extv1.JSONSchemaProps{}
	return schema, yaml.Unmarshal(def.Spec.Versions[0].Schema.OpenAPIV3Schema.Raw, schema)
}

// replace replaces the text between the marks of a section.
func replace(page []byte, section, text string) ([]byte, error) {
	begin, end := fmt.Appendf(nil, "<!-- %s: made by make generate -->\n", section), fmt.Appendf(nil, "<!-- end of %s -->\n", section)
	before, rest, ok := bytes.Cut(page, begin)
	_, after, ok2 := bytes.Cut(rest, end)
	if !ok || !ok2 {
		return nil, fmt.Errorf("the marks %q and %q are missing", bytes.TrimSpace(begin), bytes.TrimSpace(end))
	}
	return slices.Concat(before, begin, []byte(text), end, after), nil
}

// table returns a table of all fields below a schema, by their paths.
func table(s extv1.JSONSchemaProps) string {
	var b strings.Builder
	b.WriteString("| field | type | default | what |\n|---|---|---|---|\n")
	rows(&b, "", s)
	return b.String()
}

// foreign are the types of fields that Kubernetes documents, by the names of the fields.
var foreign = map[string]string{
	"env":       "[EnvVar](https://kubernetes.io/docs/reference/generated/kubernetes-api/v1.36/#envvar-v1-core) list",
	"envFrom":   "[EnvFromSource](https://kubernetes.io/docs/reference/generated/kubernetes-api/v1.36/#envfromsource-v1-core) list",
	"resources": "[ResourceRequirements](https://kubernetes.io/docs/reference/generated/kubernetes-api/v1.36/#resourcerequirements-v1-core)",
}

func rows(b *strings.Builder, prefix string, s extv1.JSONSchemaProps) {
	for _, name := range slices.Sorted(maps.Keys(s.Properties)) {
		p := s.Properties[name]
		path := prefix + name
		def := ""
		switch {
		case slices.Contains(s.Required, name):
			def = "required"
		case p.Default != nil && string(p.Default.Raw) != "{}":
			def = "`" + string(p.Default.Raw) + "`"
		}
		typ, isForeign := foreign[name]
		if isForeign = isForeign && p.Type != "boolean"; !isForeign {
			typ = typeOf(p)
		}
		fmt.Fprintf(b, "| `%s` | %s | %s | %s |\n", path, typ, def, cell(p.Description))
		switch {
		case isForeign:
		case p.Type == "array" && p.Items != nil && p.Items.Schema != nil:
			rows(b, path+"[].", *p.Items.Schema)
		default:
			rows(b, path+".", p)
		}
	}
}

func typeOf(p extv1.JSONSchemaProps) string {
	switch {
	case len(p.Enum) > 0:
		var values []string
		for _, e := range p.Enum {
			values = append(values, strings.Trim(string(e.Raw), `"`))
		}
		return strings.Join(values, ", ")
	case p.Type == "array" && p.Items != nil && p.Items.Schema != nil:
		return typeOf(*p.Items.Schema) + " list"
	case p.XIntOrString:
		return "quantity"
	case p.Type == "object" && p.AdditionalProperties != nil && p.AdditionalProperties.Schema != nil:
		return "map of " + typeOf(*p.AdditionalProperties.Schema)
	case p.Minimum != nil && p.Maximum != nil:
		return fmt.Sprintf("%s %s–%s", p.Type, number(*p.Minimum), number(*p.Maximum))
	default:
		return p.Type
	}
}

func number(f float64) string { return strconv.FormatFloat(f, 'f', -1, 64) }

// cell returns a description in one line, for a cell of a table.
func cell(s string) string {
	return strings.ReplaceAll(strings.Join(strings.Fields(s), " "), "|", `\|`)
}
