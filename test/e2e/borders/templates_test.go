//go:build e2e

package borders

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"sigs.k8s.io/yaml"

	"github.com/storeplane/storeplane/test/e2e/harness"
)

// hostileAppConfigs is the number of AppConfigs that are edited again and again, each once in
// editPause, and beginsWithin how soon the Job of a Backup must begin all the same. Without a pause
// the edits, of 256 KiB each, would keep the API server busy, which bounds its clients itself.
const (
	hostileAppConfigs = 10
	editPause         = 2 * time.Second
	beginsWithin      = 5 * time.Second
)

// hostileConfig returns an AppConfig whose templates have the largest permitted size and read and
// write as much as they may.
func hostileConfig(name string) (string, error) {
	const line = "{{ $a := upper (indent 9 .Values.long) }}{{ if eq $a (lower $a) }}x{{ end }}"
	const longest = 64 << 10
	config := map[string]string{}
	for i := range 4 {
		config[fmt.Sprintf("KEY_%d", i)] = strings.Repeat(line, longest/len(line))
	}
	text, err := yaml.Marshal(map[string]any{
		"apiVersion": "config.example.com/v1", "kind": "AppConfig", "metadata": map[string]any{"name": name, "namespace": tenantNamespace},
		"spec": map[string]any{"forProvider": map[string]any{
			"application": name, "config": config, "values": map[string]string{"long": strings.Repeat("a\n", 100)},
		}},
	})
	return string(text), err
}

// burnsTemplates uses up the CPU of the provider, which all tenants share.
func burnsTemplates(ctx context.Context, n notes) (err error) {
	if err := ready(ctx); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, started)
	defer cancel()
	name := func(i int) string { return fmt.Sprintf("hostile-%d", i) }
	defer func() {
		for i := range hostileAppConfigs {
			err = errors.Join(err, cluster.Delete(context.WithoutCancel(ctx), "AppConfig", tenantNamespace, name(i)))
		}
	}()
	for i := range hostileAppConfigs {
		text, err := hostileConfig(name(i))
		if err != nil {
			return err
		}
		if err := create(ctx, ground.tenant, text); err != nil {
			return err
		}
	}
	editing, stop := context.WithCancel(ctx)
	var wg sync.WaitGroup
	defer wg.Wait()
	defer stop()
	edits := make([]atomic.Int64, hostileAppConfigs)
	for i := range hostileAppConfigs {
		// Each edits with a client of its own, because the rate of a client is limited.
		as, err := cluster.As(tenant)
		if err != nil {
			return err
		}
		wg.Go(func() {
			again := time.NewTicker(editPause)
			defer again.Stop()
			for editing.Err() == nil {
				edit := strconv.FormatInt(edits[i].Load(), 10)
				change := harness.Patch{"spec": harness.Patch{"forProvider": harness.Patch{"values": harness.Patch{"edit": edit}}}}
				if _, err := as.Patch(editing, "AppConfig", tenantNamespace, name(i), change); err != nil {
					return
				}
				edits[i].Add(1)
				select {
				case <-editing.Done():
				case <-again.C:
				}
			}
		})
	}
	refusal := func() string {
		return harness.ClaimOf(ground.world.Get("AppConfig", name(0))).Condition("Rendered").Message
	}
	// On a slow machine an edit of this size takes seconds: the attack has begun when each was edited.
	attacked := func() (bool, string) {
		for i := range edits {
			if edits[i].Load() == 0 {
				return false, fmt.Sprintf("AppConfig %s was not edited yet", name(i))
			}
		}
		return refusal() != "", refusal()
	}
	if err := ground.world.Await(ctx, soon, "each hostile AppConfig to be edited, and a template to be refused", attacked); err != nil {
		return err
	}

	filed := time.Now()
	err = create(ctx, ground.tenant, `{apiVersion: backup.example.com/v1, kind: Backup, metadata: {name: honest, namespace: '${NAMESPACE}'}, spec: {forProvider: {
		source: {type: postgresql, connection: {databaseClusterRef: {name: own}}}, destination: {type: s3, bucket: b, endpoint: 'https://store.example.com', secretRef: {name: neighbour}}}}}`)
	if err != nil {
		return err
	}
	err = ground.world.Await(ctx, soon, "the honest Backup to begin", func() (bool, string) {
		for _, j := range ground.world.List("Job") {
			if j.GetLabels()["backup.example.com/backup"] == "honest" {
				return true, ""
			}
		}
		return false, harness.ClaimOf(ground.world.Get("Backup", "honest")).Condition("Ready").Message
	})
	took := time.Since(filed)
	err = errors.Join(err, cluster.Delete(context.WithoutCancel(ctx), "Backup", tenantNamespace, "honest"))
	stop()
	wg.Wait()
	total := int64(0)
	for i := range edits {
		total += edits[i].Load()
	}
	n.Addf("a Backup began after %.2fs of %s, beside %d edits; %s", took.Seconds(), beginsWithin, total, refusal())
	if took > beginsWithin {
		err = errors.Join(err, fmt.Errorf("a Backup began after %.2fs, %s is the target", took.Seconds(), beginsWithin))
	}
	return err
}
