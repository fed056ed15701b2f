package plan

import (
	"encoding/json"
	"fmt"
	"math"
	"os"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/yaml"

	"github.com/storeplane/storeplane/internal/instance"
)

// Prices are the monthly prices of what claims request.
type Prices struct {
	// Currency is the ISO 4217 code of the currency of all prices, such as EUR.
	Currency string `json:"currency"`

	// CPU is the price of one CPU that a container requests, and Memory that of one GiB.
	CPU    float64 `json:"cpu"`
	Memory float64 `json:"memory"`

	// Storage is the price of one GiB of a volume. StorageClasses are the prices for volumes of
	// single StorageClasses, by their names.
	Storage        float64            `json:"storage"`
	StorageClasses map[string]float64 `json:"storageClasses,omitempty"`
}

// ReadPrices reads a YAML file of prices.
func ReadPrices(path string) (*Prices, error) {
	b, err := os.ReadFile(path) //nolint:gosec // the user's file
	if err != nil {
		return nil, fmt.Errorf("cannot read prices: %w", err)
	}
	p := &Prices{}
	if err := yaml.UnmarshalStrict(b, p); err != nil {
		return nil, fmt.Errorf("cannot read prices: %s: %w", path, err)
	}
	if p.Currency == "" {
		return nil, fmt.Errorf("cannot read prices: %s names no currency: add one, like currency: EUR", path)
	}
	return p, nil
}

// Cost is the monthly price of what a claim requests, before and after the edit.
type Cost struct {
	Currency string  `json:"currency"`
	Before   float64 `json:"before"`
	After    float64 `json:"after"`
}

// compare returns the cost of the objects before and after. Volumes that a deleted StatefulSet
// leaves are not counted.
func (p *Prices) compare(before, after objects) *Cost {
	return &Cost{Currency: p.Currency, Before: p.of(before), After: p.of(after)}
}

func (p *Prices) of(all objects) float64 {
	sum := 0.0
	for _, o := range all {
		switch o.live.GetKind() {
		case "Deployment":
			sum += float64(replicasOf(o.live)) * p.pod(o.live)
		case "StatefulSet":
			n := float64(replicasOf(o.live))
			sum += n * (p.pod(o.live) + p.templates(all, o.live))
		case "PersistentVolumeClaim":
			var c corev1.PersistentVolumeClaim
			if decode(o.live.Object, &c) == nil {
				sum += p.volume(&c, nil)
			}
		}
	}
	return math.Round(sum*100) / 100
}

// pod returns the price of what the containers of a workload's pod request, sidecars included.
func (p *Prices) pod(u *unstructured.Unstructured) float64 {
	m, ok, err := unstructured.NestedMap(u.Object, "spec", "template", "spec")
	var spec corev1.PodSpec
	if !ok || err != nil || decode(m, &spec) != nil {
		return 0
	}
	sidecars := slices.DeleteFunc(slices.Clone(spec.InitContainers), func(c corev1.Container) bool {
		return c.RestartPolicy == nil || *c.RestartPolicy != corev1.ContainerRestartPolicyAlways
	})
	sum := 0.0
	for _, c := range slices.Concat(spec.Containers, sidecars) {
		sum += p.CPU*requested(c, corev1.ResourceCPU) + p.Memory*requested(c, corev1.ResourceMemory)/(1<<30)
	}
	return sum
}

// requested returns what a container requests: its limit where only that is set, as in Kubernetes.
func requested(c corev1.Container, name corev1.ResourceName) float64 {
	q, ok := c.Resources.Requests[name]
	if !ok {
		q = c.Resources.Limits[name]
	}
	return q.AsApproximateFloat64()
}

// templates returns the price of the volumes of one pod of a StatefulSet. The volumes of a database
// count with the size to which its instance managers expand them.
func (p *Prices) templates(all objects, set *unstructured.Unstructured) float64 {
	list, _, _ := unstructured.NestedSlice(set.Object, "spec", "volumeClaimTemplates")
	sum := 0.0
	for _, t := range list {
		var c corev1.PersistentVolumeClaim
		if m, ok := t.(map[string]any); ok && decode(m, &c) == nil {
			sum += p.volume(&c, grown(all, set.GetName()))
		}
	}
	return sum
}

// grown returns the size to which a database's volumes are expanded, or nil where the StatefulSet
// is of no database.
func grown(all objects, set string) *resource.Quantity {
	o, ok := all[key{GroupKind: configMapKind, name: set}]
	if !ok {
		return nil
	}
	text, _, _ := unstructured.NestedString(o.live.Object, "data", instance.DesiredKey)
	var d instance.Desired
	if json.Unmarshal([]byte(text), &d) != nil {
		return nil
	}
	q, err := resource.ParseQuantity(d.Storage)
	if err != nil {
		return nil
	}
	return &q
}

func (p *Prices) volume(c *corev1.PersistentVolumeClaim, grown *resource.Quantity) float64 {
	size := c.Spec.Resources.Requests[corev1.ResourceStorage]
	if grown != nil && grown.Cmp(size) > 0 {
		size = *grown
	}
	price := p.Storage
	if c.Spec.StorageClassName != nil {
		if special, ok := p.StorageClasses[*c.Spec.StorageClassName]; ok {
			price = special
		}
	}
	return price * size.AsApproximateFloat64() / (1 << 30)
}

func decode(m map[string]any, into any) error {
	return runtime.DefaultUnstructuredConverter.FromUnstructured(m, into)
}
