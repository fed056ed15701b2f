package appconfig

import (
	"time"

	configv1 "github.com/storeplane/storeplane/apis/config/v1"
	"github.com/storeplane/storeplane/internal/label"
)

// Parameters of an AppConfig, with the defaults of its definition.

// ByOwner reports whether the owner of the targets changes them, and not the provider.
func ByOwner(p *configv1.AppConfigParameters) bool {
	return p.Rollout != nil && p.Rollout.By == configv1.ByOwner
}

// Sequential reports whether the targets are changed one after the other.
func Sequential(p *configv1.AppConfigParameters) bool {
	return p.Rollout != nil && p.Rollout.Order == configv1.Sequential
}

// AutoRollback reports whether the last good bundle is applied again after a rollout has failed.
func AutoRollback(p *configv1.AppConfigParameters) bool {
	return p.Rollout == nil || p.Rollout.AutoRollback == nil || *p.Rollout.AutoRollback
}

// defaultDeadline is the default of the definition.
const defaultDeadline = 5 * time.Minute

// Deadline returns the progress deadline of a target.
func Deadline(p *configv1.AppConfigParameters) time.Duration {
	if p.Rollout == nil || p.Rollout.ProgressDeadline == nil || p.Rollout.ProgressDeadline.Duration <= 0 {
		return defaultDeadline
	}
	return p.Rollout.ProgressDeadline.Duration
}

// Labels returns the labels of the targets, if no list names these.
func Labels(p *configv1.AppConfigParameters) map[string]string {
	if p.Selector != nil {
		return p.Selector.MatchLabels
	}
	return map[string]string{label.Name: p.Application}
}

func injectsEnv(p *configv1.AppConfigParameters) bool {
	return p.Inject == nil || p.Inject.Env == nil || *p.Inject.Env
}

func mountPath(p *configv1.AppConfigParameters) string {
	if p.Inject == nil {
		return ""
	}
	return p.Inject.MountPath
}
