package compose

import (
	fnv1 "github.com/crossplane/function-sdk-go/proto/v1"
	"google.golang.org/protobuf/proto"

	appsv1 "github.com/storeplane/storeplane/apis/apps/v1"
)

// settle returns whether the claim has settled: all of it is healthy, and its status reports that.
// It sets Ready to False while the claim is not healthy, or while its status does not report yet
// that it is, unless it is Ready already in the latter case. Otherwise Crossplane would list all
// objects that are not ready in the condition. status.message shows that better, and each change of
// the list would be one more write to the claim, and one more event for its watchers.
//
// The status is written first, and Ready one pass later, because of the way in which Crossplane
// writes: first the status with the conditions of its cache, and then the new conditions. If both
// changed in one pass, the next pass would begin on the first of the two writes, usually before the
// cache has the second. It would write the old conditions again and then the new ones, and so on:
// Ready would flap until the cache is current.
// https://github.com/crossplane/crossplane/blob/v2.4.0/internal/controller/apiextensions/composite/composition_functions.go#L726-L755
//
// A claim that is Ready stays so while its status changes, since nothing can flap then. Clients
// that wait for a database must not see it fail because a standby lags, or because its Composition
// has another revision, which is another generation.
//
// Ready is only ever set to False, never to True: objects of another function of the pipeline count
// too.
func settle(rsp *fnv1.RunFunctionResponse, c *Claim, o Outcome) bool {
	reported := statusReported(rsp, c)
	if !o.Ready || !reported && !c.isReady() {
		rsp.Desired.Composite.Ready = fnv1.Ready_READY_FALSE
	}
	return o.Ready && reported
}

// statusReported reports whether the claim's observed status already has the health that it is to
// report.
func statusReported(rsp *fnv1.RunFunctionResponse, c *Claim) bool {
	desired := desiredStatus(rsp)
	for _, f := range []string{appsv1.FieldReadyGeneration, appsv1.FieldObservedGeneration} {
		if desired[f].GetNumberValue() != c.status(f).GetNumberValue() {
			return false
		}
	}
	return proto.Equal(desired[appsv1.FieldPhase], c.status(appsv1.FieldPhase))
}
