package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"
)

const (
	crossplaneModule    = "github.com/crossplane/crossplane/v2"
	crossplaneNamespace = "crossplane-system"
)

// crossplaneDeployments are the Deployments that must be available before Crossplane counts as
// ready.
var crossplaneDeployments = []string{"crossplane", "crossplane-rbac-manager"}

// crossplaneValues returns the values of the chart: one pod for each Deployment, from the image
// built here, with room for the packages of Storeplane, and with enough CPU that tests wait for
// Storeplane rather than for Crossplane.
func crossplaneValues(tag string) []string {
	return []string{
		"image.repository=" + registry + "/crossplane",
		"image.tag=" + tag,
		"image.pullPolicy=IfNotPresent",
		"replicas=1",
		"rbacManager.replicas=1",
		"resourcesCrossplane.limits.cpu=2",
		"resourcesCrossplane.limits.memory=2Gi",
		"resourcesRBACManager.limits.cpu=1",
		"packageCache.sizeLimit=500Mi",
		// As docs/operations.md recommends.
		"args={--circuit-breaker-burst=300,--max-concurrent-reconciles=20}",
	}
}

// installed is stored in a file after an installation, so that the next run detects at once that
// it has nothing to do.
type installed struct {
	Key string `json:"key"`
}

// installCrossplane installs Crossplane from the chart in its Go module and waits until it is
// available. It returns a note for the user.
func (c *cluster) installCrossplane(ctx context.Context) (string, error) {
	version, err := c.crossplaneVersion()
	if err != nil {
		return "", err
	}
	key := filepath.Base(filepath.Dir(c.tools.path("crossplane-core"))) + " " + strings.Join(crossplaneValues(version), " ")
	var was installed
	if readJSON(c.path("crossplane.json"), &was) && was.Key == key {
		if err := waitFor(ctx, 2*time.Minute, c.crossplaneReady); err == nil {
			return "already installed", nil
		}
	}

	module, err := c.crossplaneSource(ctx)
	if err != nil {
		return "", err
	}
	if err := c.crossplaneImage(ctx, module, version); err != nil {
		return "", err
	}
	chart, err := c.crossplaneChart(ctx, module, version)
	if err != nil {
		return "", err
	}
	if err := c.clearPending(ctx); err != nil {
		return "", err
	}
	argv := []string{
		"upgrade", "--install", "crossplane", chart,
		"--namespace", crossplaneNamespace, "--create-namespace", "--wait", "--timeout", "5m",
	}
	for _, v := range crossplaneValues(version) {
		argv = append(argv, "--set", v)
	}
	if _, err := c.helm(ctx, argv...); err != nil {
		return "", fmt.Errorf("cannot install Crossplane: %w", err)
	}
	if err := waitFor(ctx, time.Minute, c.crossplaneReady); err != nil {
		return "", fmt.Errorf("cannot install Crossplane: %w", err)
	}
	return "installed " + version, writeJSON(c.path("crossplane.json"), installed{Key: key})
}

// helm runs helm against the cluster, with its caches in the state folder.
func (c *cluster) helm(ctx context.Context, args ...string) (string, error) {
	return run(ctx, command{
		env:  []string{"HELM_CACHE_HOME=" + c.path("helm"), "HELM_CONFIG_HOME=" + c.path("helm"), "HELM_DATA_HOME=" + c.path("helm")},
		argv: append([]string{c.tools.path("helm"), "--kubeconfig", c.kubeconfig()}, args...),
	})
}

// crossplaneChart packages the chart with the version of the release and returns the file's path.
// The chart in the module has version 0.0.1, which Crossplane's CLI would report as the server's
// version.
func (c *cluster) crossplaneChart(ctx context.Context, module, version string) (string, error) {
	number := strings.TrimPrefix(version, "v")
	_, err := c.helm(ctx, "package", filepath.Join(module, "cluster", "charts", "crossplane"),
		"--version", number, "--app-version", number, "--destination", c.path("helm"))
	if err != nil {
		return "", fmt.Errorf("cannot pack Crossplane's chart: %w", err)
	}
	return c.path("helm", "crossplane-"+number+".tgz"), nil
}

// clearPending deletes helm's record of an interrupted installation. Helm refuses to start
// another one while that exists, and without it adopts the objects that were created.
func (c *cluster) clearPending(ctx context.Context) error {
	_, err := sh(ctx, c.tools.path("kubectl"), "--kubeconfig", c.kubeconfig(), "--namespace", crossplaneNamespace,
		"delete", "secret", "--selector", "owner=helm,name=crossplane,status in (pending-install,pending-upgrade,pending-rollback)")
	if err != nil {
		return fmt.Errorf("cannot clear a broken-off installation of Crossplane: %w", err)
	}
	return nil
}

func (c *cluster) crossplaneReady(ctx context.Context) error {
	for _, name := range crossplaneDeployments {
		path := "/apis/apps/v1/namespaces/" + crossplaneNamespace + "/deployments/" + name
		if _, err := c.condition(ctx, path, "Available"); err != nil {
			return fmt.Errorf("deployment %s: %w", name, err)
		}
	}
	return c.crossplaneServes(ctx)
}

// crossplaneServes connects to Crossplane's webhooks: after a restart of the machine the API
// server at first still reports the status from before.
func (c *cluster) crossplaneServes(ctx context.Context) error {
	b, err := c.get(ctx, "/api/v1/namespaces/"+crossplaneNamespace+"/services/crossplane-webhooks")
	if err != nil {
		return err
	}
	var service struct {
		Spec struct {
			ClusterIP string `json:"clusterIP"`
			Ports     []struct {
				Port int `json:"port"`
			} `json:"ports"`
		} `json:"spec"`
	}
	if err := json.Unmarshal(b, &service); err != nil {
		return fmt.Errorf("cannot read the Service of Crossplane's webhooks: %w", err)
	}
	if len(service.Spec.Ports) == 0 {
		return errors.New("cannot use the Service of Crossplane's webhooks: it has no ports")
	}
	address := net.JoinHostPort(service.Spec.ClusterIP, strconv.Itoa(service.Spec.Ports[0].Port))
	conn, err := (&net.Dialer{Timeout: 2 * time.Second}).DialContext(ctx, "tcp", address)
	if err != nil {
		return fmt.Errorf("its webhooks do not answer: %w", err)
	}
	return conn.Close()
}

func (c *cluster) crossplaneVersion() (string, error) {
	mod, err := os.ReadFile(c.source("tools", "crossplane", "go.mod"))
	if err != nil {
		return "", fmt.Errorf("cannot read Crossplane's version: %w", err)
	}
	version := requiredVersion(string(mod), crossplaneModule)
	if version == "" {
		return "", errors.New("cannot find Crossplane's version in tools/crossplane/go.mod")
	}
	return version, nil
}

// crossplaneSource returns the folder of Crossplane's Go module, which it downloads if needed.
func (c *cluster) crossplaneSource(ctx context.Context) (string, error) {
	out, err := run(ctx, command{
		dir:  c.source("tools", "crossplane"),
		env:  []string{"GOWORK=off"},
		argv: []string{"go", "mod", "download", "-json", crossplaneModule},
	})
	if err != nil {
		return "", fmt.Errorf("cannot fetch Crossplane's module: %w", err)
	}
	var module struct {
		Dir string `json:"Dir"`
	}
	if err := json.Unmarshal([]byte(out), &module); err != nil {
		return "", fmt.Errorf("cannot find the folder of Crossplane's module in %q: %w", out, err)
	}
	if module.Dir == "" {
		return "", fmt.Errorf("cannot find the folder of Crossplane's module: %q names none", out)
	}
	return module.Dir, nil
}

func (c *cluster) crossplaneImage(ctx context.Context, module, version string) error {
	dir, err := c.imageContext("crossplane", map[string]string{
		"crossplane":            c.tools.path("crossplane-core"),
		"crds":                  filepath.Join(module, "cluster", "crds"),
		"webhookconfigurations": filepath.Join(module, "cluster", "webhookconfigurations"),
	})
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	_, err = c.buildImage(ctx, image{
		file: c.source("images", "crossplane", "Dockerfile"), context: dir,
		tag: registry + "/crossplane:" + version, base: "scratch", push: true,
	})
	return err
}

// pauseImage returns the name of the sandbox image. It changes with the program in the image, so
// that no node continues to use an old one.
func (c *cluster) pauseImage() string {
	return registry + "/pause:" + strings.TrimPrefix(filepath.Base(filepath.Dir(c.tools.path("pause"))), "pause-")
}

func (c *cluster) pushPause(ctx context.Context) (string, error) {
	dir, err := c.imageContext("pause", map[string]string{"pause": c.tools.path("pause")})
	if err != nil {
		return "", err
	}
	defer os.RemoveAll(dir)
	return c.buildImage(ctx, image{
		file: c.source("images", "pause", "Dockerfile"), context: dir,
		tag: c.pauseImage(), base: "scratch", push: true,
	})
}

// imageContext copies files and folders into a new build context and returns its path. The keys
// of files are the names in the context.
func (c *cluster) imageContext(name string, files map[string]string) (string, error) {
	dir, err := os.MkdirTemp(c.state, "context-")
	if err != nil {
		return "", fmt.Errorf("cannot make the context of image %s: %w", name, err)
	}
	for to, from := range files {
		if err := copyTree(from, filepath.Join(dir, to)); err != nil {
			return "", fmt.Errorf("cannot copy %s for image %s: %w", from, name, err)
		}
	}
	return dir, nil
}

// copyTree copies a file, or a folder with all files in it. Of the file modes it keeps only the
// executable bits, so that equal inputs make equal images.
func copyTree(from, to string) error {
	info, err := os.Stat(from)
	if err != nil {
		return err
	}
	if !info.IsDir() {
		b, err := os.ReadFile(from)
		if err != nil {
			return err
		}
		return os.WriteFile(to, b, 0o644|info.Mode()&0o111)
	}
	if err := os.MkdirAll(to, 0o755); err != nil {
		return err
	}
	entries, err := os.ReadDir(from)
	if err != nil {
		return err
	}
	for _, e := range entries {
		if err := copyTree(filepath.Join(from, e.Name()), filepath.Join(to, e.Name())); err != nil {
			return err
		}
	}
	return nil
}
