//go:build e2e

package core

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/storeplane/storeplane/test/e2e/harness"
)

// wantColumns are the columns that kubectl must show for each kind.
var wantColumns = map[string][]string{
	"ecommerceplatform": {"NAMESPACE", "NAME", "ENVIRONMENT", "PHASE", "ENDPOINT", "SYNCED", "READY", "AGE"},
	"databasecluster":   {"NAMESPACE", "NAME", "PHASE", "VERSION", "SIZE", "UP", "PRIMARY", "SYNCED", "READY", "AGE"},
	"webapp":            {"NAMESPACE", "NAME", "PHASE", "AVAILABLE", "IMAGE", "SYNCED", "READY", "AGE"},
}

func columns(ctx context.Context, n notes) error {
	if err := dev.ready(ctx, soon); err != nil {
		return err
	}
	out, err := harness.Kubectl(ctx, "get", "ecp,dbc,wa", "--all-namespaces")
	if err != nil {
		return err
	}
	rows := map[string]int{}
	var errs []error
	for block := range strings.SplitSeq(strings.TrimSpace(out), "\n\n") {
		lines := strings.Split(block, "\n")
		for _, line := range lines[1:] {
			cells := cut(lines[0], line)
			if cells["NAMESPACE"] != dev.namespace {
				continue
			}
			kind, _, _ := strings.Cut(cells["NAME"], ".")
			rows[kind]++
			for _, c := range wantColumns[kind] {
				if _, ok := cells[c]; !ok {
					errs = append(errs, fmt.Errorf("%s has no column %s", kind, c))
				} else if cells[c] == "" || cells[c] == "<none>" {
					errs = append(errs, fmt.Errorf("column %s of %s is empty", c, cells["NAME"]))
				}
			}
			if cells["READY"] != "True" {
				errs = append(errs, fmt.Errorf("column READY of %s is %q", cells["NAME"], cells["READY"]))
			}
		}
	}
	if rows["ecommerceplatform"] != 1 || rows["databasecluster"] != 1 || rows["webapp"] != 2 {
		errs = append(errs, fmt.Errorf("the rows are not one shop, one database and two web apps: %v", rows))
	}
	if err := errors.Join(errs...); err != nil {
		return fmt.Errorf("%w\n%s", err, out)
	}
	n.Addf("%d rows", rows["ecommerceplatform"]+rows["databasecluster"]+rows["webapp"])
	return nil
}

// cut splits a line of a table where the names in its header begin.
func cut(header, line string) map[string]string {
	var starts []int
	for i := range header {
		if header[i] != ' ' && (i == 0 || header[i-1] == ' ') {
			starts = append(starts, i)
		}
	}
	cells := map[string]string{}
	for i, s := range starts {
		end := max(len(header), len(line))
		if i+1 < len(starts) {
			end = starts[i+1]
		}
		name := strings.TrimSpace(header[s:min(end, len(header))])
		cells[name] = strings.TrimSpace(line[min(s, len(line)):min(end, len(line))])
	}
	return cells
}

// badImage sets an image that does not exist, checks what kubectl shows, and sets the old one
// again.
func badImage(ctx context.Context, n notes) error {
	if err := dev.ready(ctx, soon); err != nil {
		return err
	}
	before := dev.pods()
	missing := image("backend", "no-such-version")
	if err := dev.change(ctx, harness.Patch{"backend": harness.Patch{"image": missing}}); err != nil {
		return err
	}
	start := time.Now()
	// The pod of the migration is the first one to pull the image.
	says := regexp.MustCompile(`backend.*` + backendClaim + `-\S+: cannot pull image ` + regexp.QuoteMeta(missing) + `: not found`)
	err := dev.world.Await(ctx, soon, "the claim to name the pod, the image and the registry's answer", func() (bool, string) {
		c := dev.status()
		return !c.Is("Ready") && says.MatchString(c.Status.Message), c.String()
	})
	took := time.Since(start)
	if err == nil {
		var out string
		if out, err = harness.Kubectl(ctx, "describe", "ecp", claimName, "--namespace", dev.namespace); err == nil {
			if !strings.Contains(out, dev.status().Status.Message) || !strings.Contains(out, "BackendReady") {
				err = fmt.Errorf("kubectl describe does not say that the claim waits for backend:\n%s", out)
			}
		}
		n.Addf("after %.1fs: %q", took.Seconds(), dev.status().Status.Message)
	}
	for _, p := range before {
		if strings.HasPrefix(p, backendWeb) && !slices.Contains(dev.pods(), p) {
			err = errors.Join(err, fmt.Errorf("pod %s of the good image is gone", p))
		}
	}
	err = errors.Join(err, dev.change(ctx, harness.Patch{"backend": harness.Patch{"image": image("backend", "v1")}}))
	return errors.Join(err, dev.ready(ctx, settled))
}
