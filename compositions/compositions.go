// Package compositions embeds the Compositions of all claims, for what renders
// a claim without a cluster.
package compositions

import (
	"embed"
)

// Files are the Compositions, each in <kind>.yaml.
//
//go:embed *.yaml
var Files embed.FS
