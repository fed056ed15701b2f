// Package manager is the instance manager: the sidecar of every server of a DatabaseCluster,
// and the hook that runs before a server stops. It reconciles what the function desires
// (package instance) from inside the pod, as far as that needs no other controller, and
// reports what it observes.
//
// It never decides which server is primary: Patroni does failover, and does it without the
// manager. It retries while the API server is away, and one failure does not stop the rest.
package manager
