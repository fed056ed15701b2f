package appconfig

import (
	"slices"
	"strings"
	"unicode"

	configv1 "github.com/storeplane/storeplane/apis/config/v1"
	"github.com/storeplane/storeplane/internal/fieldowner"
)

// digits is the number of digits of a content's hash in a bundle's name.
const digits = 10

// StableName returns the stable name of an application's configuration: that of the ConfigMap, and
// of the Secret if there is one, that always hold the content that the application should run.
func StableName(application string) string { return application + "-config" }

// KeyName returns the name of the Secret with the key by which contents with secrets are hashed.
func KeyName(application string) string { return StableName(application) + "-key" }

// IsBundle reports whether a name is that of a bundle of an application.
func IsBundle(application, name string) bool {
	hash, ok := strings.CutPrefix(name, StableName(application)+"-")
	if !ok || len(hash) != digits {
		return false
	}
	return strings.Trim(hash, "0123456789abcdef") == ""
}

// Annotation returns the annotation of the pod templates that run a bundle of an AppConfig.
func Annotation(appConfig string) string { return configv1.BundleAnnotationPrefix + appConfig }

// Allows reports whether a workload's annotations name an AppConfig as one that may change it.
func Allows(annotations map[string]string, appConfig string) bool {
	return slices.Contains(allowed(annotations), appConfig)
}

// Allow returns the value of the annotation with AppConfigs added to those that it names already,
// or "" if there are none at all.
func Allow(annotations map[string]string, appConfigs ...string) string {
	names := append(allowed(annotations), appConfigs...)
	slices.Sort(names)
	return strings.Join(slices.Compact(names), ",")
}

func allowed(annotations map[string]string) []string {
	return strings.FieldsFunc(annotations[configv1.AllowAnnotation], func(r rune) bool { return r == ',' || unicode.IsSpace(r) })
}

// FieldManager returns the field manager of an AppConfig. Each has its own, so that two AppConfigs
// on one workload do not remove each other's fields.
func FieldManager(appConfig string) string { return fieldowner.ConfigPrefix + appConfig }

// VolumeName returns the name of the volume with the files of an application's configuration.
func VolumeName(application string) string { return StableName(application) }
