package databasecluster

import (
	"google.golang.org/protobuf/types/known/structpb"

	"github.com/storeplane/storeplane/internal/health"
)

// primaryAnnotation on Patroni's configuration names the pod that became
// primary last.
const primaryAnnotation = "storeplane.example.com/primary"

func primaryOf(state *structpb.Struct) string {
	meta := state.GetFields()["metadata"].GetStructValue().GetFields()
	return meta["annotations"].GetStructValue().GetFields()[primaryAnnotation].GetStringValue()
}

// hasPrimary judges Patroni's configuration: the cluster takes writes once a
// primary has been elected.
func hasPrimary(state *structpb.Struct) health.Status {
	if primaryOf(state) == "" {
		return health.Status{State: health.Progressing, Message: "No primary has been elected yet"}
	}
	return health.Status{State: health.Healthy}
}
