package apis

import (
	"embed"
)

// Definitions are the generated CompositeResourceDefinitions, each in
// <kind>/definition.yaml.
//
//go:embed */definition.yaml
var Definitions embed.FS
