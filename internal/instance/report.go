package instance

import (
	"cmp"
	"slices"
	"strings"
	"time"
)

// ClusterKey is the key of Cluster, as JSON, in the ConfigMap
// <statefulset>-status. The keys of members are MemberKey.
const ClusterKey = "cluster.json"

// MemberKey is the key of the Member of a pod.
func MemberKey(pod string) string { return pod + ".json" }

// PodOf is the pod of a member's key, or "".
func PodOf(key string) string {
	pod, ok := strings.CutSuffix(key, ".json")
	if !ok || key == ClusterKey {
		return ""
	}
	return pod
}

// Cluster is what the manager beside the primary says of all servers.
type Cluster struct {
	// Primary is the pod that takes writes.
	Primary string `json:"primary"`

	// Began is when the primary began to lead, as LeadWithAnnotation has it. Managers
	// of an older version do not report it.
	Began string `json:"began,omitempty"`

	// Set is the UID of the StatefulSet that the primary's pod is of, and Owner that of
	// the DatabaseCluster. Managers of an older version do not report them.
	Set   string `json:"statefulSet,omitempty"`
	Owner string `json:"databaseCluster,omitempty"`

	// Timeline of the primary: it grows with each failover.
	Timeline int64 `json:"timeline,omitempty"`

	// Applied is the Digest of the Desired that databases and users were last
	// brought in line with, as far as there are no Problems.
	Applied string `json:"applied,omitempty"`

	// Credentials is the resource version of the Secret credentials whose
	// passwords are set.
	Credentials string `json:"credentials,omitempty"`

	// Standbys by name.
	Standbys []Standby `json:"standbys,omitempty"`

	// System is the cluster's system identifier, by which its backups are
	// told from those of one that had its name before.
	System string `json:"system,omitempty"`

	// Stanza is its place among the backups: the system identifier, and after it,
	// for a cluster that was restored, what tells it from others that have the
	// same.
	Stanza string `json:"stanza,omitempty"`

	// Archive says how archiving goes, while there is any.
	Archive *Archive `json:"archive,omitempty"`

	// Repository is a message of what keeps the volume of the backups from
	// growing to its size. It is empty while it grows, and once it has it.
	Repository string `json:"repository,omitempty"`

	// Rolling says what is under way in words: "Restarting orders-postgresql-1".
	Rolling string `json:"rolling,omitempty"`

	// Problems, sorted by subject and name.
	Problems []Problem `json:"problems,omitempty"`
}

// Of says whether this is told of the servers of a StatefulSet of a DatabaseCluster, by
// their UIDs. A server goes on for seconds after its DatabaseCluster was deleted, and may
// write into the ConfigMap of the next one of that name: both are others then. Another
// StatefulSet alone was made in place of one that was deleted, and another DatabaseCluster
// alone has adopted it.
func (c *Cluster) Of(set, owner string) bool {
	same := func(told, is string) bool { return told == "" || is == "" || told == is }
	return same(c.Set, set) || same(c.Owner, owner)
}

// StanzaName is the Stanza, also as managers of an older version report it.
func (c *Cluster) StanzaName() string { return cmp.Or(c.Stanza, c.System) }

// Standby is a server that follows the primary.
type Standby struct {
	Name string `json:"name"`

	// New standbys have not followed the primary yet: what is on their volumes may
	// be another database. Managers of an older version do not report it.
	New bool `json:"new,omitempty"`

	// Streaming is false while it is not connected to the primary.
	Streaming bool `json:"streaming,omitempty"`

	// Synchronous standbys may acknowledge a write.
	Synchronous bool `json:"synchronous,omitempty"`

	// Lagging standbys are more than LagBytes behind.
	Lagging bool `json:"lagging,omitempty"`
}

// LagBytes behind the primary make a standby lag: one WAL segment.
const LagBytes = 16 << 20

// Archive of WAL. Every change of it runs the function: its times move in steps
// of ArchiveStep.
type Archive struct {
	// Recoverable is the newest time that can be restored to.
	Recoverable *time.Time `json:"recoverable,omitempty"`

	// Failing says in words why WAL cannot be archived. It is empty while it
	// can.
	Failing string `json:"failing,omitempty"`

	// Full says that it is since the repository's volume has no room.
	Full bool `json:"full,omitempty"`

	// Since is when WAL was archived last before that.
	Since *time.Time `json:"since,omitempty"`

	// Gaps in the archive, oldest first, as long as there is a backup from before
	// them. Recoverable is from before one that is open.
	Gaps []Gap `json:"gaps,omitempty"`

	// BackedUp says that there was a backup when the repository was last read: one
	// that has none after that has lost it.
	BackedUp bool `json:"backedUp,omitempty"`
}

// Open says whether there is a gap without a backup that is newer.
func (a *Archive) Open() bool {
	return a != nil && slices.ContainsFunc(a.Gaps, func(g Gap) bool { return g.To == nil })
}

// Lost says whether the repository has lost all backups that it held, and has no
// new one yet: nothing can be restored.
func (a *Archive) Lost() bool {
	return a != nil && !a.BackedUp && slices.ContainsFunc(a.Gaps, func(g Gap) bool { return g.From == nil && g.To == nil })
}

// Gap is WAL that is neither in the archive nor on a volume any more: nothing
// between From and To can be restored. After the loss of all backups it is the WAL
// before the next one: without a backup it restores nothing.
type Gap struct {
	// First and Last segment that is lost.
	First string `json:"first"`
	Last  string `json:"last"`

	// From is the newest time before it that can be restored to, if that is
	// known, and there is a backup from before it.
	From *time.Time `json:"from,omitempty"`

	// To is when the first backup after it was complete, or nil while there is
	// none.
	To *time.Time `json:"to,omitempty"`
}

// String names the segments.
func (g Gap) String() string {
	if g.First == g.Last {
		return g.First
	}
	return g.First + " to " + g.Last
}

// ArchiveStep is how much later Recoverable has to be to be told.
const ArchiveStep = 5 * time.Minute

// Subject of a Problem.
type Subject string

// The subjects.
const (
	SubjectDatabase  Subject = "database"
	SubjectUser      Subject = "user"
	SubjectParameter Subject = "parameter"
	SubjectPod       Subject = "pod"
	SubjectBackup    Subject = "backup"
)

// Problem that needs somebody.
type Problem struct {
	Subject Subject `json:"subject"`
	Name    string  `json:"name,omitempty"`

	// Message in words, without numbers that change.
	Message string `json:"message"`
}

// Member is what each manager says of its own server.
type Member struct {
	// Protocol is the newest version that the manager speaks. Managers of an older release report
	// none.
	Protocol int `json:"protocol,omitempty"`

	// Version that runs, as PostgreSQL says it: 17.5.
	Version string `json:"version,omitempty"`

	// Capacity of the volume, a Kubernetes quantity.
	Capacity string `json:"capacity,omitempty"`

	// Filling of the volume in percent, as a threshold that was passed: 0, 80
	// or 90.
	Filling int `json:"filling,omitempty"`

	// Volume says in words what keeps the volume from growing to its size. It is
	// empty while the volume grows: Capacity tells that.
	Volume string `json:"volume,omitempty"`

	// Restart says that a parameter waits for a restart of this server.
	Restart bool `json:"restart,omitempty"`

	// Message in words about anything else that is wrong with this server.
	Message string `json:"message,omitempty"`

	// Data is what the volume held when the server came, while volumes of an
	// earlier cluster are compared.
	Data *Data `json:"data,omitempty"`

	// Held says why this server is not started, while it is not.
	Held *Held `json:"held,omitempty"`

	// Servers that it takes to compare all volumes, where that is more than Size.
	Servers int32 `json:"servers,omitempty"`

	// Restore says how it goes while this server is filled from a backup.
	Restore *RestoreState `json:"restore,omitempty"`
}
