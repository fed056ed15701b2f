package workload

import (
	"fmt"
	"strconv"
	"strings"

	backupv1 "github.com/storeplane/storeplane/apis/backup/v1"
	"github.com/storeplane/storeplane/internal/images"
	"github.com/storeplane/storeplane/internal/instance"
)

// majors are the major versions of PostgreSQL for which there is an image with tools. pg_dump reads
// servers of its own major version and of older ones.
var majors = []int{15, 17, 18}

// defaultMajor is used if the version of a server is not known.
const defaultMajor = 17

// otherID is the ID of the user that the images run as that are not built from the image
// postgresql.
const otherID = 10001

// Flavour is a variant of the image backup: its tag, and the user ID that it runs as.
type Flavour struct {
	Tag string
	ID  int64
}

// FlavourOf returns the flavour for an engine. Versions matter for PostgreSQL only: the tools must
// be as new as the newest of them. A version that cannot be read, or that is newer than all tools,
// is an error.
func FlavourOf(engine backupv1.Engine, versions ...string) (Flavour, error) {
	if engine != backupv1.PostgreSQL {
		return Flavour{Tag: string(engine), ID: otherID}, nil
	}
	newest := 0
	for _, v := range versions {
		if v == "" {
			continue
		}
		major, err := strconv.Atoi(strings.SplitN(v, ".", 2)[0])
		if err != nil {
			return Flavour{}, fmt.Errorf("cannot read version %q: it is not like 17, 17.2 or 17.2.0", v)
		}
		newest = max(newest, major)
	}
	if newest == 0 {
		newest = defaultMajor
	}
	for _, m := range majors {
		if m >= newest {
			return Flavour{Tag: fmt.Sprintf("postgresql-%d", m), ID: instance.PostgreSQLUser}, nil
		}
	}
	return Flavour{}, fmt.Errorf("cannot back up PostgreSQL %d: the newest version there are tools for is %d", newest, majors[len(majors)-1])
}

// Images returns the images of all flavours, without a registry.
func Images() []string {
	all := []string{images.Backup(string(backupv1.MySQL)), images.Backup(string(backupv1.MongoDB))}
	for _, m := range majors {
		all = append(all, images.Backup(fmt.Sprintf("postgresql-%d", m)))
	}
	return all
}

// Image returns the image of a flavour from a set.
func (f Flavour) Image(of images.Set) string { return of.Image(images.Backup(f.Tag)) }
