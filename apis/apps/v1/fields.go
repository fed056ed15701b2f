package v1

// Names of the fields of a claim's status that programs read of any kind of claim.
const (
	FieldPhase              = "phase"
	FieldMessage            = "message"
	FieldPodFailure         = "podFailure"
	FieldObservedGeneration = "observedGeneration"
	FieldReadyGeneration    = "readyGeneration"
	FieldAcceptedSettings   = "acceptedSettings"
	FieldRelease            = "release"
	FieldPendingRelease     = "pendingRelease"
)
