package ecommerceplatform

import (
	"cmp"
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
		Database: databasecluster.Endpoint(&s.database().Spec, s.Name(database), s.Namespace),
	}
	if s.hasCache() {
		e.Cache = fmt.Sprintf("%s:%d", s.cacheHost(), cachePort)
	}
	if s.spec.Ingress != nil {
		e.URL = build.IngressURL(*s.spec.Ingress)
	}
	o.Common.PodFailure = s.podFailure
	st := &platformv1.EcommercePlatformStatus{
		CommonStatus: o.Common,
		Phase:        platformv1.EcommercePlatformPhase(o.Phase),
		Endpoints:    e,
		Config:       s.config.Status(o),
	}
	if o.Phase == compose.Running && s.degraded != "" {
		// It serves, but needs attention.
		st.Phase, st.Message = platformv1.EcommercePlatformPhase(compose.Degraded), "Degraded: "+s.degraded
	}
	return st
}

// nestedFailures returns the name and the message of the first nested claim that is Degraded, or "", and
// the first failure of their pods, or "". A Degraded claim can be Ready, for example a database
// that has lost a standby.
func nestedFailures(c *compose.Claim) (degraded, podFailure string, err error) {
	for _, name := range []string{database, backend, frontend} {
		nested := struct {
			Status struct {
				Phase   compose.Phase `json:"phase"`
				Message string        `json:"message"`

				PodFailure string `json:"podFailure"`
			} `json:"status"`
		}{}
		if _, err := c.ReadObserved(name, &nested); err != nil {
			return "", "", err
		}
		podFailure = cmp.Or(podFailure, nested.Status.PodFailure)
		if nested.Status.Phase == compose.Degraded && degraded == "" {
			degraded = name + " (" + nested.Status.Message + ")"
		}
	}
	return degraded, podFailure, nil
}
