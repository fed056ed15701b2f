package appconfig

import (
	"strconv"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"

	configv1 "github.com/storeplane/storeplane/apis/config/v1"
)

// notes of what this process did lately, since the cache may be behind. To lose
// them costs requests, and nothing else.
type notes struct {
	mu sync.Mutex
	by map[types.NamespacedName]*note
}

func newNotes() *notes { return &notes{by: map[types.NamespacedName]*note{}} }

// note of one AppConfig. It is reconciled by one worker at a time.
type note struct {
	// last is the object that was last written, with the version it has since.
	last *configv1.AppConfig

	// again is how soon to look again, or zero.
	again time.Duration

	// patched and refused targets.
	patched map[Key]patched
	refused map[Key]refused

	// made bundles.
	made map[string]bool

	// proven is the bundle that was last seen to hold what its name promises.
	proven version

	// stable is what the stable name was last seen to hold.
	stable stableSeen

	// collected is when old bundles were last looked for, and patience how long
	// to wait before the next time.
	collected time.Time
	patience  time.Duration
}

// version of a bundle: its name, and what its objects were.
type version struct {
	name, config, secret string
}

type patched struct {
	uid        types.UID
	generation int64
	bundle     string
}

type refused struct {
	Refusal

	uid    types.UID
	bundle string
	until  time.Time
}

// of an AppConfig.
func (n *notes) of(key types.NamespacedName) *note {
	n.mu.Lock()
	defer n.mu.Unlock()
	out := n.by[key]
	if out == nil {
		out = &note{patched: map[Key]patched{}, refused: map[Key]refused{}, made: map[string]bool{}}
		n.by[key] = out
	}
	return out
}

// forget an AppConfig that is gone.
func (n *notes) forget(key types.NamespacedName) {
	n.mu.Lock()
	defer n.mu.Unlock()
	delete(n.by, key)
}

// older tells whether an AppConfig from the cache is older than the one that was
// last written. It is wrong of a version that is no number, which costs a conflict.
func (n *note) older(a *configv1.AppConfig) bool {
	if n.last == nil || n.last.UID != a.UID {
		return false
	}
	have, err := strconv.ParseUint(a.ResourceVersion, 10, 64)
	if err != nil {
		return false
	}
	wrote, err := strconv.ParseUint(n.last.ResourceVersion, 10, 64)
	return err == nil && have < wrote
}
