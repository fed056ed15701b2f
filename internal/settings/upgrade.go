package settings

import (
	"encoding/json"
	"maps"
	"slices"
	"strings"

	"golang.org/x/mod/semver"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	appsv1 "github.com/storeplane/storeplane/apis/apps/v1"
	"github.com/storeplane/storeplane/internal/build"
	"github.com/storeplane/storeplane/internal/compose"
	"github.com/storeplane/storeplane/internal/images"
)

// unreleased is the version of a function that belongs to no release.
const unreleased = "unreleased"

// Release returns the name of the release with which claims are composed: its version, and a digest
// of its images and of the settings that pods depend on.
func (s *Settings) Release() string {
	of := []string{s.ImageRegistry}
	for _, name := range slices.Sorted(maps.Keys(s.Digests)) {
		of = append(of, name, s.Digests[name])
	}
	backups, _ := json.Marshal(s.Backup) //nolint:errchkjson // it was decoded from JSON, so it can be encoded
	version := s.Version
	if version == "" {
		version = unreleased
	}
	return version + "-" + build.Digest(append(of, string(backups))...)[:6]
}

// ReleaseOf returns the name of the release with the installation's settings and the given images
// of Storeplane's own. Settings that cannot be used are an error: claims continue with their
// previous ones.
func ReleaseOf(config *unstructured.Unstructured, own images.Set) (string, error) {
	data, _, err := unstructured.NestedMap(config.Object, "data")
	if err != nil {
		return "", compose.Invalidf("cannot read EnvironmentConfig storeplane: %v", err)
	}
	decoded, err := compose.DataOf(data)
	if err != nil {
		return "", err
	}
	s, err := parse(decoded, Settings{ImageRegistry: own.Registry, Digests: own.Digests, Version: own.Version})
	if err != nil {
		return "", err
	}
	return s.Release(), nil
}

// Upgrade returns the upgrade of a claim of an environment, with its own window or else the
// installation's, and with its inputs in addition to its spec.
func (s *Settings) Upgrade(env appsv1.Environment, own *appsv1.Maintenance, inputs ...string) (*compose.Upgrade, error) {
	if env == "" {
		env = appsv1.Development
	}
	u := &compose.Upgrade{Release: s.Release(), Inputs: inputs, Waves: len(s.Upgrades.Waves) > 0, Urgent: s.isUrgent}
	m := own
	if m == nil {
		m = s.Maintenance[env]
	}
	if m == nil {
		return u, nil
	}
	var err error
	if u.Window, err = build.Window(m); err != nil {
		return nil, compose.Invalidf("maintenance: %v", err)
	}
	return u, nil
}

// isUrgent reports whether a change from another release to this one waits for nothing: this
// version, or one between the two, is urgent. Other settings of the same version are not urgent.
func (s *Settings) isUrgent(from string) bool {
	if s.AdmitAll {
		return true
	}
	was := from
	if i := strings.LastIndexByte(from, '-'); i > 0 {
		was = from[:i]
	}
	if was == s.Version {
		return false
	}
	for _, u := range s.Upgrades.Urgent {
		between := semver.IsValid(u) && semver.IsValid(s.Version) && semver.Compare(u, s.Version) < 0 && (!semver.IsValid(was) || semver.Compare(was, u) < 0)
		if u == s.Version || between {
			return true
		}
	}
	return false
}

// check checks that each urgent version can be compared with others: one that cannot would wait
// like any other, without a message.
func (u *Upgrades) check() error {
	for i, v := range u.Urgent {
		if semver.Canonical(v) == "" || semver.Canonical(v)+semver.Build(v) != v {
			return compose.Invalidf("cannot use EnvironmentConfig storeplane: data.upgrades.urgent[%d] must be a version like v0.2.1, is %q", i, v)
		}
	}
	return nil
}

// checkMaintenance checks the windows of all environments.
func (s *Settings) checkMaintenance() error {
	for _, env := range slices.Sorted(maps.Keys(s.Maintenance)) {
		if !slices.Contains([]appsv1.Environment{appsv1.Development, appsv1.Staging, appsv1.Production}, env) {
			return compose.Invalidf("cannot use EnvironmentConfig storeplane: data.maintenance must be of development, staging or production, is of %q", env)
		}
		if s.Maintenance[env] == nil {
			continue
		}
		if _, err := build.Window(s.Maintenance[env]); err != nil {
			return compose.Invalidf("cannot use EnvironmentConfig storeplane: data.maintenance.%s.%v", env, err)
		}
	}
	return nil
}
