//go:build e2e

package postgresql

import (
	"time"

	"sigs.k8s.io/e2e-framework/pkg/types"
)

// orders is the database of three that most checks look at.
var orders = &database{namespace: "e2e-postgresql", manifest: "postgresql/production.yaml"}

// Longest times without an acknowledged write, as the documentation promises
// them.
const (
	whenDeleted = 5 * time.Second
	whenKilled  = 15 * time.Second
	whenFrozen  = 25 * time.Second
	whenPlanned = 3 * time.Second
	whenOutage  = 5 * time.Second
	noTarget    = time.Duration(0)
)

// whenLockRanOut is twice the life of a leader lock: the promotion after it takes its time
// on a machine that is slow.
const whenLockRanOut = 40 * time.Second

func production() types.Feature {
	d := orders
	var failovers []time.Duration
	f := newFeature("a database in production", d.namespace).
		quick("one server comes up", d.comesUp).
		quick("servers are added and removed under load", d.under(whenPlanned, d.scales)).
		quick("primary's pod is deleted with no grace", d.repeated(whenDeleted, d.losesPrimary)).
		full("primary's pod is deleted with no grace, many times", d.failsOver(&failovers, idleFailovers, idle)).
		full("primary's pod is deleted while the API server is under load", d.failsOver(&failovers, loadedFailovers, d.loaded)).
		full("primary's pod is deleted as the API server is back", d.failsOver(&failovers, thawedFailovers, d.thawed)).
		// Once: the kubelet waits longer each time before it starts a container
		// again that ends often.
		full("primary's processes are killed at once", d.under(whenKilled, d.losesProcesses)).
		full("primary is frozen for 60 s and thawed", d.under(whenFrozen, d.freezes)).
		full("primary wakes up as its lock is taken", d.wakesOften).
		full("primary that cannot be rewound copies the next one", d.under(whenFrozen, d.failsToRewind)).
		full("replica's pod is deleted with no grace", d.under(whenDeleted, d.losesReplica)).
		full("replica's volume is lost", d.under(whenDeleted, d.losesVolume)).
		full("all pods are deleted at once with no grace", d.repeated(noTarget, d.losesAll)).
		full("primary's pod is evicted, as a drain does", d.repeated(whenPlanned, d.evicts)).
		full("primary's pod is evicted while nothing is archived", d.under(whenPlanned, d.evictsUnarchived)).
		full("minor version rolls, replicas first, primary last", d.under(whenPlanned, d.rolls)).
		full("API server is frozen for 2 minutes", d.under(whenOutage, d.losesAPIServer)).
		full("failover with Crossplane and its functions scaled to zero", d.under(whenDeleted, d.losesCrossplane)).
		quick("volumes grow under load", d.undisturbed(d.grows)).
		full("parameter that is reloaded", d.undisturbed(d.reloads)).
		full("parameter that needs a restart", d.under(whenPlanned, d.restarts)).
		full("invalid parameter is told and not applied", d.undisturbed(d.refusesParameter)).
		full("users and databases come, rotate and go", d.undisturbed(d.hasUsers)).
		full("certificate is the server's own, and plain connections are refused", d.undisturbed(d.hasTLS)).
		full("certificate is renewed before its end, and nothing restarts", d.undisturbed(d.renews)).
		full("servers whose own certificate is lost hand over by the next one, and nothing restarts", d.losesControl).
		full("certificate of a refused claim is renewed before its end", d.undisturbed(d.renewsRefused)).
		full("certificate that is brought is used, and given up again", d.under(whenPlanned, d.bringsTLS)).
		full("with no standby strict stops writes, and quorum goes on", d.losesAllStandbys).
		full("image that does not exist is told, and healed by going back", d.under(whenPlanned, d.missesImage)).
		full("impossible changes are refused in words and change nothing", d.undisturbed(d.refuses)).
		quick("hibernates and wakes with its data", d.under(noTarget, d.hibernates)).
		full("wakes with one server, which was not the primary", d.under(noTarget, d.wakesSmaller)).
		full("deletion is refused while it is protected", d.undisturbed(d.isProtected)).
		full("deleted and claimed again it finds its data", d.comesBack).
		full("claimed again smaller and larger the newest volume leads", d.comesBackOtherwise).
		full("claimed again with an older volume it archives beside what the newest had archived", d.leadsOlder).
		full("claimed again over a volume of another database nothing leads until it is left out", d.meetsForeign).
		full("claimed again over volumes that parted nothing leads until one is named", d.meetsParted)
	return f.Feature()
}
