package functionstest

import (
	"encoding/json"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/storeplane/storeplane/internal/converge"
	"github.com/storeplane/storeplane/internal/instance"
)

// RunInstances simulates the instance managers: they do what is desired and report it.
func (c *Crossplane) RunInstances() {
	c.t.Helper()
	var objects []*unstructured.Unstructured
	for _, n := range c.ComponentNames() {
		objects = append(objects, Unstructured(c.Observed[n]))
	}
	converge.RunInstances(objects)
	for i, n := range c.ComponentNames() {
		if data, ok := objects[i].Object["data"]; ok && n == "instances" {
			Set(c.Observed[n], data, "data")
		}
	}
}

// Report sets what the instance managers report under a key.
func (c *Crossplane) Report(key, json string) {
	c.t.Helper()
	Set(c.Observed["instances"], json, "data", key)
}

// ReportCluster changes the report of the manager beside the primary.
func (c *Crossplane) ReportCluster(change func(*instance.Cluster)) {
	changeReport(c, instance.ClusterKey, change)
}

// ReportMember changes the report of the manager beside a server.
func (c *Crossplane) ReportMember(ordinal int32, change func(*instance.Member)) {
	name := Get(c.Claim, "metadata", "name").GetStringValue() + "-postgresql"
	changeReport(c, instance.MemberKey(instance.Pod(name, ordinal)), change)
}

// changeReport changes the report under a key.
func changeReport[T any](c *Crossplane, key string, change func(*T)) {
	c.t.Helper()
	var report T
	if err := json.Unmarshal([]byte(Get(c.Observed["instances"], "data", key).GetStringValue()), &report); err != nil {
		c.t.Fatalf("cannot read report %s: %v", key, err)
	}
	change(&report)
	b, err := json.Marshal(report)
	if err != nil {
		c.t.Fatal(err)
	}
	c.Report(key, string(b))
}
