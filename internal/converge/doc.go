// Package converge simulates, without a cluster, how a claim converges: it calls a composition
// function with nothing observed, stores what the function desires as Crossplane and an API server
// would, marks it healthy as a cluster would, and calls again until nothing changes any more. A
// claim that is composed by another is simulated the same way.
//
// It mimics Crossplane in what a function can observe and in what `crossplane composition render`
// prints: names, labels, owner references, the Ready and Synced conditions. It refuses what a
// cluster would refuse: claims and statuses that their definitions do not accept, objects without a
// name, two claims that compose one object.
//
// The package is pure: it does nothing but call the function that it is given. It depends on no
// intent.
package converge
