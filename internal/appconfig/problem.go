package appconfig

// Problem is the reason why a configuration cannot be rendered, with a message for its author.
type Problem struct {
	Reason  string
	Message string
}
