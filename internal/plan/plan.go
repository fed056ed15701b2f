package plan

// APIVersion and Kind identify a Report in JSON.
const (
	APIVersion = "plan.storeplane.example.com/v1"
	Kind       = "PlanReport"
)

// A Report is the plans of some claims.
type Report struct {
	APIVersion string `json:"apiVersion"`
	Kind       string `json:"kind"`

	// Claims are the plans, in the order in which the claims were given.
	Claims []Claim `json:"claims"`

	Summary Summary `json:"summary"`
}

// NewReport returns a report of plans.
func NewReport(claims []Claim) *Report {
	r := &Report{APIVersion: APIVersion, Kind: Kind, Claims: claims}
	for i := range claims {
		r.Summary = r.Summary.plus(claims[i].Summary)
	}
	return r
}

// Verdict sums up the plan of a claim, or a report.
type Verdict string

// The verdicts, from the best to the worst.
const (
	// NoChange means that the edit creates, changes and deletes nothing.
	NoChange Verdict = "NoChange"
	// Changes means that the edit changes objects, and that no consequence interrupts the
	// application or destroys data.
	Changes Verdict = "Changes"
	// Interrupts means that a consequence interrupts the application or destroys data.
	Interrupts Verdict = "Interrupts"
	// Refused means that the claim is refused, so that nothing changes, or that the API server
	// refuses one of its objects in a dry run.
	Refused Verdict = "Refused"
)

// Claim is the plan of one claim.
type Claim struct {
	Object Object `json:"claim"`

	// Exists is true if the claim exists in the cluster.
	Exists bool `json:"exists"`

	// Deletes is true if the plan is about the deletion of the claim.
	Deletes bool `json:"deletes,omitempty"`

	Verdict Verdict `json:"verdict"`

	// Refusal is why the claim is refused, and what to do.
	Refusal string `json:"refusal,omitempty"`

	// Rejected are the objects that the API server refuses in a dry run: the claim is not
	// composed as planned until it accepts them.
	Rejected []Rejection `json:"rejected,omitempty"`

	// Edits are the fields of the claim itself that change.
	Edits []Field `json:"edits,omitempty"`

	// Changes are those of the objects that the claim composes, and of those that the claims among
	// these compose, in the order in which they are made.
	Changes []Change `json:"changes,omitempty"`

	// Effects are the consequences of the changes for what runs.
	Effects []Effect `json:"effects,omitempty"`

	// Drift is what differs already from what the unedited claim composes: the next reconciliation
	// changes it, with or without the edit.
	Drift []Change `json:"drift,omitempty"`

	// DriftEffects are the consequences of the drift's changes.
	DriftEffects []Effect `json:"driftEffects,omitempty"`

	// Guardrails are the results of the installation's guardrails for the claim.
	Guardrails *Guardrails `json:"guardrails,omitempty"`

	// Waits is what the claim would wait for indefinitely, as far as that can be seen.
	Waits string `json:"waits,omitempty"`

	// Breaker is what the changes take of the tokens of Crossplane's circuit breaker.
	Breaker *Breaker `json:"breaker,omitempty"`

	// Cost is the price of what the claim requests, by the price file.
	Cost *Cost `json:"cost,omitempty"`

	// Notes are what else to consider before the claim is applied, such as that it is paused.
	Notes []string `json:"notes,omitempty"`

	// Unknown lists in sentences what could not be known, and what that means.
	Unknown []string `json:"unknown,omitempty"`

	Summary Summary `json:"summary"`
}

// Object identifies an object.
type Object struct {
	APIVersion string `json:"apiVersion"`
	Kind       string `json:"kind"`
	Namespace  string `json:"namespace,omitempty"`
	Name       string `json:"name"`
}

func (o Object) String() string { return o.Kind + " " + o.Name }

// Action is what happens to an object.
type Action string

// The actions.
const (
	Create Action = "create"
	Update Action = "change"
	Delete Action = "delete"
	// Adopt makes an existing object the claim's own.
	Adopt Action = "adopt"
)

// Change is the change of an object.
type Change struct {
	// Stage is the stage in which the change is made, from 1. A stage waits until everything in the
	// stages before it is ready. 0 if that is not known.
	Stage int `json:"stage,omitempty"`

	Action Action `json:"action"`
	Object Object `json:"object"`

	// Owner is the claim that composes the object.
	Owner Object `json:"owner"`

	// Fields are those that change. Paths name elements of lists by their keys:
	// spec.template.spec.containers[app].image.
	Fields []Field `json:"fields,omitempty"`
}

// Field is a field that changes.
type Field struct {
	Path string `json:"path"`

	// Before and After are JSON values. A field that is missing has no value.
	Before any `json:"before,omitempty"`
	After  any `json:"after,omitempty"`

	// Hidden is true if the values are not printed, since they are those of a Secret.
	Hidden bool `json:"hidden,omitempty"`
}

// Verb is what an effect does.
type Verb string

// The verbs.
const (
	// Rolls replaces pods while as many as before keep serving.
	Rolls Verb = "roll"
	// Restarts stops pods and starts others in their place.
	Restarts Verb = "restart"
	// SwitchesOver promotes another server of a database to primary.
	SwitchesOver Verb = "switchover"
	// Reloads makes servers read their configuration while they run.
	Reloads Verb = "reload"
	// Scales changes the number of pods.
	Scales Verb = "scale"
	// Copies copies data to a new server.
	Copies Verb = "copy"
	// Grows expands a volume.
	Grows Verb = "grow"
	// Runs runs a Job.
	Runs Verb = "run"
	// Stops stops something for good, or until a claim requests it again.
	Stops Verb = "stop"
	// Starts starts what was stopped.
	Starts Verb = "start"
	// Generates generates a password, a key or a certificate.
	Generates Verb = "generate"
	// Rotates replaces what was generated before.
	Rotates Verb = "rotate"
	// Loses deletes data.
	Loses Verb = "lose"
	// Keeps keeps data that nothing uses any more.
	Keeps Verb = "keep"
	// Reroutes changes where requests go, or which are admitted.
	Reroutes Verb = "reroute"
	// Unprotects removes a protection: something is not refused or backed up any more.
	Unprotects Verb = "unprotect"
)

// Effect is a consequence of changes for what runs.
type Effect struct {
	Verb   Verb   `json:"verb"`
	Object Object `json:"object"`

	// Message is a sentence without a full stop.
	Message string `json:"message"`

	// Pods is the number of pods that end, or in which PostgreSQL restarts. Those that end are
	// replaced, unless the verb is stop or scale.
	Pods int `json:"pods,omitempty"`

	// MaxPauseSeconds is how long writes pause at most, if that is known, as the documentation of
	// the kind promises.
	MaxPauseSeconds int `json:"maxPauseSeconds,omitempty"`

	// Interrupts is true if clients may notice the effect.
	Interrupts bool `json:"interrupts,omitempty"`

	// Irreversible is true if applying the previous claim again does not undo the effect.
	Irreversible bool `json:"irreversible,omitempty"`

	// Destroys is true if data is lost.
	Destroys bool `json:"destroys,omitempty"`

	// Warning is true if nothing happens now, but something is less safe from then on.
	Warning bool `json:"warning,omitempty"`

	// Unknown is true if the effect may occur, and that cannot be known.
	Unknown bool `json:"unknown,omitempty"`
}

// Summary counts changes and effects.
type Summary struct {
	Create int `json:"create"`
	Change int `json:"change"`
	Delete int `json:"delete"`

	// Pods is the sum of the pods of all effects.
	Pods int `json:"pods"`

	// Interruptions, Switchovers, Irreversible and Destroys count effects.
	Interruptions int `json:"interruptions"`
	Switchovers   int `json:"switchovers"`
	Irreversible  int `json:"irreversible"`
	Destroys      int `json:"destroys"`

	// Refused counts claims.
	Refused int `json:"refused"`

	// Drift counts objects.
	Drift int `json:"drift"`
}

// plus returns the sum of two summaries.
func (s Summary) plus(o Summary) Summary {
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
	return s
}

// Verdict returns the verdict that follows from the counts.
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

// conclude sets the summary and the verdict of a plan.
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

// Guardrails are the number of guardrails that the claim satisfies, and the messages of those that
// it breaks.
type Guardrails struct {
	Passed int      `json:"passed"`
	Broken []string `json:"broken,omitempty"`
}
