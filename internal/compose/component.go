package compose

import (
	"time"

	"google.golang.org/protobuf/types/known/structpb"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/storeplane/storeplane/internal/health"
)

// Object is a Kubernetes object to apply, with its apiVersion and kind set.
type Object interface {
	metav1.Object
	GetObjectKind() schema.ObjectKind
}

// Component is one object that an intent declares.
type Component struct {
	// Name of the component: its key among the composed resources of a
	// claim. It must never change, or the object is replaced.
	Name string

	// Part is the entry of status.components that the component counts for.
	// Defaults to Name.
	Part string

	// Object to apply.
	Object Object

	// Make makes the Object once it is needed: for what waits long, and would
	// be made in vain each time until then.
	Make func() Object

	// After names the components that must be healthy before this one is
	// applied for the first time.
	After []string

	// ChangeAfter names the components that must be healthy before a change
	// of this one is applied. Until then the observed object is kept as it is.
	// Unlike After it holds for every change, not only for the first apply.
	ChangeAfter []string

	// Once keeps the object as it was first applied, for kinds that cannot
	// be changed, like Jobs. A changed one needs another name.
	Once bool

	// Scaled says that the number of replicas is somebody else's, an
	// autoscaler's, and what is declared of it only a beginning. Its change is
	// no change of the component.
	Scaled bool

	// Paused says that the object does nothing yet, until what its changes come after is
	// healthy: it is created at once all the same, so that the claim references it from
	// the beginning.
	Paused bool

	// Aside says that the claim is ready without the object, a task whose outcome a
	// condition reports.
	Aside bool

	// HoldsData keeps the object when it is no longer declared, unless the
	// plan releases it.
	HoldsData bool

	// Health judges the observed object. Defaults to health.Of.
	Health func(observed *structpb.Struct) health.Status
}

func (c *Component) part() string {
	if c.Part != "" {
		return c.Part
	}
	return c.Name
}

// Plan is what an intent makes of a claim.
type Plan struct {
	// Components in the order in which a reader expects them.
	Components []Component

	// Release names components that hold data, are no longer declared, and
	// may go: the claim says so in an explicit field.
	Release []string

	// Maintain returns what goes on while the claim is refused: objects that
	// exist and are due to change, by component, each begun with Claim.Kept. It
	// may ask for resources, and returns ErrPending until they are there. An
	// intent may return a plan that has nothing else beside an error of the
	// claim.
	Maintain func() (map[string]*structpb.Struct, error)

	// Upgrade says when changes of pods that no user has asked for are applied. Without it
	// they are at once.
	Upgrade *Upgrade

	// PollInterval is how often the claim is composed while it has settled and nothing
	// that Crossplane watches changes, or 0 for the kernel's own: 10 to 30 minutes.
	PollInterval time.Duration

	// Status returns the claim's status, a pointer to its type. The kernel
	// has filled nothing of it in: CommonStatus comes from Outcome.
	Status func(Outcome) any

	// Conditions beside the kernel's own. Each type must be returned always,
	// whatever its status, or an old one would stay.
	Conditions func(Outcome) []Condition
}

// part of the component of a name.
func (p *Plan) part(name string) string {
	for i := range p.Components {
		if p.Components[i].Name == name {
			return p.Components[i].part()
		}
	}
	return name
}

// Intent turns a claim into a plan. It is pure. An error from Invalidf is the
// claim's; any other is ours.
type Intent func(*Claim) (*Plan, error)
