//go:build e2e

// Package mysql tests a DatabaseCluster of engine mysql under faults, while a ledger records every row
// that was acknowledged.
package mysql

import (
	"testing"
	"time"

	"sigs.k8s.io/e2e-framework/pkg/types"

	"github.com/storeplane/storeplane/test/e2e/harness"
	"github.com/storeplane/storeplane/test/e2e/suite"
)

type (
	notes = suite.Notes
	check = suite.Check
)

var (
	tests   = suite.New("e2e-mysql")
	cluster = tests.Cluster
)

func TestMain(m *testing.M) {
	tests.Cleanup = harness.Unshrink
	tests.Main(m)
}

// TestMySQL: the checks pass in their order. Without -full only the quick ones run.
func TestMySQL(t *testing.T) {
	if tests.Soaks() {
		tests.Test(t, soak())
		return
	}
	fs := []types.Feature{replicated(), store()}
	if tests.Full() {
		fs = append(fs, development(), production(), history())
	}
	tests.Test(t, fs...)
}

// The longest times without an acknowledged write. docs/mysql.md promises no shorter ones.
const (
	whenPlanned = time.Second
	// whenAdded is for the fifth server, to which four connect one after another, and for two that join at once.
	whenAdded = 3 * time.Second
	// whenFormed is for a single server that forms a group.
	whenFormed  = 10 * time.Second
	whenFailed  = 10 * time.Second
	whenAllGone = 25 * time.Second
	noTarget    = time.Duration(0)
)

// replicated are three servers on which most checks run.
func replicated() types.Feature {
	d := &database{namespace: "e2e-mysql", manifest: "mysql/cluster.yaml", base: harness.Patch{
		"version": "9.7", "size": baseSize, "synchronousMode": "quorum", "hibernated": nil,
		"parameters": nil, "users": nil, "databases": nil, "backup": nil,
	}}
	return tests.Feature("a group of MySQL", d.namespace).
		Quick("three servers come up", d.comesUp).
		Full("a group without data comes back after all its pods were lost", d.emptyAndLost).
		Quick("application connects by its Secret, to the primary and to replicas", d.connects).
		Full("a client verifies servers by each of their names, and refuses others", d.withClient(d.undisturbed(d.verifies))).
		Quick("primary's pod is deleted with no grace", d.repeated(whenFailed, d.losesPrimary)).
		Full("primary's pod is deleted while the API server is under load", d.repeated(whenFailed, d.losesPrimaryBusy)).
		Full("primary's pod is deleted as the API server is back", d.repeated(whenFailed, d.losesPrimaryThawed)).
		Full("replica's pod is deleted with no grace", d.repeated(whenAdded, d.losesReplica)).
		Full("API server is frozen while a replica's new pod starts", d.repeated(whenAdded, d.losesAPIServerSoon)).
		Full("a pod that is marked as the primary takes writes at once", d.repeated(whenFailed, d.marks)).
		Full("primary's pod is evicted, as a drain does", d.repeated(whenPlanned, d.evicts)).
		Full("primary's processes are killed at once", d.under(whenFailed, d.losesProcesses)).
		Full("primary is frozen for 30 s and thawed", d.repeated(whenFailed, d.freezes)).
		Full("primary is frozen until another one leads, and wakes up at once", d.withClient(d.repeated(whenFailed, d.wakes))).
		Full("all pods are deleted at once with no grace", d.repeated(whenAllGone, d.losesAll)).
		Full("all pods are lost right after a failover", d.under(whenAllGone, d.losesAllAfterFailover)).
		Full("two of three pods are lost at once", d.under(whenAllGone, d.losesMajority)).
		Full("replicas leave one by one, and do not come back", d.under(whenAdded, d.leavesOneByOne)).
		Full("primary is cut off from the others for 20 s", d.repeated(whenFailed, d.isolated)).
		Full("replica that lacks writes is the only server: it does not lead", d.under(noTarget, d.misses)).
		Full("network is lost for 2 s, three times: no server joins again", d.under(whenFailed, d.blips)).
		Full("group communication of a replica stops: it is started again", d.under(whenFailed, d.deafens)).
		Full("primary's pod is lost when group communication of a replica has stopped", d.under(noTarget, d.deafensAndLoses)).
		Full("primary ends while its commits wait for the others", d.under(noTarget, d.endsUnacknowledged)).
		Full("replica's volume is lost", d.under(whenPlanned, d.losesVolume)).
		Full("replica has a transaction of its own: it is set aside", d.under(whenFailed, d.strays)).
		Full("replica cannot be brought up to date: it copies a member", d.under(whenFailed, d.decays)).
		Full("servers are added and removed under load", d.under(whenAdded, d.scales)).
		Full("one server runs without a group, and becomes three", d.under(noTarget, d.standsAlone)).
		Full("parameters are set while the servers run", d.withClient(d.undisturbed(d.sets))).
		Full("parameter rolls, replicas first, primary last", d.withClient(d.under(whenPlanned, d.rolls))).
		Full("parameter with which MySQL does not start stops at one replica", d.under(whenPlanned, d.failsToStart)).
		Full("version rolls to a release and back, replicas first, primary last", d.withClient(d.under(whenPlanned, d.rollsVersion))).
		// Of a backup of one database the content can be restored under another name.
		Full("a Backup is verified by MySQL, and a Restore fills another user's database with it", d.under(whenPlanned, d.backsUp)).
		Full("a physical Backup is verified, and a new cluster is filled from it", d.under(whenPlanned, d.copies)).
		Full("what is written after a backup is archived, and restored to any time", d.anyTime).
		Full("users and databases come and go", d.withClient(d.undisturbed(d.hasUsers))).
		Quick("hibernates and wakes with its data", d.under(noTarget, d.hibernates)).
		Full("impossible changes are refused with a message", d.withClient(d.undisturbed(d.refuses))).
		Feature()
}

// development is one server, which leaves nothing when it is deleted.
func development() types.Feature {
	d := &database{namespace: "e2e-mysql-development", manifest: "mysql/development.yaml"}
	return tests.Feature("a MySQL in development", d.namespace).
		Full("deleted in development it leaves nothing, and its name is free", d.livesTwice).
		Full("deleted and claimed again at once it starts, many times", d.livesAtOnce).
		Feature()
}

// production are servers whose claim is protected, and whose volumes stay when it is deleted.
func production() types.Feature {
	d := &database{namespace: "e2e-mysql-production", manifest: "mysql/production.yaml", base: harness.Patch{
		"version": "9.7", "size": baseSize, "hibernated": nil, "parameters": nil, "users": nil, "databases": nil, "tls": nil,
	}}
	return tests.Feature("a group of MySQL for production", d.namespace).
		Full("three servers come up", d.comesUp).
		Full("deletion of a claim for production is refused", d.undisturbed(d.isProtected)).
		Full("no client connects without TLS, and a certificate is renewed while the servers run", d.withClient(d.undisturbed(d.renews))).
		Full("a password is rotated, and a removed user is locked out", d.withClient(d.undisturbed(d.rotates))).
		Full("a replica that is cut off waits for the primary that serves", d.under(whenFailed, d.cutsReplicaOff)).
		Full("certificate of a refused claim is renewed", d.withClient(d.undisturbed(d.renewsRefused))).
		Full("certificate that is brought is used, and given up again", d.withClient(d.under(whenPlanned, d.bringsTLS))).
		Full("servers whose own certificate is lost know each other by the next one", d.under(whenFailed, d.losesControl)).
		Full("image that does not exist is reported, and healed by going back", d.under(whenPlanned, d.missesImage)).
		Full("API server is frozen for 2 minutes", d.under(whenPlanned, d.losesAPIServerLong)).
		Full("primary is lost with Crossplane and its functions scaled to zero", d.under(whenFailed, d.losesCrossplane)).
		Full("volumes grow while the servers run", d.undisturbed(d.grows)).
		Full("a volume that is lost comes back as large as the others have grown", d.under(whenPlanned, d.losesGrown)).
		Full("wakes with one server, whose volume is not the newest", d.breaking(d.wakesSmaller)).
		Full("claimed again over its volumes", d.breaking(d.comesBack)).
		Full("claimed again with other sizes, over volumes of which one is the newest", d.breaking(d.comesBackOtherwise)).
		Full("a volume is lost while the servers hibernate: no server leads until one is named", d.breaking(d.losesAsleep)).
		Full("claimed again over a volume of another database no server leads until it is removed", d.breaking(d.meetsForeign)).
		Full("claimed again over volumes that parted no server leads until one is named", d.breaking(d.meetsParted)).
		Full("each server has a disk of its own", d.hasSmallDisks).
		Full("disk of the primary is full", d.under(whenFull, d.fillsPrimary)).
		Full("disk of a replica is full", d.under(whenFailed, d.fillsReplica)).
		Full("disks of two servers are full: none leaves", d.under(whenTwoFull, d.fillsTwo)).
		Feature()
}

// history is of volumes that are older than what was archived of them.
func history() types.Feature {
	d := &database{namespace: "e2e-mysql-history", manifest: "mysql/history.yaml", base: harness.Patch{"size": baseSize}, lasting: true}
	return tests.Feature("a group of MySQL for production, with an archive", d.namespace).
		Full("three servers come up, and their binary logs are archived", d.comesUpArchived).
		Full("claimed again with an older volume it archives beside what the newest had archived", d.archived(d.beginsHistory)).
		Full("primary's pod is evicted while nothing is archived", d.archived(d.under(whenPlanned, d.evictsUnarchived))).
		Feature()
}

func store() types.Feature {
	s := &shop{namespace: "e2e-mysql-shop"}
	return tests.Feature("a shop with MySQL", s.namespace).
		Quick("a development shop with MySQL is Ready within 60 s, and an order survives its database's pod", s.sells).
		Feature()
}
