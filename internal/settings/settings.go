// Package settings reads what an installation may set for all claims: one
// EnvironmentConfig named storeplane. Everything works without it.
package settings

import (
	"regexp"

	appsv1 "github.com/storeplane/storeplane/apis/apps/v1"
	"github.com/storeplane/storeplane/internal/compose"
)

// Settings of an installation: the data of the EnvironmentConfig storeplane.
type Settings struct {
	// ImageRegistry is the registry and path of Storeplane's own images, for
	// example registry.example.com/storeplane. It defaults to where the
	// function's own image was built for.
	ImageRegistry string `json:"imageRegistry,omitempty"`

	// Ingress of all claims.
	Ingress Ingress `json:"ingress,omitzero"`

	// StorageClassName of volumes whose claim names none. Defaults to the
	// cluster's default class.
	StorageClassName string `json:"storageClassName,omitempty"`

	// Backup is where backups go whose claim names no destination.
	Backup *appsv1.BackupDestination `json:"backup,omitempty"`

	// Monitoring of all claims.
	Monitoring Monitoring `json:"monitoring,omitzero"`
}

// Monitoring settings.
type Monitoring struct {
	// Namespace in which Prometheus' pods run. Network policies admit it to
	// metrics; without it they admit all namespaces.
	Namespace string `json:"namespace,omitempty"`
}

// Ingress settings.
type Ingress struct {
	// ClassName of Ingresses whose claim names none.
	ClassName string `json:"className,omitempty"`

	// Namespace in which the ingress controller's pods run. Network policies
	// admit it; without it they admit all namespaces to what has an ingress.
	Namespace string `json:"namespace,omitempty"`
}

var (
	registry = regexp.MustCompile(`^[a-z0-9][a-z0-9.-]*(:[0-9]+)?(/[a-z0-9._-]+)*$`)
	dnsName  = regexp.MustCompile(`^[a-z0-9]([-a-z0-9.]*[a-z0-9])?$`)
)

// Read returns the installation's settings over the given defaults. What it
// can not use is an error of the claim, since only words in the claim's status
// reach anybody.
func Read(c *compose.Claim, defaults Settings) (Settings, error) {
	s := defaults
	if err := c.Settings(&s); err != nil {
		return Settings{}, err
	}
	if s.ImageRegistry == "" {
		s.ImageRegistry = defaults.ImageRegistry
	}
	checks := []struct {
		field, value string
		valid        *regexp.Regexp
		want         string
	}{
		{"imageRegistry", s.ImageRegistry, registry, "a registry and path like registry.example.com/storeplane"},
		{"ingress.className", s.Ingress.ClassName, dnsName, "the name of an IngressClass"},
		{"ingress.namespace", s.Ingress.Namespace, dnsName, "the name of a namespace"},
		{"monitoring.namespace", s.Monitoring.Namespace, dnsName, "the name of a namespace"},
		{"storageClassName", s.StorageClassName, dnsName, "the name of a StorageClass"},
	}
	for _, k := range checks {
		if k.value != "" && !k.valid.MatchString(k.value) {
			return Settings{}, compose.Invalidf("cannot use EnvironmentConfig storeplane: data.%s must be %s, is %q", k.field, k.want, k.value)
		}
	}
	return s, nil
}
