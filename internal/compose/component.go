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
	// Name is the component's key among the composed resources of a claim. It must never change, or
	// the object is replaced.
	Name string

	// Part is the entry of status.components that the component counts for.
	// Defaults to Name.
	Part string

	// Object is the object to apply.
	Object Object

	// Make returns the Object when it is needed. It is for components that wait long, whose objects
	// would be built in vain in every pass until then.
	Make func() Object

	// After names the components that must be healthy before this one is
	// applied for the first time.
	After []string

	// ChangeAfter names the components that must be healthy before a change
	// of this one is applied. Until then the observed object is kept as it is.
	// Unlike After it holds for every change, not only for the first apply.
	ChangeAfter []string

	// RetryAfter names the components that must be healthy before the creation of this one is tried
	// again at once, where the API server has refused it and the cause is not that it is invalid. Until
	// then it is tried when it is due, and the others do not wait for it. Without any they do.
	RetryAfter []string

	// Once keeps the object as it was first applied, for kinds that cannot be changed, like Jobs. A
	// changed object needs a component of another name.
	Once bool

	// Scaled is true where an autoscaler owns the number of replicas, and the declared number is
	// only the initial one. A change of the number is no change of the component.
	Scaled bool

	// Paused is true for an object that does nothing until the components of ChangeAfter are
	// healthy: a paused Deployment, a suspended CronJob. It is created at once nevertheless, so that
	// the claim references it from the beginning.
	Paused bool

	// Aside is true for a task whose outcome a condition reports: the claim can be ready without
	// it.
	Aside bool

	// HoldsData keeps the object when it is no longer declared, unless the
	// plan releases it.
	HoldsData bool

	// Health returns the health of the observed object. Defaults to health.Of.
	Health func(observed *structpb.Struct) health.Status
}

func (c *Component) part() string {
	if c.Part != "" {
		return c.Part
	}
	return c.Name
}

// Plan is what an intent declares for a claim.
type Plan struct {
	// Components in the order in which status.components lists their parts.
	Components []Component

	// Release names components that hold data, are no longer declared, and may be deleted because
	// an explicit field of the claim allows it.
	Release []string

	// Maintain returns the changes that are applied even while the claim is refused: the objects to
	// change, by component, each based on Claim.Kept. It may require resources, and returns
	// ErrPending until they are fetched. An intent that returns an error of the claim may return a
	// plan with only this field and Faults beside it.
	Maintain func() (map[string]*structpb.Struct, error)

	// Faults returns conditions that are False by what is observed, whatever the claim declares. While
	// the claim is refused they take the place of those that it has. Without any it has those of
	// before.
	Faults func() []Condition

	// Upgrade decides when changes of pods are applied that no user has made. Without it they are
	// applied at once.
	Upgrade *Upgrade

	// PollInterval is the interval in which a settled claim is composed although nothing that
	// Crossplane watches has changed, or 0 for the kernel's default of 10 to 30 minutes.
	PollInterval time.Duration

	// Status returns the claim's status, a pointer to its type. The kernel fills in none of its
	// fields: CommonStatus is in the Outcome.
	Status func(Outcome) any

	// Conditions returns conditions in addition to the kernel's own. Each type must always be
	// returned, whatever its status, or an old condition would stay.
	Conditions func(Outcome) []Condition
}

// part returns the part that the component of a name counts for.
func (p *Plan) part(name string) string {
	for i := range p.Components {
		if p.Components[i].Name == name {
			return p.Components[i].part()
		}
	}
	return name
}

// Intent turns a claim into a plan. It is pure. An error from Invalidf is an error of the claim,
// any other an internal error.
type Intent func(*Claim) (*Plan, error)
