package appconfig

// Problem is why a configuration cannot be rendered, in words for whoever wrote
// it.
type Problem struct {
	Reason  string
	Message string
}
