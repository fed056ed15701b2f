package appconfig

import (
	"slices"
	"strings"
	"unicode"

	configv1 "github.com/storeplane/storeplane/apis/config/v1"
	"github.com/storeplane/storeplane/internal/fieldowner"
)

// digits of a content's hash in a bundle's name.
const digits = 10

// StableName of an application's configuration: of the ConfigMap, and the Secret
// where there is one, that always hold what the application shall run.
func StableName(application string) string { return application + "-config" }

// KeyName of the Secret with the key that contents with secrets are hashed by.
func KeyName(application string) string { return StableName(application) + "-key" }

// IsBundle tells whether a name is that of a bundle of an application.
func IsBundle(application, name string) bool {
	hash, ok := strings.CutPrefix(name, StableName(application)+"-")
	if !ok || len(hash) != digits {
		return false
	}
	return strings.Trim(hash, "0123456789abcdef") == ""
}

// Annotation of the pod templates that run a bundle of an AppConfig.
func Annotation(appConfig string) string { return configv1.BundleAnnotationPrefix + appConfig }

// Allows tells whether a workload's annotations name an AppConfig among those that
// may change it.
func Allows(annotations map[string]string, appConfig string) bool {
	return slices.Contains(allowed(annotations), appConfig)
}

// Allow returns the value of the annotation that names an AppConfig beside those
// that are named already, or "" where there is none.
func Allow(annotations map[string]string, appConfigs ...string) string {
	names := append(allowed(annotations), appConfigs...)
	slices.Sort(names)
	return strings.Join(slices.Compact(names), ",")
}

func allowed(annotations map[string]string) []string {
	return strings.FieldsFunc(annotations[configv1.AllowAnnotation], func(r rune) bool { return r == ',' || unicode.IsSpace(r) })
}

// FieldManager of an AppConfig: two AppConfigs on one workload do not drop each
// other's fields.
func FieldManager(appConfig string) string { return fieldowner.ConfigPrefix + appConfig }

// VolumeName of the files of an application's configuration.
func VolumeName(application string) string { return StableName(application) }
