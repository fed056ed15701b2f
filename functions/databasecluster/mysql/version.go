package mysql

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"

	appsv1 "github.com/storeplane/storeplane/apis/apps/v1"
	"github.com/storeplane/storeplane/functions/databasecluster/engine"
	"github.com/storeplane/storeplane/internal/compose"
)

// series are the series of MySQL with long-term support whose servers elect the one with the most
// transactions.
var series = []string{"9.7"}

// number is a version of MySQL: a series, and perhaps a release of it.
type number struct {
	series     string
	release    int
	hasRelease bool
}

// pattern is that of a version of a series.
var pattern = regexp.MustCompile(`^([0-9]+\.[0-9]+)(?:\.([0-9]+))?$`)

func parseVersion(v appsv1.Version) (number, error) {
	m := pattern.FindStringSubmatch(string(v))
	if m == nil {
		return number{}, fmt.Errorf("version %q is not like 9.7 or 9.7.4", v)
	}
	n := number{series: m[1]}
	for _, s := range series {
		if s != n.series {
			continue
		}
		if m[2] == "" {
			return n, nil
		}
		release, err := strconv.Atoi(m[2])
		n.release, n.hasRelease = release, true
		if err != nil {
			return number{}, fmt.Errorf("version %q is not like 9.7 or 9.7.4", v)
		}
		return n, nil
	}
	return number{}, fmt.Errorf("version %s is not supported: MySQL %s is", v, strings.Join(series, ", "))
}

// tag returns the tag of the image that runs this version.
func (n number) tag() string {
	if n.hasRelease {
		return fmt.Sprintf("%s.%d", n.series, n.release)
	}
	return n.series
}

// Release returns the release of a version. Versions of one series read each other's data.
func (Engine) Release(version appsv1.Version) engine.Release {
	// Check has accepted only valid versions.
	v, _ := parseVersion(version)
	return engine.Release{Tag: v.tag(), Series: v.series}
}

// CheckChange refuses a version that the data on the volumes does not fit.
func (Engine) CheckChange(version appsv1.Version, servers engine.Running) error {
	// Check has validated it.
	want, _ := parseVersion(version)
	if want.tag() == servers.Rolled {
		return nil
	}
	for _, reported := range servers.Reported {
		have, err := parseVersion(appsv1.Version(reported))
		switch {
		case err != nil:
		case want.series != have.series:
			return compose.Invalidf("version may not change its series: %s → %s: claim a new DatabaseCluster and move the data", have.tag(), want.tag())
		case want.hasRelease && have.hasRelease && want.release < have.release:
			return compose.Invalidf("version may not go back: %s → %s", have.tag(), want.tag())
		}
	}
	return nil
}
