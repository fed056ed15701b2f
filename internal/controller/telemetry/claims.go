package telemetry

import (
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/apimachinery/pkg/types"
)

// Claim is what the metrics show of a claim. They show no messages: each new one would be a series
// of its own.
type Claim struct {
	Kind, Namespace, Name string
	UID                   types.UID

	// Environment is that of the claim's spec.
	Environment string

	// OwnerKind and OwnerName are those of the claim that composes it. They are empty if a user
	// applied it.
	OwnerKind, OwnerName string

	// Phase is that of its status. It is empty until the claim has one.
	Phase string

	// Ready is whether its condition Ready is True, and Since when the status of that condition
	// last changed.
	Ready bool
	Since time.Time

	// Refused is whether its condition Accepted is False: the claim runs as it was, and no change
	// of it, its settings or its surroundings is carried out.
	Refused bool

	Created time.Time

	// Generation is that of the claim, and ReadyGeneration the newest one at which all of it was
	// healthy.
	Generation, ReadyGeneration int64
}

// Claims are the metrics of claims: six series of each, which are removed with their claim, and how
// long it took until each was Ready.
type Claims struct {
	mu   sync.Mutex
	seen map[claimKey]*claimState

	info, phase, ready, accepted, created, lag *prometheus.Desc

	readyDuration *prometheus.HistogramVec
}

type claimKey struct{ kind, namespace, name string }

type claimState struct {
	claim    Claim
	wasReady bool
}

func newClaims() *Claims {
	desc := func(name, help string, labels ...string) *prometheus.Desc {
		return prometheus.NewDesc("storeplane_claim_"+name, help, append([]string{"kind", "namespace", "name", "environment"}, labels...), nil)
	}
	return &Claims{
		seen:     map[claimKey]*claimState{},
		info:     desc("info", "A claim, always 1. Its owner is the claim that composes it, if one does.", "owner_kind", "owner_name"),
		phase:    desc("phase", "The claim's present phase, always 1.", "phase"),
		ready:    desc("ready", "Whether the claim's condition Ready is True: 1 or 0."),
		accepted: desc("accepted", "Whether the claim can be carried out as it is: 0 while its condition Accepted is False, else 1."),
		created:  desc("created_timestamp_seconds", "When the claim was filed."),
		lag:      desc("generation_lag", "By how many generations the claim is ahead of the newest one at which all of it was healthy. 0 once its last change is done."),
		readyDuration: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name:    "storeplane_claim_ready_duration_seconds",
			Help:    "How long claims took from when they were filed until they were Ready for the first time.",
			Buckets: []float64{1, 5, 10, 30, 60, 120, 180, 300, 600, 1200, 1800, 3600},
		}, []string{"kind", "environment"}),
	}
}

// Observe records a claim. fresh means that the claim was created while this process watched.
//
// The time until a claim is Ready for the first time is counted by the process that observes the
// change. A process that starts later, after a restart or because another replica leads, reads from
// the claim's status that it was Ready before.
func (c *Claims) Observe(of Claim, fresh bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	key := claimKey{kind: of.Kind, namespace: of.Namespace, name: of.Name}
	s := c.seen[key]
	if s == nil || s.claim.UID != of.UID {
		again := s != nil
		s = &claimState{wasReady: !fresh && !again && (of.Ready || of.ReadyGeneration > 0)}
		c.seen[key] = s
	}
	// The series exists from now on: an increase is only visible in a series that existed before
	// it.
	readyDuration := c.readyDuration.WithLabelValues(of.Kind, of.Environment)
	if of.Ready && !s.wasReady {
		s.wasReady = true
		readyDuration.Observe(max(0, of.Since.Sub(of.Created).Seconds()))
	}
	s.claim = of
}

// Forget removes the series of a claim.
func (c *Claims) Forget(kind string, of types.NamespacedName) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.seen, claimKey{kind: kind, namespace: of.Namespace, name: of.Name})
}

// Describe implements prometheus.Collector.
func (c *Claims) Describe(ch chan<- *prometheus.Desc) {
	for _, d := range []*prometheus.Desc{c.info, c.phase, c.ready, c.accepted, c.created, c.lag} {
		ch <- d
	}
	c.readyDuration.Describe(ch)
}

// Collect implements prometheus.Collector. It sends what was last observed.
func (c *Claims) Collect(ch chan<- prometheus.Metric) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, s := range c.seen {
		of := s.claim
		send := func(d *prometheus.Desc, v float64, labels ...string) {
			ch <- prometheus.MustNewConstMetric(d, prometheus.GaugeValue, v, append([]string{of.Kind, of.Namespace, of.Name, of.Environment}, labels...)...)
		}
		send(c.info, 1, of.OwnerKind, of.OwnerName)
		if of.Phase != "" {
			send(c.phase, 1, of.Phase)
		}
		send(c.ready, number(of.Ready))
		send(c.accepted, number(!of.Refused))
		send(c.created, float64(of.Created.Unix()))
		send(c.lag, float64(max(0, of.Generation-of.ReadyGeneration)))
	}
	c.readyDuration.Collect(ch)
}

func number(b bool) float64 {
	if b {
		return 1
	}
	return 0
}
