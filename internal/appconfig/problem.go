package appconfig

// Problem is why a configuration cannot be rendered, in words for whoever wrote
// it.
type Problem struct {
	Reason  string
	Message string
}

// Reasons of problems.
const (
	ReasonInvalidTemplate   = "InvalidTemplate"
	ReasonInvalidKey        = "InvalidKey"
	ReasonKeyConflict       = "KeyConflict"
	ReasonSecretNotFound    = "SecretNotFound"
	ReasonSecretKeyNotFound = "SecretKeyNotFound"
	ReasonSecretNotAllowed  = "SecretNotAllowed"
	ReasonTooLarge          = "TooLarge"
	ReasonBundleTaken       = "BundleTaken"
)
