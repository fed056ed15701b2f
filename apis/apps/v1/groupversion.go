package v1

import (
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// GroupVersion of the kinds in this package.
var GroupVersion = schema.GroupVersion{Group: "apps.example.com", Version: "v1"}

// Kinds of this package.
const (
	DatabaseClusterKind = "DatabaseCluster"
	WebAppKind          = "WebApp"
)
