//go:build e2e

package postgresql

import (
	"time"

	"sigs.k8s.io/e2e-framework/pkg/types"
)

// orders is the database of three servers that most checks use.
var orders = &database{namespace: "e2e-postgresql", manifest: "postgresql/production.yaml"}

// The longest times without an acknowledged write, as in the documentation.
const (
	whenDeleted = 5 * time.Second
	whenKilled  = 15 * time.Second
	whenFrozen  = 25 * time.Second
	whenPlanned = 3 * time.Second
	whenOutage  = 5 * time.Second
	noTarget    = time.Duration(0)
)

// whenLockRanOut is twice as long as a leader lock is valid: on a slow machine the promotion after
// it takes long.
const whenLockRanOut = 40 * time.Second

func production() types.Feature {
	d := orders
	var failovers []time.Duration
	f := tests.Feature("a database in production", d.namespace).
		Quick("one server comes up", d.comesUp).
		Quick("servers are added and removed under load", d.under(whenPlanned, d.scales)).
		Quick("primary's pod is deleted with no grace", d.repeated(whenDeleted, d.losesPrimary)).
		Full("primary's pod is deleted with no grace, many times", d.failsOver(&failovers, idleFailovers, idle)).
		Full("primary's pod is deleted while the API server is under load", d.failsOver(&failovers, loadedFailovers, d.loaded)).
		Full("primary's pod is deleted as the API server is back", d.failsOver(&failovers, thawedFailovers, d.thawed)).
		// This check is not repeated: the kubelet waits longer each time before it restarts a
		// container that ends often.
		Full("primary's processes are killed at once", d.under(whenKilled, d.losesProcesses)).
		Full("primary is frozen for 60 s and thawed", d.under(whenFrozen, d.freezes)).
		Full("primary wakes up as its lock is taken", d.wakesOften).
		Full("primary that cannot be rewound copies the next one", d.under(whenFrozen, d.failsToRewind)).
		Full("replica's pod is deleted with no grace", d.under(whenDeleted, d.losesReplica)).
		Full("replica's volume is lost", d.under(whenDeleted, d.losesVolume)).
		Full("all pods are deleted at once with no grace", d.repeated(noTarget, d.losesAll)).
		Full("primary's pod is evicted, as a drain does", d.repeated(whenPlanned, d.evicts)).
		Full("primary's pod is evicted while nothing is archived", d.under(whenPlanned, d.evictsUnarchived)).
		Full("minor version rolls, replicas first, primary last", d.under(whenPlanned, d.rolls)).
		Full("API server is frozen for 2 minutes", d.under(whenOutage, d.losesAPIServer)).
		Full("API server is frozen as soon as a replica's pod is replaced", d.under(whenOutage, d.losesAPIServerSoon)).
		Full("failover with Crossplane and its functions scaled to zero", d.under(whenDeleted, d.losesCrossplane)).
		Quick("volumes grow under load", d.undisturbed(d.grows)).
		Full("parameter that is reloaded", d.undisturbed(d.reloads)).
		Full("parameter that needs a restart", d.under(whenPlanned, d.restarts)).
		Full("invalid parameter is told and not applied", d.undisturbed(d.refusesParameter)).
		Full("users and databases come, rotate and go", d.undisturbed(d.hasUsers)).
		Full("certificate is the server's own, and plain connections are refused", d.undisturbed(d.hasTLS)).
		Full("certificate is renewed before its end, and nothing restarts", d.undisturbed(d.renews)).
		Full("servers whose own certificate is lost hand over by the next one, and nothing restarts", d.losesControl).
		Full("certificate of a refused claim is renewed before its end", d.undisturbed(d.renewsRefused)).
		Full("certificate that is brought is used, and given up again", d.under(whenPlanned, d.bringsTLS)).
		Full("with no standby strict stops writes, and quorum goes on", d.losesAllStandbys).
		Full("image that does not exist is told, and healed by going back", d.under(whenPlanned, d.missesImage)).
		Full("impossible changes are refused in words and change nothing", d.undisturbed(d.refuses)).
		Quick("hibernates and wakes with its data", d.under(noTarget, d.hibernates)).
		Full("wakes with one server, which was not the primary", d.under(noTarget, d.wakesSmaller)).
		Full("deletion is refused while it is protected", d.undisturbed(d.isProtected)).
		Full("deleted and claimed again it finds its data", d.comesBack).
		Full("claimed again smaller and larger the newest volume leads", d.comesBackOtherwise).
		Full("claimed again with an older volume it archives beside what the newest had archived", d.leadsOlder).
		Full("claimed again over a volume of another database nothing leads until it is left out", d.meetsForeign).
		Full("claimed again over volumes that parted nothing leads until one is named", d.meetsParted)
	return f.Feature()
}
