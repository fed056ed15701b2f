package appconfig

import (
	"strconv"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"

	configv1 "github.com/storeplane/storeplane/apis/config/v1"
)

// notes are what this process did lately, since the cache may be behind. Their loss costs requests,
// and nothing else.
type notes struct {
	mu sync.Mutex
	by map[types.NamespacedName]*note
}

func newNotes() *notes { return &notes{by: map[types.NamespacedName]*note{}} }

// note is that of one AppConfig, which one worker at a time reconciles.
type note struct {
	// last is the object that was last written, with the resource version that it then got.
	last *configv1.AppConfig

	// again is after what time to reconcile again, or zero.
	again time.Duration

	// patched and refused are the last changes of targets, and those that were refused.
	patched map[Key]patched
	refused map[Key]refused

	// made are the bundles that were created and are not in the cache yet.
	made map[string]bool

	// proven is the bundle that was last found to hold what its name stands for.
	proven version

	// stable is what the stable name was last found to hold.
	stable stableSeen

	// collected is when old bundles were last searched for, and interval the pause until the next
	// search.
	collected time.Time
	interval  time.Duration
}

// version is the name of a bundle and the resource versions of its objects.
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

// of returns the note of an AppConfig.
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

// forget drops the note of an AppConfig that was deleted.
func (n *notes) forget(key types.NamespacedName) {
	n.mu.Lock()
	defer n.mu.Unlock()
	delete(n.by, key)
}

// older reports whether an AppConfig from the cache is older than the one that was last written. If
// a resource version is not a number it returns false, which may cost a conflict.
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
