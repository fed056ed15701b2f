package main

import (
	"context"
	"fmt"
)

// provisionerName is the provisioner of the default StorageClass.
const provisionerName = "storeplane.example.com/local"

func (c *cluster) provisioner() process {
	return process{
		name:  "provisioner",
		ports: []string{"127.0.0.1:8182"},
		argv: []string{
			c.tools.path("provisioner"),
			"--kubeconfig=" + c.kubeconfig(),
			"--dir=" + c.path("volumes"),
			"--name=" + provisionerName,
			"--metrics-port=8182",
		},
		inputs:  []string{c.kubeconfig()},
		healthy: answers("http://127.0.0.1:8182/metrics"),
	}
}

// storageClass is the default StorageClass. Its volumes are folders of the node, created once the
// pod that uses them is scheduled.
const storageClass = `apiVersion: storage.k8s.io/v1
kind: StorageClass
metadata:
  name: local
  annotations:
    storageclass.kubernetes.io/is-default-class: "true"
provisioner: ` + provisionerName + `
reclaimPolicy: Delete
volumeBindingMode: WaitForFirstConsumer
allowVolumeExpansion: true
`

func (c *cluster) applyStorageClass(ctx context.Context) (string, error) {
	if _, err := c.get(ctx, "/apis/storage.k8s.io/v1/storageclasses/local"); err == nil {
		return "there", nil
	}
	_, err := run(ctx, command{
		stdin: storageClass,
		argv:  []string{c.tools.path("kubectl"), "--kubeconfig", c.kubeconfig(), "apply", "-f", "-"},
	})
	if err != nil {
		return "", fmt.Errorf("cannot make the default storage class: %w", err)
	}
	return "made", nil
}
