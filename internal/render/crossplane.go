package render

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"

	"github.com/storeplane/storeplane/internal/converge"
)

// Tools are the programs that Renderer.Crossplane needs.
type Tools struct {
	// CLI is the crossplane command line tool.
	CLI string

	// Core is Crossplane's own binary, which runs the real reconciler.
	Core string

	// Function is the binary of Storeplane's function.
	Function string

	// FunctionArgs are arguments of the function beside those with which it is served here.
	FunctionArgs []string
}

// Check checks that Crossplane's programs exist.
func (t Tools) Check() error {
	for _, p := range []struct{ what, path, env string }{
		{"the crossplane command line tool", t.CLI, "CROSSPLANE_CLI"},
		{"Crossplane's own binary", t.Core, "CROSSPLANE_CORE"},
	} {
		if p.path == "" {
			return fmt.Errorf("cannot render without %s: set %s to its path, or run make render, which builds it", p.what, p.env)
		}
		if _, err := exec.LookPath(p.path); err != nil {
			return fmt.Errorf("cannot render without %s: %w", p.what, err)
		}
	}
	return nil
}

// Crossplane renders what Crossplane composes of a claim in one reconciliation, by the real
// `crossplane composition render` with the real function in review mode.
func (r *Renderer) Crossplane(ctx context.Context, tools Tools, in Input) ([]byte, error) {
	if err := r.Schemas.Validate(in.Claim); err != nil {
		return nil, err
	}
	comp, err := compositionFor(r.Compositions, in.Claim.GroupVersionKind())
	if err != nil {
		return nil, err
	}
	claim, err := r.Schemas.Default(in.Claim)
	if err != nil {
		return nil, err
	}
	// The API server sets the generation, and the function reports it in the status.
	if claim.GetGeneration() == 0 {
		claim.SetGeneration(1)
	}

	dir, err := os.MkdirTemp("", "storeplane-render-")
	if err != nil {
		return nil, fmt.Errorf("cannot make a folder for render's files: %w", err)
	}
	defer os.RemoveAll(dir)

	server, err := startFunction(ctx, tools.Function, tools.FunctionArgs)
	if err != nil {
		return nil, err
	}
	defer server.stop()

	args, err := renderArgs(dir, claim, comp, server.address, in)
	if err != nil {
		return nil, err
	}
	out, err := run(ctx, tools.CLI, append(args, "--crossplane-binary="+tools.Core)...)
	if err != nil {
		return nil, fmt.Errorf("cannot render %s %q: %w", claim.GetKind(), claim.GetName(), err)
	}
	if err := refused(claim, out); err != nil {
		return nil, err
	}
	return out, nil
}

// renderArgs writes render's files into a folder and returns its arguments.
func renderArgs(dir string, claim *unstructured.Unstructured, comp *composition, address string, in Input) ([]string, error) {
	functions := make([]*unstructured.Unstructured, 0)
	for _, name := range comp.functions() {
		functions = append(functions, functionAt(name, address))
	}
	files := []struct {
		name, flag string
		objects    []*unstructured.Unstructured
	}{
		{name: "claim.yaml", objects: []*unstructured.Unstructured{claim}},
		{name: "composition.yaml"},
		{name: "functions.yaml", objects: functions},
		{name: "observed.yaml", flag: "--observed-resources=", objects: in.Observed},
		{name: "required.yaml", flag: "--required-resources=", objects: in.Cluster},
	}
	args := []string{"composition", "render"}
	for _, f := range files {
		if f.flag != "" && len(f.objects) == 0 {
			continue
		}
		b := &bytes.Buffer{}
		if err := write(b, f.objects, ""); err != nil {
			return nil, err
		}
		if f.name == "composition.yaml" {
			b.Write(comp.yaml)
		}
		path := filepath.Join(dir, f.name)
		if err := os.WriteFile(path, b.Bytes(), 0o600); err != nil {
			return nil, fmt.Errorf("cannot write render's %s: %w", f.name, err)
		}
		args = append(args, f.flag+path)
	}
	return args, nil
}

// functionAt returns the Function that makes render use a function that is served already.
func functionAt(name, address string) *unstructured.Unstructured {
	u := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "pkg.crossplane.io/v1",
		"kind":       "Function",
		"spec":       map[string]any{"package": name},
	}}
	u.SetName(name)
	u.SetAnnotations(map[string]string{
		"render.crossplane.io/runtime":                    "Development",
		"render.crossplane.io/runtime-development-target": address,
	})
	return u
}

// run runs a program and returns its standard output. The error contains its standard error.
func run(ctx context.Context, program string, args ...string) ([]byte, error) {
	stdout, stderr := &bytes.Buffer{}, &bytes.Buffer{}
	cmd := exec.CommandContext(ctx, program, args...) //nolint:gosec // the user's own tool
	cmd.Stdout, cmd.Stderr = stdout, stderr
	if err := cmd.Run(); err != nil {
		if text := strings.TrimSpace(stderr.String()); text != "" {
			return nil, fmt.Errorf("%w: %s", err, text)
		}
		return nil, err
	}
	return stdout.Bytes(), nil
}

// refused returns an error if the function refused the claim: render then prints a status with the
// refusal, and succeeds.
func refused(claim *unstructured.Unstructured, rendered []byte) error {
	docs := documents(rendered)
	for _, doc := range docs {
		xr := &unstructured.Unstructured{}
		if err := yaml.Unmarshal(doc, &xr.Object); err != nil {
			return fmt.Errorf("cannot read what render printed: %w", err)
		}
		if xr.GetKind() != claim.GetKind() || xr.GetName() != claim.GetName() {
			continue
		}
		if msg := converge.Refusal(xr); msg != "" {
			return &converge.RefusedError{Claim: converge.Ref{Kind: claim.GetKind(), Name: claim.GetName()}, Message: msg}
		}
	}
	return nil
}
