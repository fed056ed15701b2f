package plan

import (
	"time"

	"github.com/storeplane/storeplane/apis"
	"github.com/storeplane/storeplane/compositions"
	"github.com/storeplane/storeplane/functions"
	"github.com/storeplane/storeplane/internal/compose"
	"github.com/storeplane/storeplane/internal/converge"
	"github.com/storeplane/storeplane/internal/images"
	"github.com/storeplane/storeplane/internal/xrd"
)

// New returns a Planner with the definitions, the Compositions and the function of this release,
// for the state of a cluster and the current time.
func New(s State) (*Planner, error) {
	schemas, err := xrd.LoadReleased(apis.Definitions)
	if err != nil {
		return nil, err
	}
	return &Planner{
		Schemas: schemas, Compositions: compositions.Files, State: s, Now: time.Now(),
		Function: func(source compose.Source, own images.Set) converge.Runner {
			return functions.New(functions.WithSource(source), functions.WithImages(own), functions.WithoutWaiting())
		},
	}, nil
}
