package telemetry

import (
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/apimachinery/pkg/types"
)

// Claim as far as Prometheus is told of it. Messages are not: each new one would
// be a series of its own.
type Claim struct {
	Kind, Namespace, Name string
	UID                   types.UID

	// Environment that the claim names.
	Environment string

	// OwnerKind and OwnerName of what composes it. Empty where somebody filed it.
	OwnerKind, OwnerName string

	// Phase in its status. Empty until it has one.
	Phase string

	// Ready as its condition says, and since when it says so.
	Ready bool
	Since time.Time

	// Refused as its condition Accepted says: it runs as it was, and no change
	// of it, its settings or its surroundings is carried out.
	Refused bool

	Created time.Time

	// Generation of the claim, and the newest one at which all of it was healthy.
	Generation, ReadyGeneration int64
}

// Claims as Prometheus sees them: six series each, which go with their claim, and
// how long it took until each was Ready.
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

// Observe a claim. One that is fresh was filed while this process watched.
//
// When a claim was Ready for the first time is counted by the process that sees it
// become so. One that comes later, after a restart or another leader, knows from
// the claim's status that it had been.
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
	// It is there from now on: an increase is seen only of what was there before.
	readyDuration := c.readyDuration.WithLabelValues(of.Kind, of.Environment)
	if of.Ready && !s.wasReady {
		s.wasReady = true
		readyDuration.Observe(max(0, of.Since.Sub(of.Created).Seconds()))
	}
	s.claim = of
}

// Forget a claim.
func (c *Claims) Forget(kind string, of types.NamespacedName) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.seen, claimKey{kind: kind, namespace: of.Namespace, name: of.Name})
}

// Describe to Prometheus what there is.
func (c *Claims) Describe(ch chan<- *prometheus.Desc) {
	for _, d := range []*prometheus.Desc{c.info, c.phase, c.ready, c.accepted, c.created, c.lag} {
		ch <- d
	}
	c.readyDuration.Describe(ch)
}

// Collect what was seen last.
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
