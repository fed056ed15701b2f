package patroni

import (
	"fmt"
	"strconv"
	"strings"
)

// States of a server.
const (
	StateRunning   = "running"
	StateStreaming = "streaming"
	StateStopped   = "stopped"
)

// Status is the answer to GET /patroni.
type Status struct {
	State          string `json:"state"`
	Role           string `json:"role"`
	ServerVersion  int    `json:"server_version"`
	Timeline       int64  `json:"timeline"`
	PendingRestart bool   `json:"pending_restart"`

	// ReplicationState is that of a standby: streaming, in archive recovery, or nothing.
	ReplicationState string `json:"replication_state"`
}

// RoleReplica is the role of a standby.
const RoleReplica = "replica"

// Position is the part of the answer to GET /patroni about where a standby is. The locations
// are positions in the WAL, in bytes.
type Position struct {
	Status

	Xlog struct {
		// Received is 0 if nothing was received since the server started. Paused is true if a
		// user has paused the replay.
		Received int64 `json:"received_location"`
		Replayed int64 `json:"replayed_location"`
		Paused   bool  `json:"paused"`
	} `json:"xlog"`
}

// Leads reports whether the server takes writes, or will again after a restart. Before Patroni
// 4 the role was called master.
func (s *Status) Leads() bool { return s.Role == "primary" || s.Role == "master" }

// Primary reports whether the server takes writes.
func (s *Status) Primary() bool { return s.Leads() && s.State == StateRunning }

// Idle reports whether the server is a standby that runs and does not stream.
func (s *Status) Idle() bool {
	return s.Role == RoleReplica && s.State == StateRunning && s.ReplicationState != StateStreaming
}

// Empty reports whether the server has no data and is not getting any.
func (s *Status) Empty() bool { return s.Role == "uninitialized" && s.State == StateStopped }

// Version returns PostgreSQL's version, such as 17.5, or "" if it is not known.
func (s *Status) Version() string {
	if s.ServerVersion == 0 {
		return ""
	}
	return fmt.Sprintf("%d.%d", s.ServerVersion/10000, s.ServerVersion%10000)
}

// Cluster is the answer to GET /cluster.
type Cluster struct {
	Members []Member `json:"members"`
}

// Member is a server of a Cluster.
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

// Manager returns the base URL of the instance manager beside this server. It is without TLS
// if that of Patroni is, since both are of one pod.
func (m *Member) Manager(port string) string {
	scheme := "https"
	if strings.HasPrefix(m.APIURL, "http://") {
		scheme = "http"
	}
	return Base(scheme, m.Host, port)
}

// Asleep reports whether there is no leader and no server is at work.
func (c *Cluster) Asleep() bool {
	for _, m := range c.Members {
		if m.Role == "leader" || m.State != StateStopped {
			return false
		}
	}
	return true
}

// Leader returns the name of the cluster's leader, or "".
func (c *Cluster) Leader() string {
	for _, m := range c.Members {
		if m.Role == "leader" {
			return m.Name
		}
	}
	return ""
}

// Member returns a member by its name, or nil.
func (c *Cluster) Member(name string) *Member {
	for i := range c.Members {
		if c.Members[i].Name == name {
			return &c.Members[i]
		}
	}
	return nil
}

// Streaming reports whether a standby follows. Before Patroni 4 the state of such a standby
// was running.
func (m *Member) Streaming() bool { return m.State == StateStreaming || m.State == StateRunning }

// Synchronous reports whether a standby acknowledges writes.
func (m *Member) Synchronous() bool { return m.Role == "sync_standby" || m.Role == "quorum_standby" }

// MayLead reports whether a standby may be promoted.
func (m *Member) MayLead() bool {
	no, _ := m.Tags["nofailover"].(bool)
	return m.Role != "leader" && m.Role != "standby_leader" && !no
}

// Lag is in bytes, or -1 if Patroni reports "unknown".
type Lag int64

// UnmarshalJSON reads a number, or any other value as -1.
func (l *Lag) UnmarshalJSON(data []byte) error {
	*l = -1
	if v, err := strconv.ParseInt(string(data), 10, 64); err == nil {
		*l = Lag(v)
	}
	return nil
}
