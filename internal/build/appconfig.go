package build

import (
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation"

	appsv1 "github.com/storeplane/storeplane/apis/apps/v1"
	configv1 "github.com/storeplane/storeplane/apis/config/v1"
	"github.com/storeplane/storeplane/internal/appconfig"
	"github.com/storeplane/storeplane/internal/compose"
	"github.com/storeplane/storeplane/internal/health"
)

const (
	// ConfigComponent is the component of a claim's AppConfig. It is not named config, as a
	// ConfigMap of earlier releases is: Crossplane would take both for the same component, and not
	// remove the ConfigMap.
	ConfigComponent = "appconfig"

	// ConfigPart is the part of the claim's status that the AppConfig counts for.
	ConfigPart = "config"
)

// Config is a claim's config: what the claim declares, and what is observed of its AppConfig. It is
// nil for a claim without config.
type Config struct {
	scope  Scope
	values map[string]string

	// wanted is the name of the bundle that holds the values.
	wanted string

	live liveConfig
}

// liveConfig is the part of an observed AppConfig that a function reads.
type liveConfig struct {
	Metadata struct {
		Generation int64 `json:"generation"`
	} `json:"metadata"`
	Status struct {
		Conditions []struct {
			Type               string `json:"type"`
			Status             string `json:"status"`
			Reason             string `json:"reason"`
			Message            string `json:"message"`
			ObservedGeneration int64  `json:"observedGeneration"`
		} `json:"conditions"`
		AtProvider struct {
			Bundle   string `json:"bundle"`
			LastGood string `json:"lastGood"`
			Pending  string `json:"pending"`
			Failed   *struct {
				Bundle string `json:"bundle"`
			} `json:"failed"`
		} `json:"atProvider"`
	} `json:"status"`
}

// ReadConfig reads what is observed of a claim's AppConfig. It returns nil for a claim without
// config.
func ReadConfig(c *compose.Claim, s Scope, values map[string]string) (*Config, error) {
	if len(values) == 0 {
		return nil, nil
	}
	out := &Config{scope: s, values: values, wanted: appconfig.Name(s.Claim, values)}
	_, err := c.ReadObserved(ConfigComponent, &out.live)
	return out, err
}

// CheckConfig returns an error for a key that no ConfigMap can hold.
func CheckConfig(values map[string]string) error {
	// Of several keys the first in the alphabet is reported, so that the message stays the same.
	wrong := ""
	for k := range values {
		if len(validation.IsConfigMapKey(k)) > 0 && (wrong == "" || k < wrong) {
			wrong = k
		}
	}
	if wrong == "" {
		return nil
	}
	return compose.Invalidf("config: key %q may hold only letters, digits, '-', '_' and '.'", wrong)
}

// AppConfig returns the AppConfig that creates the bundles. The claim's own objects decide which of
// them pods run: they take it from Bundle, so that a rollback reaches them the same way as a
// change, and the provider does not write to them.
func (c *Config) AppConfig(app string, env appsv1.Environment, deployments ...string) *configv1.AppConfig {
	a := &configv1.AppConfig{}
	a.APIVersion, a.Kind = configv1.GroupVersion.String(), configv1.AppConfigKind
	a.ObjectMeta = c.scope.Meta(ConfigPart, app)
	SetExternalName(a)
	a.Spec.ForProvider = configv1.AppConfigParameters{
		Application: c.scope.Claim,
		Environment: configEnvironments[env],
		Config:      c.values,
		Templating:  configv1.TemplatingNone,
		Rollout:     &configv1.Rollout{By: configv1.ByOwner},
	}
	if len(deployments) > 1 {
		a.Spec.ForProvider.Rollout.Order = configv1.Sequential
	}
	for _, d := range deployments {
		a.Spec.ForProvider.Targets = append(a.Spec.ForProvider.Targets, configv1.Target{Kind: configv1.Deployment, Name: d})
	}
	return a
}

// ConfigAllowance returns the annotation of a claim's workloads that allows AppConfigs to change
// them: those that the claim's own annotation names, and the claim's own one. It is nil if there
// are none.
func ConfigAllowance(c *compose.Claim, own *Config) map[string]string {
	var names []string
	if own != nil {
		names = append(names, own.scope.Name(ConfigPart))
	}
	value := appconfig.Allow(map[string]string{configv1.AllowAnnotation: c.Annotation(configv1.AllowAnnotation)}, names...)
	if value == "" {
		return nil
	}
	return map[string]string{configv1.AllowAnnotation: value}
}

// configEnvironments maps a claim's environment to an AppConfig's. Without one it is the most
// frugal.
var configEnvironments = map[appsv1.Environment]configv1.Environment{
	"":                 configv1.Dev,
	appsv1.Development: configv1.Dev,
	appsv1.Staging:     configv1.Staging,
	appsv1.Production:  configv1.Prod,
}

// Bundle returns the bundle that pods should run: the one that the AppConfig reports, be it new or
// the last good one, or else the wanted one, which the AppConfig will create. It is "" without
// config.
func (c *Config) Bundle() string {
	if c == nil {
		return ""
	}
	if b := c.live.Status.AtProvider.Bundle; b != "" {
		return b
	}
	return c.wanted
}

// IsRollingOut reports whether the rollout of Bundle has not finished yet.
func (c *Config) IsRollingOut() bool {
	if c == nil {
		return false
	}
	p := c.live.Status.AtProvider
	return p.Bundle != "" && p.Pending == p.Bundle && p.LastGood != p.Bundle
}

// Awaits returns the components that must be healthy before pods are created that cannot be changed
// later: the bundle that they should run is unknown until the AppConfig has applied a new config,
// or given it up.
func (c *Config) Awaits() []string {
	if c == nil {
		return nil
	}
	p := c.live.Status.AtProvider
	if p.Bundle == c.wanted || p.Failed != nil && p.Failed.Bundle == c.wanted {
		return nil
	}
	return []string{ConfigComponent}
}

// Holds returns the components that a change of pods comes after, by the bundle that the pods run
// and the one that they should run. So an edit of a claim and its config is one rollout, but a
// rollback to the last good bundle waits for nothing.
func (c *Config) Holds(run, shall string) []string {
	if c != nil && c.live.Status.AtProvider.Bundle != "" && run != shall {
		return nil
	}
	return c.Awaits()
}

// EnvFrom returns the environment of a bundle, followed by the claim's own sources, which therefore
// take precedence. It returns only the latter if bundle is "".
func EnvFrom(bundle string, own []corev1.EnvFromSource) []corev1.EnvFromSource {
	if bundle == "" {
		return own
	}
	ref := corev1.EnvFromSource{ConfigMapRef: &corev1.ConfigMapEnvSource{LocalObjectReference: corev1.LocalObjectReference{Name: bundle}}}
	return append([]corev1.EnvFromSource{ref}, own...)
}

// BundleIn returns the bundle of a claim's config that an environment is taken
// from, or "".
func BundleIn(s Scope, from []corev1.EnvFromSource) string {
	for _, f := range from {
		if f.ConfigMapRef != nil && appconfig.IsBundle(s.Claim, f.ConfigMapRef.Name) {
			return f.ConfigMapRef.Name
		}
	}
	return ""
}

// Status returns the status of the config, for the claim's status.
func (c *Config) Status(o compose.Outcome) *appsv1.ConfigStatus {
	if c == nil {
		return nil
	}
	cond := c.Condition(o)
	return &appsv1.ConfigStatus{Bundle: c.live.Status.AtProvider.Bundle, State: c.state(o, cond.Reason), Message: cond.Message}
}

// Condition returns the condition of the config, for the claim. It repeats the AppConfig's Ready
// only when the AppConfig has failed. The progress before that is in the AppConfig's own status,
// pod by pod: each message would cost two writes to the claim.
func (c *Config) Condition(o compose.Outcome) compose.Condition {
	out := compose.PartReady(appsv1.TypeConfigReady, o, ConfigPart)
	if c == nil || o.Health(ConfigComponent).State != health.Failed {
		return out
	}
	for _, r := range c.live.Status.Conditions {
		if r.Type == "Ready" && r.Status == "False" && r.ObservedGeneration >= c.live.Metadata.Generation {
			out.Reason, out.Message = r.Reason, r.Message
		}
	}
	return out
}

// state returns the state of the config in one word, by the reason of its condition.
func (c *Config) state(o compose.Outcome, reason string) appsv1.ConfigState {
	h := o.Health(ConfigComponent)
	switch {
	case h.IsHealthy():
		return appsv1.ConfigRunning
	case h.State != health.Failed && c.live.Status.AtProvider.Bundle == "":
		return appsv1.ConfigPending
	case h.State != health.Failed:
		return appsv1.ConfigRollingOut
	case reason == configv1.ReasonRolledBack:
		return appsv1.ConfigRolledBack
	default:
		return appsv1.ConfigFailed
	}
}
