package appconfig

import (
	"time"

	configv1 "github.com/storeplane/storeplane/apis/config/v1"
)

// What an AppConfig asks for, with the defaults of its definition.

// ByOwner tells whether somebody else changes the targets.
func ByOwner(p *configv1.AppConfigParameters) bool {
	return p.Rollout != nil && p.Rollout.By == configv1.ByOwner
}

// Sequential tells whether the targets are changed one after the other.
func Sequential(p *configv1.AppConfigParameters) bool {
	return p.Rollout != nil && p.Rollout.Order == configv1.Sequential
}

// AutoRollback tells whether the last good bundle is put back.
func AutoRollback(p *configv1.AppConfigParameters) bool {
	return p.Rollout == nil || p.Rollout.AutoRollback == nil || *p.Rollout.AutoRollback
}

// defaultDeadline is the default of the definition.
const defaultDeadline = 5 * time.Minute

// Deadline of a target's progress.
func Deadline(p *configv1.AppConfigParameters) time.Duration {
	if p.Rollout == nil || p.Rollout.ProgressDeadline == nil || p.Rollout.ProgressDeadline.Duration <= 0 {
		return defaultDeadline
	}
	return p.Rollout.ProgressDeadline.Duration
}

// Labels that the targets have, where no list names them.
func Labels(p *configv1.AppConfigParameters) map[string]string {
	if p.Selector != nil {
		return p.Selector.MatchLabels
	}
	return map[string]string{"app.kubernetes.io/name": p.Application}
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
