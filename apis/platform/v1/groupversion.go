package v1

import (
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// GroupVersion of the kinds in this package.
var GroupVersion = schema.GroupVersion{Group: "platform.example.com", Version: "v1"}

// EcommercePlatformKind is the kind of a whole shop.
const EcommercePlatformKind = "EcommercePlatform"
