package instance

import "time"

const (
	// SettleFor is how long the primary of a pod that is being deleted still takes writes before it hands over. By default
	// a kube-proxy writes changes once a second (minSyncPeriod,
	// https://kubernetes.io/docs/reference/config-api/kube-proxy-config.v1alpha1/), and the pod is in several Services.
	// Which server is the next primary would have to wait for that, without writes.
	SettleFor = 2 * time.Second

	// SettleIn is how much of the pod's grace period there has to be for that.
	SettleIn = 20 * time.Second
)
