package databasecluster

import (
	"maps"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/api/resource"

	appsv1 "github.com/storeplane/storeplane/apis/apps/v1"
	"github.com/storeplane/storeplane/internal/compose"
	"github.com/storeplane/storeplane/internal/profile"
)

// validate refuses what is impossible, and what is not available yet: a claim that requests it
// must not seem to have it.
func validate(s *appsv1.DatabaseClusterSpec, l *live) error {
	if err := Check(s); err != nil {
		return err
	}
	return engineOf(s).CheckChange(s.Version, l.running())
}

// checkInstalled refuses a version whose image the release does not have: pods would wait for it
// forever. Of a cluster that has servers already the series counts: the registry may still have the
// images of earlier releases, and the servers continue if it does not. If images are pulled by tag
// it is not known which exist, and any version is accepted.
func (d *inputs) checkInstalled() error {
	wanted, tags, series := d.engine.Release(d.spec.Version), map[string]bool{}, map[string]bool{}
	for name := range d.settings.Digests {
		if tag, ok := strings.CutPrefix(name, d.server+":"); ok {
			tags[tag], series[d.engine.Release(appsv1.Version(tag)).Series] = true, true
		}
	}
	if len(d.settings.Digests) > 0 && len(tags) == 0 {
		return compose.Invalidf("engine %s is not in this installation: use another engine, or an installation whose images.json lists it", d.server)
	}
	if len(tags) == 0 || tags[wanted.Tag] || d.live.running().Ran && series[wanted.Series] {
		return nil
	}
	return compose.Invalidf("version %s is not in this installation, which has %s: choose one of these", d.spec.Version, strings.Join(slices.Sorted(maps.Keys(tags)), ", "))
}

// Check returns an error for a claim that is invalid whatever exists in the cluster.
func Check(s *appsv1.DatabaseClusterSpec) error {
	if s.Size < 1 || s.Size > maxSize {
		return compose.Invalidf("size must be 1 to %d, is %d", maxSize, s.Size)
	}
	return engineOf(s).Check(s)
}

// storage returns the size of each volume. A claim without storageSize keeps its size when the
// default of its environment changes.
func storage(s *appsv1.DatabaseClusterSpec, p *profile.Profile, l *live) (string, error) {
	want := s.StorageSize
	if want == "" {
		want = p.DatabaseStorage
	}
	wq, err := resource.ParseQuantity(want)
	if err != nil || wq.Sign() <= 0 {
		return "", compose.Invalidf("storageSize must be a quantity above zero, like 20Gi: is %q", want)
	}
	have, exists := l.storage()
	switch c := wq.Cmp(have); {
	case !exists:
		return want, nil
	case s.StorageSize == "" || c == 0:
		return have.String(), nil
	case c < 0:
		return "", compose.Invalidf("storageSize may not shrink: %s → %s", have.String(), want)
	default:
		return want, nil
	}
}
