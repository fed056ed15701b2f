// Package manager is the instance manager: the sidecar of every server of a
// DatabaseCluster, and the hook that runs before one stops. It makes what the
// function desires (internal/instance) so, from inside the pod, where it can be
// done without another controller, and says what it sees.
//
// It never decides who is primary: failover is Patroni's, and works without
// it. It keeps trying for as long as the API server is away, and what fails
// does not stop the rest.
package manager
