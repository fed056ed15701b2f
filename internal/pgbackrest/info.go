package pgbackrest

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/storeplane/storeplane/internal/backup"
)

// verifiedAnnotation of a backup is when it was last restored and found good.
const verifiedAnnotation = "verified"

// Set is one backup in a repository.
type Set struct {
	// Stanza is the cluster that it is of, by its system identifier.
	Stanza string

	// Label names it.
	Label string

	// Version is PostgreSQL's major.
	Version string

	// Start and Stop of the backup.
	Start, Stop time.Time

	// WALStart is the segment of WAL that a restore of it reads first, and WALStop the
	// one that it reads at least to.
	WALStart, WALStop string

	// Size in the repository in bytes, without what it shares with the backup
	// that it is based on.
	Size int64

	// Data is the size of the cluster's files in bytes.
	Data int64

	// Verified is when it was last restored and found good, or zero.
	Verified time.Time
}

// First time that the set can be restored to. PgBackRest cuts off the parts of a
// second at which the set was complete.
func (s Set) First() time.Time { return s.Stop.Add(time.Second) }

type infoStanza struct {
	Name   string       `json:"name"`
	Backup []infoBackup `json:"backup"`
	DB     []infoDB     `json:"db"`
	Repo   []infoRepo   `json:"repo"`
}

type infoRepo struct {
	Status infoStatus `json:"status"`
}

type infoStatus struct {
	Code    int    `json:"code"`
	Message string `json:"message"`
}

type infoDB struct {
	ID      int    `json:"id"`
	Version string `json:"version"`
}

type infoBackup struct {
	Label      string            `json:"label"`
	Error      *bool             `json:"error"`
	Annotation map[string]string `json:"annotation"`
	Database   struct {
		ID int `json:"id"`
	} `json:"database"`
	Archive struct {
		Start string `json:"start"`
		Stop  string `json:"stop"`
	} `json:"archive"`
	Timestamp struct {
		Start int64 `json:"start"`
		Stop  int64 `json:"stop"`
	} `json:"timestamp"`
	Info struct {
		Size       int64 `json:"size"`
		Repository struct {
			Delta int64 `json:"delta"`
		} `json:"repository"`
	} `json:"info"`
}

// statusOther is a status of a repository that is neither fine nor empty.
const statusOther = 99

// Sets of a repository, oldest first. Those in which pages were broken when they
// were made are none.
func (t Tool) Sets(ctx context.Context) ([]Set, error) {
	out, err := t.Run(ctx, "", "info", "--output=json")
	if err != nil {
		return nil, err
	}
	return parseInfo(out)
}

// Stanzas of a repository, also those without a backup. To pgBackRest whatever
// folder lies in its own is one; ours are named after system identifiers.
func (t Tool) Stanzas(ctx context.Context) ([]string, error) {
	out, err := t.Run(ctx, "", "info", "--output=json")
	if err != nil {
		return nil, err
	}
	var stanzas []infoStanza
	if err := json.Unmarshal(out, &stanzas); err != nil {
		return nil, fmt.Errorf("cannot read what pgBackRest says of the repository: %w", err)
	}
	names := make([]string, 0, len(stanzas))
	for _, s := range stanzas {
		if _, err := strconv.ParseUint(System(s.Name), 10, 64); err == nil {
			names = append(names, s.Name)
		}
	}
	return names, nil
}

func parseInfo(out []byte) ([]Set, error) {
	var stanzas []infoStanza
	if err := json.Unmarshal(out, &stanzas); err != nil {
		return nil, fmt.Errorf("cannot read what pgBackRest says of the repository: %w", err)
	}
	var sets []Set
	for _, s := range stanzas {
		for _, r := range s.Repo {
			// It ends with success although it could not read the store.
			if r.Status.Code == statusOther {
				return nil, &Error{Command: "info", Code: r.Status.Code, Message: oneLine(r.Status.Message)}
			}
		}
		versions := map[int]string{}
		for _, d := range s.DB {
			versions[d.ID] = d.Version
		}
		for _, b := range s.Backup {
			if b.Error != nil && *b.Error {
				continue
			}
			set := Set{
				Stanza: s.Name, Label: b.Label, Version: versions[b.Database.ID], WALStart: b.Archive.Start, WALStop: b.Archive.Stop, Size: b.Info.Repository.Delta, Data: b.Info.Size,
				Start: time.Unix(b.Timestamp.Start, 0).UTC(), Stop: time.Unix(b.Timestamp.Stop, 0).UTC(),
			}
			// What somebody else wrote there means nothing.
			set.Verified, _ = time.Parse(time.RFC3339, b.Annotation[verifiedAnnotation])
			sets = append(sets, set)
		}
	}
	slices.SortStableFunc(sets, func(a, b Set) int {
		return cmp.Or(a.Stop.Compare(b.Stop), cmp.Compare(a.Label, b.Label))
	})
	return sets, nil
}

func oneLine(text string) string { return strings.Join(strings.Fields(text), " ") }

// maxEntries of a Catalog.
const maxEntries = 10

// maxOthers of a Catalog.
const maxOthers = 5

// Catalog of the sets of a stanza. Those of other ones, which lie in the same place,
// are only counted.
func Catalog(all []Set, stanza string) *backup.Catalog {
	sets := Of(stanza, all)
	c := &backup.Catalog{Count: len(sets), System: stanza}
	for _, s := range Places(all) {
		if s.Stanza != stanza && len(c.Others) < maxOthers {
			c.Others = append(c.Others, backup.System{ID: s.Stanza, Count: s.Count, First: s.First, Last: s.Last})
		}
	}
	for _, s := range slices.Backward(sets) {
		c.Total += s.Size
		e := Entry(s)
		if len(c.Backups) < maxEntries {
			c.Backups = append(c.Backups, e)
		}
		if c.Verified == nil && e.Verified != nil {
			c.Verified = &e
		}
	}
	if len(sets) > 0 {
		c.Oldest = new(sets[0].First())
	}
	return c
}

// Entry of a set.
func Entry(s Set) backup.Entry {
	e := backup.Entry{ID: s.Label, Time: s.Start, Seconds: s.Stop.Sub(s.Start).Seconds(), Size: s.Size}
	if !s.Verified.IsZero() {
		e.Verified = &s.Verified
	}
	return e
}

// MarkVerified notes in the repository when a set was found good.
func (t Tool) MarkVerified(ctx context.Context, s Set, now time.Time) error {
	_, err := t.Run(ctx, s.Stanza, "annotate", "--set="+s.Label, "--annotation="+verifiedAnnotation+"="+now.UTC().Format(time.RFC3339))
	return err
}
