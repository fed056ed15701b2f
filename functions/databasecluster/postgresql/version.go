package postgresql

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"

	appsv1 "github.com/storeplane/storeplane/apis/apps/v1"
	"github.com/storeplane/storeplane/functions/databasecluster/engine"
	"github.com/storeplane/storeplane/internal/compose"
)

// oldestMajor and newestMajor are the first and the last major version of
// PostgreSQL that is accepted.
const (
	oldestMajor = 14
	newestMajor = 18
)

// number is a version of PostgreSQL: a major, and perhaps a minor. A third number, which other
// engines have, is accepted and ignored.
type number struct {
	major, minor int
	hasMinor     bool
}

// pattern is that of the XRD.
var pattern = regexp.MustCompile(`^[0-9]+(\.[0-9]+){0,2}$`)

func parseVersion(v appsv1.Version) (number, error) {
	if !pattern.MatchString(string(v)) {
		return number{}, fmt.Errorf("version %q is not like 17, 17.2 or 17.2.0", v)
	}
	parts := strings.Split(string(v), ".")
	nums := make([]int, len(parts))
	for i, p := range parts {
		n, err := strconv.Atoi(p)
		if err != nil {
			return number{}, fmt.Errorf("version %q is not like 17, 17.2 or 17.2.0", v)
		}
		nums[i] = n
	}
	out := number{major: nums[0]}
	if len(nums) > 1 {
		out.minor, out.hasMinor = nums[1], true
	}
	return out, nil
}

// tag returns the tag of the image that runs this version.
func (n number) tag() string {
	if n.hasMinor {
		return fmt.Sprintf("%d.%d", n.major, n.minor)
	}
	return strconv.Itoa(n.major)
}

// Release returns the release of a version. Versions of one major read each other's data.
func (Engine) Release(version appsv1.Version) engine.Release {
	// The XRD and Check have accepted only valid versions.
	v, _ := parseVersion(version)
	return engine.Release{Tag: v.tag(), Series: strconv.Itoa(v.major)}
}

// CheckChange refuses a version that the data on the volumes does not fit.
func (Engine) CheckChange(version appsv1.Version, servers engine.Running) error {
	// Check has validated it.
	want, _ := parseVersion(version)
	have, ok := running(servers)
	if !ok || want.tag() == servers.Rolled {
		// A version that was rolled out stays accepted, whatever version the image reports.
		return nil
	}
	switch {
	case want.major < have.major:
		return compose.Invalidf("version may not go back: %s → %s", have.tag(), want.tag())
	case want.major > have.major:
		return compose.Invalidf("version may not change its major: %s → %s: claim a new DatabaseCluster and move the data", have.tag(), want.tag())
	case want.hasMinor && have.hasMinor && want.minor < have.minor:
		return compose.Invalidf("version may not go back: %s → %s", have.tag(), want.tag())
	}
	return nil
}

// running returns the newest version that a server reports. If none is reported it returns the
// major that the servers were last rolled to, provided that a server has run: an image that was
// requested and never ran has left no data behind.
func running(servers engine.Running) (number, bool) {
	newest, known := number{}, false
	for _, reported := range servers.Reported {
		v, err := parseVersion(appsv1.Version(reported))
		if err == nil && (!known || v.major > newest.major || v.major == newest.major && v.minor > newest.minor) {
			newest, known = v, true
		}
	}
	if known {
		return newest, true
	}
	v, err := parseVersion(appsv1.Version(servers.Rolled))
	return number{major: v.major}, servers.Ran && err == nil
}
