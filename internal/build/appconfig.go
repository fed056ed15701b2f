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
	// ConfigComponent is a claim's AppConfig. Its name is not config: that was a
	// ConfigMap's, and Crossplane would not remove what it takes for the same.
	ConfigComponent = "appconfig"

	// ConfigPart is what it counts for in the claim's status.
	ConfigPart = "config"

	// ConditionConfig is the type of the condition that says how the config is.
	ConditionConfig = "ConfigReady"
)

// Config of a claim: what is asked for, and what has been seen of its AppConfig.
// A claim that asks for none has a nil one.
type Config struct {
	scope  Scope
	values map[string]string

	// wanted is the name of the bundle that holds the values.
	wanted string

	live liveConfig
}

// liveConfig is what a function looks at of an observed AppConfig.
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

// ReadConfig reads what has been seen of a claim's AppConfig, if its config asks
// for one.
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
	// Of several the first one in the alphabet, so that the words stay the same.
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

// AppConfig that makes the bundles. Who runs them is up to the claim's own
// objects: they take Bundle, so that a rollback reaches them the same way as a
// change, and nobody else writes to them.
func (c *Config) AppConfig(app string, env appsv1.Environment, deployments ...string) *configv1.AppConfig {
	a := &configv1.AppConfig{}
	a.APIVersion, a.Kind = configv1.GroupVersion.String(), configv1.AppConfigKind
	a.ObjectMeta = c.scope.Meta(ConfigPart, app)
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

// ConfigAllowance is the annotation of a claim's workloads that lets AppConfigs
// change them: those that the claim's own annotation names, and its own one.
// Without any there is none.
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

// configEnvironments by a claim's, the most frugal one without.
var configEnvironments = map[appsv1.Environment]configv1.Environment{
	"":                 configv1.Dev,
	appsv1.Development: configv1.Dev,
	appsv1.Staging:     configv1.Staging,
	appsv1.Production:  configv1.Prod,
}

// Bundle that pods shall run: what the AppConfig says, be it new or the last good
// one. Until it has said anything it will make the one that is wanted. Without a
// config there is none.
func (c *Config) Bundle() string {
	if c == nil {
		return ""
	}
	if b := c.live.Status.AtProvider.Bundle; b != "" {
		return b
	}
	return c.wanted
}

// IsRollingOut tells whether Bundle has yet to prove itself.
func (c *Config) IsRollingOut() bool {
	if c == nil {
		return false
	}
	p := c.live.Status.AtProvider
	return p.Bundle != "" && p.Pending == p.Bundle && p.LastGood != p.Bundle
}

// Awaits names what pods that cannot be changed later come after: until the
// AppConfig has taken up a new config, or given it up, nobody knows what bundle
// there will be.
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

// Holds names what a change of pods comes after, by the bundle that they run and
// the one that they shall run. An edit of a claim and its config is one rollout so;
// but the way back to what works waits for nothing.
func (c *Config) Holds(run, shall string) []string {
	if c != nil && c.live.Status.AtProvider.Bundle != "" && run != shall {
		return nil
	}
	return c.Awaits()
}

// EnvFrom puts the environment of a bundle before what a claim names itself,
// which therefore wins. Without a bundle there is none.
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

// Status of the config for the claim's own.
func (c *Config) Status(o compose.Outcome) *appsv1.ConfigStatus {
	if c == nil {
		return nil
	}
	cond := c.Condition(o)
	return &appsv1.ConfigStatus{Bundle: c.live.Status.AtProvider.Bundle, State: c.state(o, cond.Reason), Message: cond.Message}
}

// Condition of the config for the claim: the AppConfig's Ready once that has given
// up. What it does until then it says itself, pod by pod: each word would be two
// writes to the claim.
func (c *Config) Condition(o compose.Outcome) compose.Condition {
	out := compose.PartReady(ConditionConfig, o, ConfigPart)
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

// state in one word, by the reason of the AppConfig.
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
