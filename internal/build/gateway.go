package build

import (
	"cmp"
	"maps"
	"slices"
	"strings"

	"google.golang.org/protobuf/types/known/structpb"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation"
	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"

	appsv1 "github.com/storeplane/storeplane/apis/apps/v1"
	storeplanev1 "github.com/storeplane/storeplane/apis/storeplane/v1"
	"github.com/storeplane/storeplane/internal/compose"
	"github.com/storeplane/storeplane/internal/health"
	"github.com/storeplane/storeplane/internal/structs"
)

const (
	// RouteComponent is the component of a claim's HTTPRoute. It is not that of its Ingress:
	// Crossplane would take both for the same component, and not remove the other one.
	RouteComponent = "httproute"

	// RouteSchema is the name under which a Composition requires the schema of HTTPRoutes, to find
	// out whether the cluster serves them.
	RouteSchema = "httproute"
)

// CheckIngress returns an error for a Gateway in a cluster that serves no HTTPRoutes, and for
// annotations that no object can have, or that claims must not set.
func CheckIngress(c *compose.Claim, in *appsv1.Ingress) error {
	if in == nil {
		return nil
	}
	for _, k := range slices.Sorted(maps.Keys(in.Annotations)) {
		prefix, _, _ := strings.Cut(k, "/")
		switch {
		case len(validation.IsQualifiedName(strings.ToLower(k))) > 0:
			return compose.Invalidf("ingress.annotations: %q is no name of an annotation", k)
		case strings.HasSuffix(prefix, "crossplane.io") || strings.HasSuffix(prefix, storeplanev1.GroupVersion.Group):
			return compose.Invalidf("ingress.annotations: %s is not the claim's to set", k)
		}
	}
	// A review has no cluster.
	if in.Gateway != nil && !c.IsReview() && !c.HasKind(RouteSchema, RouteComponent) {
		return compose.Invalidf("ingress.gateway: this cluster has no HTTPRoute of gateway.networking.k8s.io/v1: install the Gateway API, or leave gateway out to get an Ingress")
	}
	return nil
}

// HTTPRoute returns a route from one host of a Gateway to one Service.
func HTTPRoute(meta metav1.ObjectMeta, in appsv1.Ingress, service string, port int32) *gatewayv1.HTTPRoute {
	parent := gatewayv1.ParentReference{Name: gatewayv1.ObjectName(in.Gateway.Name)}
	if in.Gateway.Namespace != "" {
		parent.Namespace = new(gatewayv1.Namespace(in.Gateway.Namespace))
	}
	if in.Gateway.SectionName != "" {
		parent.SectionName = new(gatewayv1.SectionName(in.Gateway.SectionName))
	}
	backend := gatewayv1.HTTPBackendRef{BackendRef: gatewayv1.BackendRef{BackendObjectReference: gatewayv1.BackendObjectReference{
		Name: gatewayv1.ObjectName(service),
		Port: new(port),
	}}}
	meta.Annotations = in.Annotations
	return &gatewayv1.HTTPRoute{
		TypeMeta:   metav1.TypeMeta{APIVersion: gatewayv1.GroupVersion.String(), Kind: "HTTPRoute"},
		ObjectMeta: meta,
		Spec: gatewayv1.HTTPRouteSpec{
			CommonRouteSpec: gatewayv1.CommonRouteSpec{ParentRefs: []gatewayv1.ParentReference{parent}},
			Hostnames:       []gatewayv1.Hostname{gatewayv1.Hostname(in.Host)},
			Rules:           []gatewayv1.HTTPRouteRule{{BackendRefs: []gatewayv1.HTTPBackendRef{backend}}},
		},
	}
}

// liveRoute is the part of an HTTPRoute from which its health is determined.
type liveRoute struct {
	Metadata struct {
		Generation int64  `json:"generation"`
		Namespace  string `json:"namespace"`
	} `json:"metadata"`
	Spec struct {
		ParentRefs []routeParent `json:"parentRefs"`
	} `json:"spec"`
	Status struct {
		Parents []struct {
			ParentRef  routeParent      `json:"parentRef"`
			Conditions []routeCondition `json:"conditions"`
		} `json:"parents"`
	} `json:"status"`
}

type routeParent struct {
	Namespace   string `json:"namespace"`
	Name        string `json:"name"`
	SectionName string `json:"sectionName"`
}

// in returns the parent in a namespace, if it names none itself.
func (p routeParent) in(namespace string) routeParent {
	p.Namespace = cmp.Or(p.Namespace, namespace)
	return p
}

type routeCondition struct {
	Type               string `json:"type"`
	Status             string `json:"status"`
	Reason             string `json:"reason"`
	ObservedGeneration int64  `json:"observedGeneration"`
}

// RouteHealth returns the health of an HTTPRoute: healthy once a controller of its Gateway has
// accepted its current generation. What others report does not count: a controller that no longer
// exists leaves its conditions behind, and of two that know the Gateway one may refuse.
func RouteHealth(observed *structpb.Struct) health.Status {
	out := health.Status{State: health.Progressing, Message: "The Gateway has not taken the route yet"}
	r := liveRoute{}
	if err := structs.Decode(observed, &r); err != nil || len(r.Spec.ParentRefs) == 0 {
		return out
	}
	ours, isExplained := r.Spec.ParentRefs[0].in(r.Metadata.Namespace), false
	for _, p := range r.Status.Parents {
		if p.ParentRef.in(r.Metadata.Namespace) != ours {
			continue
		}
		accepted, problem := routeVerdict(p.Conditions, r.Metadata.Generation)
		switch {
		case problem == "" && accepted:
			return health.Status{State: health.Healthy}
		case problem != "" && !isExplained:
			out.Message, isExplained = problem, true
		}
	}
	return out
}

// routeVerdict returns whether a controller has accepted this generation of a route, and what is
// wrong with it.
func routeVerdict(conditions []routeCondition, generation int64) (accepted bool, problem string) {
	for _, c := range conditions {
		switch {
		case c.ObservedGeneration < generation:
		case c.Status == string(metav1.ConditionFalse) && c.Type == string(gatewayv1.RouteConditionAccepted):
			return false, "The Gateway does not take the route (" + c.Reason + "): see its HTTPRoute"
		case c.Status == string(metav1.ConditionFalse) && c.Type == string(gatewayv1.RouteConditionResolvedRefs):
			problem = "The Gateway finds no Service behind the route (" + c.Reason + "): see its HTTPRoute"
		case c.Status == string(metav1.ConditionTrue) && c.Type == string(gatewayv1.RouteConditionAccepted):
			accepted = true
		}
	}
	return accepted, problem
}
