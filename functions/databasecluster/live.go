package databasecluster

import (
	k8sappsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/storeplane/storeplane/internal/build"
	"github.com/storeplane/storeplane/internal/compose"
)

// live is what of the observed objects the function looks at.
type live struct {
	exists bool
	set    statefulSet

	// primary is the pod that Patroni's callback named last.
	primary string
}

type statefulSet struct {
	Metadata struct {
		Labels map[string]string `json:"labels"`
	} `json:"metadata"`
	Spec struct {
		Replicas             int32                          `json:"replicas"`
		VolumeClaimTemplates []corev1.PersistentVolumeClaim `json:"volumeClaimTemplates"`
	} `json:"spec"`
	Status k8sappsv1.StatefulSetStatus `json:"status"`
}

func observe(c *compose.Claim) (*live, error) {
	l := &live{}
	var err error
	if l.exists, err = c.ReadObserved(postgresql, &l.set); err != nil {
		return nil, err
	}
	l.primary = primaryOf(c.Observed(state))
	return l, nil
}

// version that the servers were last rolled to.
func (l *live) version() string { return l.set.Metadata.Labels[build.LabelVersion] }

// storage of each volume, and whether there are any.
func (l *live) storage() (resource.Quantity, bool) {
	for _, t := range l.set.Spec.VolumeClaimTemplates {
		q, ok := t.Spec.Resources.Requests[corev1.ResourceStorage]
		return q, ok
	}
	return resource.Quantity{}, false
}
