package main

import (
	"fmt"
	"os"
	"regexp"

	"sigs.k8s.io/yaml"
)

// requirements are the versions that a release needs.
type requirements struct {
	// kubernetes and crossplane are the oldest versions that it runs on, like 1.30.
	kubernetes, crossplane string

	// testedKubernetes and testedCrossplane are those of the embedded cluster, like v1.36.3.
	testedKubernetes, testedCrossplane string
}

// The files with the oldest versions: crossplane.yaml, which Crossplane checks, and the chart,
// which Helm checks.
const (
	chartMetadata     = "package/helm/Chart.yaml"
	configurationFile = "crossplane.yaml"
)

// oldest matches both constraints: all releases of a minor version and later ones, including those
// with a suffix of a vendor.
var oldest = regexp.MustCompile(`^>=v?([0-9]+\.[0-9]+)\.0-0$`)

func readRequirements() (requirements, error) {
	chart := struct{ KubeVersion string }{}
	if err := readYAML(chartMetadata, &chart); err != nil {
		return requirements{}, err
	}
	crossplane, err := crossplaneConstraint(configurationFile)
	if err != nil {
		return requirements{}, err
	}
	kubernetes := oldest.FindStringSubmatch(chart.KubeVersion)
	if kubernetes == nil {
		return requirements{}, fmt.Errorf("cannot use kubeVersion %q of %s: write it like >=1.30.0-0", chart.KubeVersion, chartMetadata)
	}
	needs := requirements{kubernetes: kubernetes[1], crossplane: crossplane}
	if needs.testedKubernetes, err = required("test/cluster/tools/kubernetes/go.mod", "k8s.io/kubernetes"); err != nil {
		return requirements{}, err
	}
	needs.testedCrossplane, err = required("test/cluster/tools/crossplane/go.mod", "github.com/crossplane/crossplane/v2")
	return needs, err
}

// required returns the required version of a module in a go.mod.
func required(file, module string) (string, error) {
	b, err := os.ReadFile(file)
	if err != nil {
		return "", fmt.Errorf("cannot read the version that a release is tested with: %w", err)
	}
	found := regexp.MustCompile(`(?m)^(?:require)?\s*` + regexp.QuoteMeta(module) + ` (v\S+)`).FindSubmatch(b)
	if found == nil {
		return "", fmt.Errorf("cannot find the version of %s that a release is tested with in %s", module, file)
	}
	return string(found[1]), nil
}

// crossplaneConstraint returns the oldest version of Crossplane in a package's metadata.
func crossplaneConstraint(file string) (string, error) {
	meta := struct {
		Spec struct{ Crossplane struct{ Version string } }
	}{}
	if err := readYAML(file, &meta); err != nil {
		return "", err
	}
	found := oldest.FindStringSubmatch(meta.Spec.Crossplane.Version)
	if found == nil {
		return "", fmt.Errorf("cannot use spec.crossplane.version %q of %s: write it like >=v2.2.0-0", meta.Spec.Crossplane.Version, file)
	}
	return found[1], nil
}

func readYAML(file string, into any) error {
	b, err := os.ReadFile(file)
	if err != nil {
		return fmt.Errorf("cannot read the versions that a release needs: %w", err)
	}
	if err := yaml.Unmarshal(b, into); err != nil {
		return fmt.Errorf("cannot read the versions that a release needs from %s: %w", file, err)
	}
	return nil
}
