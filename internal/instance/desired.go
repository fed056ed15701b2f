package instance

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"math"
	"strconv"
	"strings"
)

// DesiredKey is the key of Desired, as JSON, in the ConfigMap named like the
// StatefulSet.
const DesiredKey = "instance.json"

// Desired is what the managers make of the servers.
type Desired struct {
	// Claim is the name of the DatabaseCluster.
	Claim string `json:"claim"`

	// Size is the number of servers. Those with an ordinal at or above it are
	// about to go, so none of them may be primary.
	Size int32 `json:"size"`

	// Hibernated servers are all about to go.
	Hibernated bool `json:"hibernated,omitempty"`

	// Synchronous says that a write waits for a standby.
	Synchronous bool `json:"synchronous,omitempty"`

	// Storage of each volume, a Kubernetes quantity. Volumes grow, never
	// shrink.
	Storage string `json:"storage"`

	// Databases in order. The first one is app.
	Databases []Database `json:"databases"`

	// Users who may log in, in order. The first one is app. Their passwords
	// are in the Secret credentials under PasswordKey. A role that a manager
	// made and that is not among them any more can not log in.
	Users []string `json:"users"`

	// Parameters that the claim sets, for the managers to check. Patroni
	// gets them by another way.
	Parameters map[string]string `json:"parameters,omitempty"`
}

// Database to exist. One that is no longer desired stays: it holds data.
type Database struct {
	Name       string   `json:"name"`
	Owner      string   `json:"owner"`
	Extensions []string `json:"extensions,omitempty"`
}

// PasswordKey is the key of a user's password in the Secret credentials.
func PasswordKey(user string) string { return "user-" + user }

// Digest tells one Desired, as it stands in the ConfigMap, from another.
func Digest(desired string) string {
	sum := sha256.Sum256([]byte(desired))
	return hex.EncodeToString(sum[:8])
}

// Program is the instance manager in the image.
const Program = "/usr/local/bin/instance"

// ScopeVariable names the environment variable that holds the name of the
// StatefulSet, which is also Patroni's scope.
const ScopeVariable = "CLUSTER_SCOPE"

// Ordinal of a StatefulSet's pod, or one beyond all others.
func Ordinal(pod string) int32 {
	n, err := strconv.ParseInt(pod[strings.LastIndex(pod, "-")+1:], 10, 32)
	if err != nil {
		return math.MaxInt32
	}
	return int32(n)
}

// Pod of a StatefulSet by its ordinal.
func Pod(set string, ordinal int32) string { return fmt.Sprintf("%s-%d", set, ordinal) }
