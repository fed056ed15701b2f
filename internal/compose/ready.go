package compose

import (
	fnv1 "github.com/crossplane/function-sdk-go/proto/v1"
	"google.golang.org/protobuf/proto"
)

// settle says whether the claim has settled: all of it is healthy, and its status
// says so. One that has not is called not ready in one word: by default Crossplane
// names all objects that are not ready in the condition, which status.message does
// better, and each change of that list is one more write to the claim, and one
// more event for whoever watches it.
//
// That the status comes first, and Ready a pass later, is for Crossplane's sake. It
// writes the status with the conditions that its cache has, and then the
// conditions. If both change in one pass, the next one begins on the first of the
// two writes, most often before the cache has the second, writes the old conditions
// again and then the new ones, and so on: Ready goes to and fro until the cache
// wins.
// https://github.com/crossplane/crossplane/blob/v2.4.0/internal/controller/apiextensions/composite/composition_functions.go#L726-L755
//
// A claim that is Ready stays so while its status changes: then there is nothing to
// go to and fro. Whatever waits for a database must not see it fail since a standby
// lags, or since its Composition has another revision, which is another generation.
//
// Ready is only denied, never claimed: objects of another function of the pipeline
// count too.
func settle(rsp *fnv1.RunFunctionResponse, c *Claim, o Outcome) bool {
	told := isTold(rsp, c)
	if !o.Ready || !told && !c.isReady() {
		rsp.Desired.Composite.Ready = fnv1.Ready_READY_FALSE
	}
	return o.Ready && told
}

// isTold says whether the claim's status says already what it is to say of its
// health.
func isTold(rsp *fnv1.RunFunctionResponse, c *Claim) bool {
	desired := desiredStatus(rsp)
	for _, f := range []string{"readyGeneration", "observedGeneration"} {
		if desired[f].GetNumberValue() != c.status(f).GetNumberValue() {
			return false
		}
	}
	return proto.Equal(desired["phase"], c.status("phase"))
}
