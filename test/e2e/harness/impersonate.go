package harness

import "k8s.io/client-go/rest"

// As returns the cluster with clients that impersonate a user, who has only the rights that are
// bound to that name.
func (c *Cluster) As(user string) (*Cluster, error) {
	cfg := rest.CopyConfig(c.Config)
	cfg.Impersonate = rest.ImpersonationConfig{UserName: user}
	return NewCluster(cfg)
}
