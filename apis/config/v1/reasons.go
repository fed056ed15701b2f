package v1

// Reasons of the conditions of an AppConfig, and of its events.
const (
	// ReasonRendered means that the bundle can be rendered.
	// +storeplane:of=AppConfig: Rendered
	ReasonRendered = "Rendered"

	// ReasonInvalidConfig means that the bundle cannot be rendered, and the pods keep the one
	// before: correct what the message names.
	// +storeplane:of=AppConfig: Ready, Stalled, RolledOut, event
	// +storeplane:of=EcommercePlatform, WebApp: ConfigReady
	ReasonInvalidConfig = "InvalidConfig"

	// ReasonRollingOut means that the targets are changed to the bundle: wait; the message names the
	// target that the rollout waits for.
	// +storeplane:of=AppConfig: Ready, RolledOut, event
	ReasonRollingOut = "RollingOut"

	// ReasonDebouncing means that the rollout waits, at most a minute, for further edits.
	// +storeplane:of=AppConfig: Ready, RolledOut
	ReasonDebouncing = "Debouncing"

	// ReasonPaused means that the bundle is not rolled out: unset rollout.pause, or let the
	// management policies allow updates.
	// +storeplane:of=AppConfig: Ready, RolledOut
	ReasonPaused = "Paused"

	// ReasonRolledBack means that a bundle failed, and the last good one is applied again: read
	// status.atProvider.failed, and change the configuration.
	// +storeplane:of=AppConfig: Ready, Stalled, RolledOut, event
	// +storeplane:of=EcommercePlatform, WebApp: ConfigReady
	ReasonRolledBack = "RolledBack"

	// ReasonRolloutFailed means that a bundle failed, and nothing was rolled back: read
	// status.atProvider.failed, and change the configuration.
	// +storeplane:of=AppConfig: Ready, Stalled, RolledOut, event
	// +storeplane:of=EcommercePlatform, WebApp: ConfigReady
	ReasonRolloutFailed = "RolloutFailed"

	// ReasonTargetsUnavailable means that targets are missing, forbidden, in conflict or failed:
	// status.atProvider.targets has the state of each.
	// +storeplane:of=AppConfig: Ready, event
	ReasonTargetsUnavailable = "TargetsUnavailable"

	// ReasonRolledOut means that all targets run the bundle, and are healthy.
	// +storeplane:of=AppConfig: RolledOut, event
	ReasonRolledOut = "RolledOut"

	// ReasonPublished means that the stable name holds the content of the current bundle.
	// +storeplane:of=AppConfig: Published
	ReasonPublished = "Published"

	// ReasonAlreadyExists means that an object of the stable name is not this AppConfig's, and
	// rollouts continue without it: delete it, or set the label that the message shows.
	// +storeplane:of=AppConfig: Published, status.atProvider.targets, event
	ReasonAlreadyExists = "AlreadyExists"

	// ReasonBundlesKept means that the AppConfig was deleted, and bundles in use are retained.
	// +storeplane:of=AppConfig: event
	ReasonBundlesKept = "BundlesKept"

	// ReasonNotStalled means that nothing keeps it from becoming Ready, or being so, by itself.
	// +storeplane:of=AppConfig: Stalled
	ReasonNotStalled = "NotStalled"
)

// Reasons why a bundle cannot be rendered.
const (
	// ReasonInvalidTemplate means that a value of config is no valid template, or it fails: correct
	// it at the position in the message.
	// +storeplane:of=AppConfig: Rendered
	ReasonInvalidTemplate = "InvalidTemplate"

	// ReasonInvalidKey means that a key of config or of a Secret cannot be a key of a ConfigMap, or
	// not an environment variable: rename it.
	// +storeplane:of=AppConfig: Rendered
	ReasonInvalidKey = "InvalidKey"

	// ReasonKeyConflict means that two sources have the same key: rename one of them.
	// +storeplane:of=AppConfig: Rendered
	ReasonKeyConflict = "KeyConflict"

	// ReasonSecretNotFound means that a Secret of secretRefs does not exist: create it.
	// +storeplane:of=AppConfig: Rendered
	ReasonSecretNotFound = "SecretNotFound"

	// ReasonSecretKeyNotFound means that a Secret of secretRefs lacks a key: add it.
	// +storeplane:of=AppConfig: Rendered
	ReasonSecretKeyNotFound = "SecretKeyNotFound"

	// ReasonSecretNotAllowed means that a Secret of secretRefs holds the platform's credentials of a
	// store: remove it from secretRefs.
	// +storeplane:of=AppConfig: Rendered
	ReasonSecretNotAllowed = "SecretNotAllowed"

	// ReasonTooLarge means that the configuration or a template is larger than its limit: split the
	// AppConfig.
	// +storeplane:of=AppConfig: Rendered
	ReasonTooLarge = "TooLarge"

	// ReasonBundleTaken means that a ConfigMap that the provider did not create has the name of the
	// bundle: find out which client created it, and delete it.
	// +storeplane:of=AppConfig: Rendered
	ReasonBundleTaken = "BundleTaken"
)

// Reasons why a bundle failed.
const (
	// ReasonPodFailing means that a pod with the bundle does not become healthy: the message names
	// the container and the cause.
	// +storeplane:of=AppConfig: status.atProvider.failed
	ReasonPodFailing = "PodFailing"

	// ReasonProgressDeadlineExceeded means that a target made no progress within its deadline: the
	// message has the state of its pods.
	// +storeplane:of=AppConfig: status.atProvider.failed
	ReasonProgressDeadlineExceeded = "ProgressDeadlineExceeded"
)

// Reasons why a target is not changed.
const (
	// ReasonNotAllowed means that a target does not allow the AppConfig to change it: set the
	// annotation that the message shows.
	// +storeplane:of=AppConfig: status.atProvider.targets
	ReasonNotAllowed = "NotAllowed"

	// ReasonForbidden means that the API server forbids the provider to change a target: grant the
	// permission that the message names; it is retried each minute.
	// +storeplane:of=AppConfig: status.atProvider.targets
	ReasonForbidden = "Forbidden"

	// ReasonFieldManagerConflict means that another field manager owns fields of a target: remove
	// them there; it is retried each minute.
	// +storeplane:of=AppConfig: status.atProvider.targets
	ReasonFieldManagerConflict = "FieldManagerConflict"

	// ReasonInvalid means that a target's pod template cannot hold the bundle, or the API server does
	// not accept the change: correct what the message names; it is retried each minute.
	// +storeplane:of=AppConfig: status.atProvider.targets
	ReasonInvalid = "Invalid"
)
