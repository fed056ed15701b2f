package ecommerceplatform

import (
	"fmt"

	platformv1 "github.com/storeplane/storeplane/apis/platform/v1"
	"github.com/storeplane/storeplane/functions/databasecluster"
	"github.com/storeplane/storeplane/functions/webapp"
	"github.com/storeplane/storeplane/internal/build"
	"github.com/storeplane/storeplane/internal/compose"
)

func (s *shop) status(o compose.Outcome) *platformv1.EcommercePlatformStatus {
	e := &platformv1.Endpoints{
		Frontend: webapp.URL(s.Name(frontend), s.Namespace, port(&s.spec.Frontend.Workload)),
		Backend:  webapp.URL(s.Name(backend), s.Namespace, port(&s.spec.Backend.Workload)),
		Database: databasecluster.Endpoint(s.Name(database), s.Namespace),
	}
	if s.hasCache() {
		e.Cache = fmt.Sprintf("%s:%d", s.cacheHost(), cachePort)
	}
	if s.spec.Ingress != nil {
		e.URL = build.IngressURL(*s.spec.Ingress)
	}
	return &platformv1.EcommercePlatformStatus{
		CommonStatus: o.Common,
		Phase:        platformv1.EcommercePlatformPhase(o.Phase),
		Endpoints:    e,
		Config:       s.config.Status(o),
	}
}
