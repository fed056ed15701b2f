package plan

// APIVersion and kind of a Report as JSON.
const (
	APIVersion = "plan.storeplane.example.com/v1"
	Kind       = "PlanReport"
)

// A Report is the plans of some claims.
type Report struct {
	APIVersion string `json:"apiVersion"`
	Kind       string `json:"kind"`

	// Claims in the order in which they were given.
	Claims []Claim `json:"claims"`

	Summary Summary `json:"summary"`
}

// NewReport of plans.
func NewReport(claims []Claim) *Report {
	r := &Report{APIVersion: APIVersion, Kind: Kind, Claims: claims}
	for i := range claims {
		r.Summary.add(claims[i].Summary)
	}
	return r
}

// Verdict on a claim, or on a report, from the best to the worst.
type Verdict string

// The verdicts.
const (
	// NoChange says that nothing is created, changed or deleted by the edit.
	NoChange Verdict = "NoChange"
	// Changes says that something is, and that no consequence interrupts the application
	// or destroys data.
	Changes Verdict = "Changes"
	// Interrupts says that a consequence interrupts the application or destroys data.
	Interrupts Verdict = "Interrupts"
	// Refused says that the claim is refused, so that all stays as it is, or that the API
	// server refuses an object of it in a dry run.
	Refused Verdict = "Refused"
)

// Claim is the plan of one claim.
type Claim struct {
	Object Object `json:"claim"`

	// Exists says that the cluster has the claim already.
	Exists bool `json:"exists"`

	// Deletes says that the plan is of the claim's deletion.
	Deletes bool `json:"deletes,omitempty"`

	Verdict Verdict `json:"verdict"`

	// Refusal says why the claim is refused, and what to do.
	Refusal string `json:"refusal,omitempty"`

	// Rejected are the objects that the API server refuses in a dry run: the claim is not
	// composed as planned until it accepts them.
	Rejected []Rejection `json:"rejected,omitempty"`

	// Edits are the fields of the claim itself that change.
	Edits []Field `json:"edits,omitempty"`

	// Changes of what the claim composes, and of what the claims among that compose, in
	// the order in which they are made.
	Changes []Change `json:"changes,omitempty"`

	// Effects of the changes on what runs.
	Effects []Effect `json:"effects,omitempty"`

	// Drift is what differs already from what the claim as it is would make: it is
	// changed at the next pass, with or without the edit.
	Drift []Change `json:"drift,omitempty"`

	// DriftEffects are those of the drift's changes.
	DriftEffects []Effect `json:"driftEffects,omitempty"`

	// Guardrails are the installation's rules for the claim.
	Guardrails *Guardrails `json:"guardrails,omitempty"`

	// Waits says what the claim would wait for without an end, as far as that is seen.
	Waits string `json:"waits,omitempty"`

	// Breaker is what the changes take of the tokens of Crossplane's circuit breaker.
	Breaker *Breaker `json:"breaker,omitempty"`

	// Cost of what the claim requests, by the price file.
	Cost *Cost `json:"cost,omitempty"`

	// Notes are what else to know before the claim is applied: that it is paused, for one.
	Notes []string `json:"notes,omitempty"`

	// Unknown is what could not be known, and what that means.
	Unknown []string `json:"unknown,omitempty"`

	Summary Summary `json:"summary"`
}

// Object names an object.
type Object struct {
	APIVersion string `json:"apiVersion"`
	Kind       string `json:"kind"`
	Namespace  string `json:"namespace,omitempty"`
	Name       string `json:"name"`
}

func (o Object) String() string { return o.Kind + " " + o.Name }

// Action on an object.
type Action string

// The actions.
const (
	Create Action = "create"
	Update Action = "change"
	Delete Action = "delete"
	// Adopt makes an object that exists the claim's own.
	Adopt Action = "adopt"
)

// Change of an object.
type Change struct {
	// Stage in which it is made, from 1. What is of one stage waits for what was made in
	// those before to be ready. 0 where that is not known.
	Stage int `json:"stage,omitempty"`

	Action Action `json:"action"`
	Object Object `json:"object"`

	// Owner is the claim that composes the object.
	Owner Object `json:"owner"`

	// Fields of an object that changes. Paths name elements of lists by what tells them
	// apart: spec.template.spec.containers[app].image.
	Fields []Field `json:"fields,omitempty"`
}

// Field that changes.
type Field struct {
	Path string `json:"path"`

	// Before and After are JSON values; one that is missing has none.
	Before any `json:"before,omitempty"`
	After  any `json:"after,omitempty"`

	// Hidden says that the values are of a Secret, and so not printed.
	Hidden bool `json:"hidden,omitempty"`
}

// Verb of an effect.
type Verb string

// The verbs.
const (
	// Rolls replaces pods without fewer of them serving.
	Rolls Verb = "roll"
	// Restarts ends pods, and starts others in their place.
	Restarts Verb = "restart"
	// SwitchesOver makes another server the primary of a database.
	SwitchesOver Verb = "switchover"
	// Reloads has servers read their configuration while they run.
	Reloads Verb = "reload"
	// Scales changes how many pods there are.
	Scales Verb = "scale"
	// Copies data to a new server.
	Copies Verb = "copy"
	// Grows a volume.
	Grows Verb = "grow"
	// Runs a Job.
	Runs Verb = "run"
	// Stops something for good, or until it is asked for again.
	Stops Verb = "stop"
	// Starts what has been stopped.
	Starts Verb = "start"
	// Generates a password, a key or a certificate.
	Generates Verb = "generate"
	// Rotates what was generated before.
	Rotates Verb = "rotate"
	// Loses data.
	Loses Verb = "lose"
	// Keeps data that nothing uses any more.
	Keeps Verb = "keep"
	// Reroutes requests.
	Reroutes Verb = "reroute"
	// Unprotects something: what was refused or made before is not any more.
	Unprotects Verb = "unprotect"
)

// Effect of changes on what runs.
type Effect struct {
	Verb   Verb   `json:"verb"`
	Object Object `json:"object"`

	// Message is a sentence without a full stop.
	Message string `json:"message"`

	// Pods that end, and are replaced unless the verb is stop.
	Pods int `json:"pods,omitempty"`

	// MaxPauseSeconds is for how long writes pause at most, where that is known: what
	// the documentation of the kind promises.
	MaxPauseSeconds int `json:"maxPauseSeconds,omitempty"`

	// Interrupts says that clients may notice it.
	Interrupts bool `json:"interrupts,omitempty"`

	// Irreversible says that going back to the claim of before does not undo it.
	Irreversible bool `json:"irreversible,omitempty"`

	// Destroys says that data is lost.
	Destroys bool `json:"destroys,omitempty"`

	// Warning says that nothing happens now, and that something is less safe from then on.
	Warning bool `json:"warning,omitempty"`

	// Unknown says that it may happen, and cannot be known.
	Unknown bool `json:"unknown,omitempty"`
}

// Summary counts.
type Summary struct {
	Create int `json:"create"`
	Change int `json:"change"`
	Delete int `json:"delete"`

	// Pods that are replaced or end.
	Pods int `json:"pods"`

	// Interruptions, Irreversible and Destroys count effects.
	Interruptions int `json:"interruptions"`
	Switchovers   int `json:"switchovers"`
	Irreversible  int `json:"irreversible"`
	Destroys      int `json:"destroys"`

	// Refused counts claims.
	Refused int `json:"refused"`

	// Drift counts objects.
	Drift int `json:"drift"`
}

func (s *Summary) add(o Summary) {
	s.Create += o.Create
	s.Change += o.Change
	s.Delete += o.Delete
	s.Pods += o.Pods
	s.Interruptions += o.Interruptions
	s.Switchovers += o.Switchovers
	s.Irreversible += o.Irreversible
	s.Destroys += o.Destroys
	s.Refused += o.Refused
	s.Drift += o.Drift
}

// Verdict that the counts amount to.
func (s Summary) Verdict() Verdict {
	switch {
	case s.Refused > 0:
		return Refused
	case s.Interruptions+s.Destroys > 0:
		return Interrupts
	case s.Create+s.Change+s.Delete > 0:
		return Changes
	}
	return NoChange
}

// conclude counts what is planned.
func (c *Claim) conclude() {
	s := Summary{Drift: len(c.Drift)}
	if c.Refusal != "" || len(c.Rejected) > 0 {
		s.Refused = 1
	}
	for _, ch := range c.Changes {
		switch ch.Action {
		case Create:
			s.Create++
		case Update, Adopt:
			s.Change++
		case Delete:
			s.Delete++
		}
	}
	for _, e := range c.Effects {
		s.Pods += e.Pods
		if e.Interrupts {
			s.Interruptions++
		}
		if e.Verb == SwitchesOver {
			s.Switchovers++
		}
		if e.Irreversible {
			s.Irreversible++
		}
		if e.Destroys {
			s.Destroys++
		}
	}
	c.Summary = s
	c.Verdict = s.Verdict()
	if !c.Deletes {
		c.Breaker = breaker(c.Changes)
	}
}

// Guardrails of the installation, and those that the claim breaks.
type Guardrails struct {
	Passed int      `json:"passed"`
	Broken []string `json:"broken,omitempty"`
}
