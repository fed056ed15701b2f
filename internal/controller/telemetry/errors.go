package telemetry

import (
	"context"
	"errors"

	"github.com/crossplane/crossplane-runtime/v2/pkg/reconciler/managed"
	"github.com/crossplane/crossplane-runtime/v2/pkg/resource"
	kerrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Count returns a connector that counts the errors of c and of the clients that c returns.
func (t *Telemetry) Count(kind string, c managed.ExternalConnector) managed.ExternalConnector {
	return managed.ExternalConnectorFn(func(ctx context.Context, mg resource.Managed) (managed.ExternalClient, error) {
		e, err := c.Connect(ctx, mg)
		t.count(kind, "connect", err)
		if err != nil {
			return nil, err
		}
		return &counted{ExternalClient: e, count: func(operation string, err error) { t.count(kind, operation, err) }}, nil
	})
}

func (t *Telemetry) count(kind, operation string, err error) {
	if err != nil {
		t.errors.WithLabelValues(kind, operation, reason(err)).Inc()
	}
}

// reason returns the API server's reason of an error, of which there are few, or "Other".
func reason(err error) string {
	switch r := kerrors.ReasonForError(err); {
	case r != metav1.StatusReasonUnknown:
		return string(r)
	case errors.Is(err, context.DeadlineExceeded):
		return string(metav1.StatusReasonTimeout)
	}
	return "Other"
}

type counted struct {
	managed.ExternalClient

	count func(operation string, err error)
}

func (c *counted) Observe(ctx context.Context, mg resource.Managed) (managed.ExternalObservation, error) {
	o, err := c.ExternalClient.Observe(ctx, mg)
	c.count("observe", err)
	return o, err
}

func (c *counted) Create(ctx context.Context, mg resource.Managed) (managed.ExternalCreation, error) {
	o, err := c.ExternalClient.Create(ctx, mg)
	c.count("create", err)
	return o, err
}

func (c *counted) Update(ctx context.Context, mg resource.Managed) (managed.ExternalUpdate, error) {
	o, err := c.ExternalClient.Update(ctx, mg)
	c.count("update", err)
	return o, err
}

func (c *counted) Delete(ctx context.Context, mg resource.Managed) (managed.ExternalDelete, error) {
	o, err := c.ExternalClient.Delete(ctx, mg)
	c.count("delete", err)
	return o, err
}
