package v1

import (
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/scheme"
)

// GroupVersion of the kinds in this package.
var GroupVersion = schema.GroupVersion{Group: "config.example.com", Version: "v1"}

// SchemeBuilder adds the kinds of this package to a scheme.
var SchemeBuilder = (&scheme.Builder{GroupVersion: GroupVersion}).Register(&AppConfig{}, &AppConfigList{})

// AppConfigKind is the kind of an AppConfig.
const AppConfigKind = "AppConfig"

// AppConfigGroupVersionKind is the kind of an AppConfig, in full.
var AppConfigGroupVersionKind = GroupVersion.WithKind(AppConfigKind)
