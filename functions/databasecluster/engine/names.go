package engine

import (
	"slices"
	"strings"

	appsv1 "github.com/storeplane/storeplane/apis/apps/v1"
	"github.com/storeplane/storeplane/internal/compose"
)

// Names are the names that an engine or Storeplane use themselves, which users and databases of a
// claim may not have.
type Names struct {
	Users, Databases []string

	// UserPrefix begins other names of users that are the engine's own, or is "".
	UserPrefix string

	// LongestUser is the length of the longest name of a user, or 0 if the schema's limit is the engine's.
	LongestUser int
}

// Check returns an error for users and databases whose names are reserved, given twice or too long, and
// for databases of an owner that is no user.
func (n Names) Check(s *appsv1.DatabaseClusterSpec, engine string) error {
	users := map[appsv1.Identifier]bool{AppUser: true}
	for _, u := range s.Users {
		switch name := string(u.Name); {
		case slices.Contains(n.Users, name) || n.UserPrefix != "" && strings.HasPrefix(name, n.UserPrefix):
			return compose.Invalidf("users has %s, which is a reserved user name: choose another", name)
		case n.LongestUser > 0 && len(name) > n.LongestUser:
			return compose.Invalidf("users has %s: with engine %s a name has at most %d characters", name, engine, n.LongestUser)
		case strings.HasSuffix(name, "_"):
			return compose.Invalidf("users has %s: a name may not end with _, since a Secret is named after it", name)
		case users[u.Name]:
			return compose.Invalidf("users has %s twice", name)
		}
		users[u.Name] = true
	}
	databases := map[appsv1.Identifier]bool{}
	for _, db := range s.Databases {
		switch name := string(db.Name); {
		case slices.Contains(n.Databases, name):
			return compose.Invalidf("databases has %s, which every cluster has: choose another", name)
		case databases[db.Name]:
			return compose.Invalidf("databases has %s twice", name)
		case !users[appsv1.Identifier(Owner(db))]:
			return compose.Invalidf("databases.%s.owner is %s, which is not in users: add it", name, Owner(db))
		}
		databases[db.Name] = true
	}
	return nil
}
