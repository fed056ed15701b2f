package group

import (
	"k8s.io/apimachinery/pkg/util/version"
)

// MayLead reports whether a member can be made the primary: one that runs a newer version than another
// member cannot, since that one could not read what it writes. Unknown versions are no obstacle: the
// group refuses itself.
//
// https://dev.mysql.com/doc/refman/9.7/en/group-replication-functions-for-new-primary.html
func (r *Report) MayLead(m *Member) bool {
	own, err := version.ParseGeneric(m.Version)
	if err != nil {
		return true
	}
	for _, other := range r.Members {
		if v, err := version.ParseGeneric(other.Version); err == nil && v.LessThan(own) {
			return false
		}
	}
	return true
}
