package functionstest

import (
	"container/heap"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	fnv1 "github.com/crossplane/function-sdk-go/proto/v1"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/structpb"

	"github.com/storeplane/storeplane/functions"
	"github.com/storeplane/storeplane/internal/converge"
)

// Times of a cluster with little load.
const (
	cacheLag    = 5 * time.Millisecond // at most, from a write until Crossplane's cache has it
	callTime    = 8 * time.Millisecond // of a call of the function, with what comes before it
	requestTime = 8 * time.Millisecond // of a request to the API server
	betweenTime = 4 * time.Millisecond // from the end of a pass to the next one
)

// Cluster simulates what Crossplane's controllers, with a clock of their own, do for a claim and for
// the claims that it composes: a pass begins with an event of the claim or of an object that it
// composes or requires, or after the time to live of the last response, and applies each object. It
// is for counting passes and requests; Crossplane is for what one claim composes.
//
// What else works on the objects, from the Deployment controller to Patroni, follows what was
// observed on a cluster in which images are present (see workloads.go).
type Cluster struct {
	// Passes are the passes of all claims, in the order in which they began.
	Passes []*Pass

	t        testing.TB
	function *functions.Function
	now      time.Duration
	agenda   agenda
	entries  int // that were ever added to the agenda
	random   *rand.Rand
	objects  map[Key]*stored
	claims   map[Key]*controlled
}

// Key identifies an object of the cluster's one namespace.
type Key struct{ Kind, Name string }

func (k Key) String() string { return k.Kind + " " + k.Name }

// Pass is one pass of a claim, with the requests that Crossplane sends to the API server for it.
type Pass struct {
	Claim Key

	// At is when the pass began, since the claim was created.
	At time.Duration

	// Causes are what began the pass: objects that have changed, or "time to live".
	Causes []string

	// Objects is how many objects the response contains.
	Objects int

	// Applies are server-side applies: those of the objects, of the references to them and of the
	// status. Updates are those of the claim, Events those of events, and Reads those of objects that
	// are not in the cache yet.
	Applies, Updates, Events, Reads int

	// Writes is how many of the applies and updates changed an object.
	Writes int
}

// Requests returns the number of requests of a pass.
func (p *Pass) Requests() int { return p.Applies + p.Updates + p.Events + p.Reads }

// began is when the simulation begins.
var began = time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)

// NewCluster simulates a cluster in which a claim, which is YAML, has just been created. The times
// that vary depend on seed alone.
func NewCluster(t testing.TB, claim string, seed uint64) *Cluster {
	t.Helper()
	c := &Cluster{t: t, objects: map[Key]*stored{}, claims: map[Key]*controlled{}, random: rand.New(rand.NewPCG(seed, seed))} //nolint:gosec // Nothing is to be kept secret.
	c.function = functions.New(functions.WithSource(&clock{cluster: c}))
	xr := Parse(t, claim)
	c.write(keyOf(xr), func(*structpb.Struct) *structpb.Struct { return xr })
	return c
}

// Object returns an object as the API server has it, nil if there is none.
func (c *Cluster) Object(k Key) *structpb.Struct {
	if o := c.objects[k]; o != nil {
		return o.live
	}
	return nil
}

// Run runs the simulation until its clock is at a time.
func (c *Cluster) Run(until time.Duration) {
	for len(c.agenda) > 0 && c.agenda[0].at <= until {
		next, _ := heap.Pop(&c.agenda).(entry)
		c.now = next.at
		next.do()
	}
	c.now = until
}

// RunUntilReady runs the simulation until a claim is Ready and nothing has happened for a while, and
// returns when it became Ready.
func (c *Cluster) RunUntilReady(k Key) time.Duration {
	c.t.Helper()
	const longest = 5 * time.Minute
	for c.now < longest {
		c.Run(c.now + 10*time.Millisecond)
		if conditionOf(c.Object(k), "Ready") == "True" {
			at := c.now
			c.Run(at + 5*time.Second)
			return at
		}
	}
	c.t.Fatalf("%v is not Ready after %v: %v", k, longest, Get(c.Object(k), "status"))
	return 0
}

// after does something after a time.
func (c *Cluster) after(d time.Duration, do func()) {
	c.entries++
	heap.Push(&c.agenda, entry{at: c.now + d, order: c.entries, do: do})
}

// stored is an object of the cluster: live as the API server has it, and cached as Crossplane has it.
type stored struct {
	live, cached *structpb.Struct

	// annotations are the keys that were applied: all others belong to other clients.
	annotations []string
	versions    int

	// due is when the cache has the last version.
	due time.Duration
}

// write changes an object by what change returns for a copy of it, and reports whether it differs.
// The object is created where there is none. Its watchers get the event after cacheLag.
func (c *Cluster) write(k Key, change func(*structpb.Struct) *structpb.Struct) bool {
	o := c.objects[k]
	if o == nil {
		o = &stored{}
		c.objects[k] = o
	}
	next := change(proto.CloneOf(o.live))
	if o.live != nil && proto.Equal(o.live, next) {
		return false
	}
	o.versions++
	generation := 1.0
	if o.live == nil {
		Set(next, "uid-"+k.Kind+"-"+k.Name, "metadata", "uid")
		Set(next, c.time(), "metadata", "creationTimestamp")
	} else {
		generation = Get(o.live, "metadata", "generation").GetNumberValue()
	}
	changed := o.live == nil || !proto.Equal(Get(o.live, "spec"), Get(next, "spec"))
	if o.live != nil && changed {
		generation++
	}
	Set(next, generation, "metadata", "generation")
	Set(next, strconv.Itoa(o.versions), "metadata", "resourceVersion")
	o.live = next
	lag := time.Millisecond + time.Duration(c.random.Int64N(int64(cacheLag-time.Millisecond)))
	o.due = max(o.due, c.now+lag) // Events of an object stay in order.
	c.after(o.due-c.now, func() {
		o.cached = next
		c.notify(k, next)
	})
	if changed {
		c.react(k)
	}
	return true
}

// update changes an object that exists, as another client than Crossplane does.
func (c *Cluster) update(k Key, change func(*structpb.Struct)) {
	if c.Object(k) == nil {
		return
	}
	c.write(k, func(s *structpb.Struct) *structpb.Struct {
		change(s)
		return s
	})
}

// time returns the present time as the API server writes it.
func (c *Cluster) time() string { return began.Add(c.now).UTC().Format(time.RFC3339) }

// notify begins a pass of each claim that depends on an object.
func (c *Cluster) notify(k Key, object *structpb.Struct) {
	if c.claims[k] == nil && isClaim(k.Kind) {
		c.claims[k] = &controlled{cluster: c, key: k, bucket: newBucket()}
	}
	for _, key := range slices.SortedFunc(maps.Keys(c.claims), func(a, b Key) int { return strings.Compare(a.String(), b.String()) }) {
		if claim := c.claims[key]; claim.dependsOn(k, object) {
			claim.bucket.take(c.now, Get(object, "metadata", "resourceVersion").GetStringValue() == "1")
			claim.enqueue(k.String())
		}
	}
}

func isClaim(kind string) bool {
	return slices.Contains([]string{"EcommercePlatform", "DatabaseCluster", "WebApp"}, kind)
}

// fetch returns what a requirement selects of the cache.
func (c *Cluster) fetch(_ string, sel *fnv1.ResourceSelector) (*fnv1.Resources, error) {
	out := &fnv1.Resources{}
	for _, o := range c.objects {
		if o.cached != nil && selects(sel, o.cached) {
			out.Items = append(out.Items, &fnv1.Resource{Resource: o.cached})
		}
	}
	return out, nil
}

func selects(sel *fnv1.ResourceSelector, object *structpb.Struct) bool {
	return converge.Selects(sel, Unstructured(object))
}

func keyOf(object *structpb.Struct) Key {
	return Key{Kind: Get(object, "kind").GetStringValue(), Name: Get(object, "metadata", "name").GetStringValue()}
}

// clock is the source of the function: its time is that of the cluster.
type clock struct {
	cluster   *Cluster
	passwords int
}

// Password implements compose.Source.
func (c *clock) Password() (string, error) {
	c.passwords++
	return fmt.Sprintf("%032d", c.passwords), nil
}

// Now implements compose.Source.
func (c *clock) Now() time.Time { return began.Add(c.cluster.now) }

// entry is what is to be done at a time. Of those of the same time the one comes first that was
// added first.
type entry struct {
	at    time.Duration
	order int
	do    func()
}

type agenda []entry

// Len, Less, Swap, Push and Pop implement heap.Interface.
func (a *agenda) Len() int { return len(*a) }

func (a *agenda) Less(i, j int) bool {
	x, y := (*a)[i], (*a)[j]
	if x.at != y.at {
		return x.at < y.at
	}
	return x.order < y.order
}

func (a *agenda) Swap(i, j int) { (*a)[i], (*a)[j] = (*a)[j], (*a)[i] }

func (a *agenda) Push(x any) {
	if e, ok := x.(entry); ok {
		*a = append(*a, e)
	}
}

func (a *agenda) Pop() any {
	last := len(*a) - 1
	e := (*a)[last]
	*a = (*a)[:last]
	return e
}
