package databasecluster

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"

	appsv1 "github.com/storeplane/storeplane/apis/apps/v1"
)

// The majors of PostgreSQL that are accepted.
const (
	oldestMajor = 14
	newestMajor = 18
)

// number is a version as PostgreSQL counts: a major, and perhaps a minor. A
// third number, which other engines have, is accepted and means nothing.
type number struct {
	major, minor int
	hasMinor     bool
}

// pattern is the XRD's.
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

// major of the version that is asked for.
func (d *cluster) major() string {
	// The XRD and validate have let only whole versions through.
	v, _ := parseVersion(d.spec.Version)
	return strconv.Itoa(v.major)
}

// tag of the image that runs this version.
func (n number) tag() string {
	if n.hasMinor {
		return fmt.Sprintf("%d.%d", n.major, n.minor)
	}
	return strconv.Itoa(n.major)
}
