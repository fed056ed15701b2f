package instance

import (
	"cmp"
	"slices"
	"strconv"
	"strings"
	"time"
)

// ClusterKey is the key of Cluster, as JSON, in the ConfigMap StatusName. MemberKey
// returns the keys of members.
const ClusterKey = "cluster.json"

// ArchiveKey is the key of the Archive, as JSON, in the ConfigMap ArchiveName, of an engine whose log a pod of its
// own archives. The instance manager of the primary passes it on in its own report.
const ArchiveKey = "archive.json"

// MemberKey returns the key of a pod's Member.
func MemberKey(pod string) string { return pod + ".json" }

// PodOf returns the pod of a member's key, or "" if the key is none.
func PodOf(key string) string {
	pod, ok := strings.CutSuffix(key, ".json")
	if !ok || key == ClusterKey {
		return ""
	}
	return pod
}

// Cluster is the report of the manager beside the primary on all servers.
type Cluster struct {
	// Primary is the pod that takes writes.
	Primary string `json:"primary"`

	// Began is when the primary began to lead, in the format of LeadWithAnnotation. Managers
	// of an older release do not report it.
	Began string `json:"began,omitempty"`

	// Set is the UID of the StatefulSet that the primary's pod belongs to, and Owner that of
	// the DatabaseCluster. Managers of an older release do not report them.
	Set   string `json:"statefulSet,omitempty"`
	Owner string `json:"databaseCluster,omitempty"`

	// Timeline is the primary's timeline. It grows with each failover.
	Timeline int64 `json:"timeline,omitempty"`

	// Applied is the Digest of the Desired with which databases and users were last
	// reconciled, as far as there are no Problems.
	Applied string `json:"applied,omitempty"`

	// Credentials is the resource version of the Secret credentials whose passwords are set.
	Credentials string `json:"credentials,omitempty"`

	// Standbys are sorted by name.
	Standbys []Standby `json:"standbys,omitempty"`

	// System is the cluster's system identifier. It distinguishes the cluster's backups from
	// those of an earlier cluster of the same name.
	System string `json:"system,omitempty"`

	// Stanza is the cluster's stanza in the repository: the system identifier, followed, for a
	// cluster that was restored, by a suffix that distinguishes it from others with the same
	// system identifier.
	Stanza string `json:"stanza,omitempty"`

	// Dumps is true once the user of backups exists and may read all databases, for engines whose
	// backups are dumps.
	Dumps bool `json:"dumps,omitempty"`

	// Archive is the state of archiving, or nil without an archive.
	Archive *Archive `json:"archive,omitempty"`

	// Repository is what keeps the volume of the backups from expanding to its size. It is
	// empty while the volume expands, and once it has its size.
	Repository string `json:"repository,omitempty"`

	// Rolling describes what is being done to the servers, such as "Restarting
	// orders-postgresql-1".
	Rolling string `json:"rolling,omitempty"`

	// Problems are sorted by subject and name.
	Problems []Problem `json:"problems,omitempty"`
}

// Of reports whether the report is about the servers of a StatefulSet of a DatabaseCluster,
// given both UIDs. It is not if both differ: a server runs for some seconds after its
// DatabaseCluster was deleted, and may write into the ConfigMap of the next one of that name.
// If only the StatefulSet's differs, it was created in place of one that was deleted. If only
// the DatabaseCluster's differs, another DatabaseCluster has adopted the StatefulSet. An
// unknown UID differs from none.
func (c *Cluster) Of(set, owner string) bool {
	same := func(reported, is string) bool { return reported == "" || is == "" || reported == is }
	return same(c.Set, set) || same(c.Owner, owner)
}

// Reign identifies the time during which the reported primary led.
func (c *Cluster) Reign() string {
	if c.Primary == "" {
		return ""
	}
	return c.Primary + "/" + strconv.FormatInt(c.Timeline, 10)
}

// Restored reports whether the cluster was restored from a backup: it then archives to a stanza of
// its own.
func (c *Cluster) Restored() bool { return c.Stanza != "" && c.Stanza != c.System }

// StanzaName returns the Stanza, or what it is where a manager of an older release reports
// only the System.
func (c *Cluster) StanzaName() string { return cmp.Or(c.Stanza, c.System) }

// Standby is a server that follows the primary.
type Standby struct {
	Name string `json:"name"`

	// New is true if the standby has not followed the primary yet: its volume may hold another
	// database. Managers of an older release do not report it.
	New bool `json:"new,omitempty"`

	// Streaming is true while the standby is connected to the primary.
	Streaming bool `json:"streaming,omitempty"`

	// Synchronous is true if the standby may acknowledge a write.
	Synchronous bool `json:"synchronous,omitempty"`

	// Lagging is true if the standby is more than LagBytes behind.
	Lagging bool `json:"lagging,omitempty"`
}

// LagBytes is how far a standby may be behind the primary before it lags: one WAL segment.
const LagBytes = 16 << 20

// Archive is the state of archiving. Every change of it runs the function, so Recoverable
// advances in steps of ArchiveStep.
type Archive struct {
	// Recoverable is the newest time that can be restored to, and RecoverableSegment the segment
	// of WAL with the commit of that time. Reports of older versions have no segment.
	Recoverable        *time.Time `json:"recoverable,omitempty"`
	RecoverableSegment string     `json:"recoverableSegment,omitempty"`

	// Failing is why WAL cannot be archived. It is empty while archiving works.
	Failing string `json:"failing,omitempty"`

	// Archiving is true if WAL is archived although Failing: it is not certain that a restore gets to
	// what was written.
	Archiving bool `json:"archiving,omitempty"`

	// Full is true if archiving fails because the repository's volume is full.
	Full bool `json:"full,omitempty"`

	// Since is when WAL was last archived before archiving failed.
	Since *time.Time `json:"since,omitempty"`

	// Gaps lists the gaps in the archive, oldest first, as long as there is a backup from
	// before them. If one is open, Recoverable is from before it.
	Gaps []Gap `json:"gaps,omitempty"`

	// Reported is when the pod that archives the log said that it does, in steps of ArchiveStep. It is nil
	// where the servers archive their log themselves.
	Reported *time.Time `json:"reported,omitempty"`

	// System is the identifier of the data, where a pod of its own archives the log.
	System string `json:"system,omitempty"`

	// Parted is true if the data of System lacks, for long, what is archived of it: it is an older state of it.
	Parted bool `json:"parted,omitempty"`

	// BackedUp is true if the repository contained a backup when it was last read. If it
	// contains none after that, it has lost them.
	BackedUp bool `json:"backedUp,omitempty"`
}

// Open reports whether there is a gap that no newer backup ends.
func (a *Archive) Open() bool {
	return a != nil && slices.ContainsFunc(a.Gaps, func(g Gap) bool { return g.To == nil })
}

// Lost reports whether the repository has lost all backups that it contained, and has no new
// one yet, so that nothing can be restored.
func (a *Archive) Lost() bool {
	return a != nil && !a.BackedUp && slices.ContainsFunc(a.Gaps, func(g Gap) bool { return g.From == nil && g.To == nil })
}

// Gap is WAL that is neither in the archive nor on a volume any more: no time between From and
// To can be restored. After the loss of all backups it is the WAL before the next backup,
// which cannot be used without one.
type Gap struct {
	// First and Last are the first and the last segment of the gap.
	First string `json:"first"`
	Last  string `json:"last"`

	// From is the newest time before the gap that can be restored to. It is nil if that is not
	// known, or if there is no backup from before the gap.
	From *time.Time `json:"from,omitempty"`

	// To is when the first backup after the gap was complete, or nil while there is none.
	To *time.Time `json:"to,omitempty"`
}

// String returns the names of the first and the last segment.
func (g Gap) String() string {
	if g.First == g.Last {
		return g.First
	}
	return g.First + " to " + g.Last
}

// ArchiveStep is by how much Recoverable has to advance before the change is reported.
const ArchiveStep = 5 * time.Minute

// Subject is what a Problem is about.
type Subject string

// The subjects of problems.
const (
	SubjectDatabase  Subject = "database"
	SubjectUser      Subject = "user"
	SubjectParameter Subject = "parameter"
	SubjectPod       Subject = "pod"
	SubjectBackup    Subject = "backup"
)

// Problem is a problem that a user has to solve.
type Problem struct {
	Subject Subject `json:"subject"`
	Name    string  `json:"name,omitempty"`

	// Message contains no numbers that change.
	Message string `json:"message"`
}

// Member is the report of a manager on its own server.
type Member struct {
	// Protocol is the newest version of the protocol that the manager supports. Managers of an
	// older release report none.
	Protocol int `json:"protocol,omitempty"`

	// Version is the version of PostgreSQL that runs, such as 17.5.
	Version string `json:"version,omitempty"`

	// Capacity is the capacity of the volume, a Kubernetes quantity.
	Capacity string `json:"capacity,omitempty"`

	// Filling is the highest threshold that the usage of the volume has passed, in percent: 0,
	// 80 or 90.
	Filling int `json:"filling,omitempty"`

	// Volume is what keeps the volume from expanding to its size. It is empty while the volume
	// expands, which Capacity shows.
	Volume string `json:"volume,omitempty"`

	// Restart is true if a parameter takes effect only after a restart of this server.
	Restart bool `json:"restart,omitempty"`

	// Message describes anything else that is wrong with this server.
	Message string `json:"message,omitempty"`

	// Data is what the volume held when the server came up, while volumes of an earlier
	// cluster are compared.
	Data *Data `json:"data,omitempty"`

	// Held is why this server is not started, or nil.
	Held *Held `json:"held,omitempty"`

	// Servers is the number of servers that is needed to compare all volumes, where that is
	// more than Size.
	Servers int32 `json:"servers,omitempty"`

	// Restore is the progress of the restore while this server is restored from a backup.
	Restore *RestoreState `json:"restore,omitempty"`

	// Leaderless is the Reign of the last primary, once no server has led for longer than a
	// failover takes, and empty otherwise.
	Leaderless string `json:"leaderless,omitempty"`
}
