package patroni

import (
	"fmt"
	"strconv"
	"strings"
)

// State of a server that is up.
const (
	StateRunning   = "running"
	StateStreaming = "streaming"
	StateStopped   = "stopped"
)

// Status is what GET /patroni says.
type Status struct {
	State          string `json:"state"`
	Role           string `json:"role"`
	ServerVersion  int    `json:"server_version"`
	Timeline       int64  `json:"timeline"`
	PendingRestart bool   `json:"pending_restart"`

	// ReplicationState of a standby: streaming, in archive recovery, or nothing.
	ReplicationState string `json:"replication_state"`
}

// RoleReplica is a standby's role.
const RoleReplica = "replica"

// Position is what GET /patroni says of where a standby is. The locations are
// positions in the WAL, in bytes.
type Position struct {
	Status

	Xlog struct {
		// Received is 0 where nothing was since the server started, and Paused says that
		// a person has stopped the replay.
		Received int64 `json:"received_location"`
		Replayed int64 `json:"replayed_location"`
		Paused   bool  `json:"paused"`
	} `json:"xlog"`
}

// Leads says whether the server is the one that takes writes, or will again
// after a restart. Before Patroni 4 it was called master.
func (s *Status) Leads() bool { return s.Role == "primary" || s.Role == "master" }

// Primary says whether the server takes writes.
func (s *Status) Primary() bool { return s.Leads() && s.State == StateRunning }

// Idle says whether the server is a standby that is up and follows nobody.
func (s *Status) Idle() bool {
	return s.Role == RoleReplica && s.State == StateRunning && s.ReplicationState != StateStreaming
}

// Empty says whether the server has no data, and does nothing about it.
func (s *Status) Empty() bool { return s.Role == "uninitialized" && s.State == StateStopped }

// Version as PostgreSQL says it.
func (s *Status) Version() string {
	if s.ServerVersion == 0 {
		return ""
	}
	return fmt.Sprintf("%d.%d", s.ServerVersion/10000, s.ServerVersion%10000)
}

// Cluster is what GET /cluster says.
type Cluster struct {
	Members []Member `json:"members"`
}

// Member of a Cluster.
type Member struct {
	Name           string         `json:"name"`
	Role           string         `json:"role"`
	State          string         `json:"state"`
	Host           string         `json:"host"`
	APIURL         string         `json:"api_url,omitempty"`
	Lag            Lag            `json:"lag"`
	PendingRestart bool           `json:"pending_restart"`
	Tags           map[string]any `json:"tags"`
}

// Manager is the base URL of the instance manager beside this server, which has no TLS where
// Patroni says that it has none: both are of one pod.
func (m Member) Manager(port string) string {
	scheme := "https"
	if strings.HasPrefix(m.APIURL, "http://") {
		scheme = "http"
	}
	return Base(scheme, m.Host, port)
}

// Asleep says whether nobody leads, and no server does anything.
func (c *Cluster) Asleep() bool {
	for _, m := range c.Members {
		if m.Role == "leader" || m.State != StateStopped {
			return false
		}
	}
	return true
}

// Leader of the cluster, or "".
func (c *Cluster) Leader() string {
	for _, m := range c.Members {
		if m.Role == "leader" {
			return m.Name
		}
	}
	return ""
}

// Member by name, or nil.
func (c *Cluster) Member(name string) *Member {
	for i := range c.Members {
		if c.Members[i].Name == name {
			return &c.Members[i]
		}
	}
	return nil
}

// Streaming says whether a standby follows. Before Patroni 4 a standby that
// does was just running.
func (m *Member) Streaming() bool { return m.State == StateStreaming || m.State == StateRunning }

// Synchronous says whether a standby acknowledges writes.
func (m *Member) Synchronous() bool { return m.Role == "sync_standby" || m.Role == "quorum_standby" }

// MayLead says whether a standby may be promoted.
func (m *Member) MayLead() bool {
	no, _ := m.Tags["nofailover"].(bool)
	return m.Role != "leader" && m.Role != "standby_leader" && !no
}

// Lag in bytes, or -1 where Patroni says "unknown".
type Lag int64

// UnmarshalJSON reads a number, or a word.
func (l *Lag) UnmarshalJSON(data []byte) error {
	*l = -1
	if v, err := strconv.ParseInt(string(data), 10, 64); err == nil {
		*l = Lag(v)
	}
	return nil
}
