package bench

import (
	"context"

	fnv1 "github.com/crossplane/function-sdk-go/proto/v1"
	"github.com/crossplane/function-sdk-go/response"

	"github.com/storeplane/storeplane/functions"
)

// floor returns the desired state and the conditions of ready, whatever the request.
type floor struct {
	fnv1.UnimplementedFunctionRunnerServiceServer

	ready *fnv1.RunFunctionResponse
}

// newFloor returns a floor with the response of the real function to req.
func newFloor(req *fnv1.RunFunctionRequest) (*floor, error) {
	rsp, err := functions.New().RunFunction(context.Background(), req)
	return &floor{ready: rsp}, err
}

func (f *floor) RunFunction(_ context.Context, req *fnv1.RunFunctionRequest) (*fnv1.RunFunctionResponse, error) {
	rsp := response.To(req, response.DefaultTTL)
	rsp.Desired = f.ready.GetDesired()
	rsp.Conditions = f.ready.GetConditions()
	return rsp, nil
}
