package main

import (
	"encoding/base64"
	"fmt"
	"os"
)

// writeKubeconfig writes a kubeconfig with embedded certificates, so that it can be copied
// elsewhere.
func (c *cluster) writeKubeconfig(name, path string) error {
	var parts [3]string
	for i, file := range []string{c.certPath("ca"), c.certPath(name), c.keyPath(name)} {
		b, err := os.ReadFile(file)
		if err != nil {
			return fmt.Errorf("cannot read %s: %w", file, err)
		}
		parts[i] = base64.StdEncoding.EncodeToString(b)
	}
	return writeFile(path, renderKubeconfig(name, apiServer, parts[0], parts[1], parts[2]), 0o600)
}

func renderKubeconfig(user, server, ca, cert, key string) string {
	return fmt.Sprintf(`apiVersion: v1
kind: Config
current-context: storeplane
contexts:
- name: storeplane
  context:
    cluster: storeplane
    user: %[1]s
clusters:
- name: storeplane
  cluster:
    server: %[2]s
    certificate-authority-data: %[3]s
users:
- name: %[1]s
  user:
    client-certificate-data: %[4]s
    client-key-data: %[5]s
`, user, server, ca, cert, key)
}
