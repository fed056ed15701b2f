package harness

import "k8s.io/client-go/rest"

// As is the cluster as a user sees it who has no rights but those that are bound
// to the name.
func (c *Cluster) As(user string) (*Cluster, error) {
	cfg := rest.CopyConfig(c.Config)
	cfg.Impersonate = rest.ImpersonationConfig{UserName: user}
	return NewCluster(cfg)
}
