package webapp

import (
	corev1 "k8s.io/api/core/v1"

	"github.com/storeplane/storeplane/internal/build"
)

func (a *app) configMap() *corev1.ConfigMap {
	return build.ConfigMap(a.Meta(config, a.name()), a.spec.Config)
}
