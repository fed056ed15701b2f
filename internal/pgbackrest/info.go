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

// verifiedAnnotation is the annotation of a backup with the time at which it was last restored
// and found good.
const verifiedAnnotation = "verified"

// A Set is one backup in a repository.
type Set struct {
	// Stanza is the stanza of its cluster, which begins with the system identifier.
	Stanza string

	// Label is the name of the set.
	Label string

	// Version is the major version of PostgreSQL.
	Version string

	// Start and Stop are when the backup began and ended.
	Start, Stop time.Time

	// WALStart is the first segment of WAL that a restore of the set reads, and WALStop the last
	// one that it has to read.
	WALStart, WALStop string

	// Size is its size in the repository in bytes, without what it shares with the backup that it
	// is based on.
	Size int64

	// Data is the size of the cluster's files in bytes.
	Data int64

	// Verified is when it was last restored and found good, or zero.
	Verified time.Time
}

// First returns the first time that the set can be restored to. pgBackRest truncates the time at
// which a set was complete to seconds.
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

// statusOther is the status of a repository that is neither fine nor empty.
const statusOther = 99

// Sets returns the sets of a repository, oldest first. Backups in which pages were damaged when
// they were created are not among them.
func (t Tool) Sets(ctx context.Context) ([]Set, error) {
	out, err := t.Run(ctx, "", "info", "--output=json")
	if err != nil {
		return nil, err
	}
	return parseInfo(out)
}

// Stanzas returns the stanzas of a repository, even those without a backup. pgBackRest lists
// every folder in its own as a stanza; those of Storeplane are named after system identifiers.
func (t Tool) Stanzas(ctx context.Context) ([]string, error) {
	out, err := t.Run(ctx, "", "info", "--output=json")
	if err != nil {
		return nil, err
	}
	var stanzas []infoStanza
	if err := json.Unmarshal(out, &stanzas); err != nil {
		return nil, fmt.Errorf("cannot read what pgBackRest reports on the repository: %w", err)
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
		return nil, fmt.Errorf("cannot read what pgBackRest reports on the repository: %w", err)
	}
	var sets []Set
	for _, s := range stanzas {
		for _, r := range s.Repo {
			// info exits with success even if it could not read the store.
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
			// An annotation that is no time, which another program may have written, is ignored.
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

// maxEntries is the largest number of Backups in a Catalog.
const maxEntries = 10

// maxOthers is the largest number of Others in a Catalog.
const maxOthers = 5

// Catalog returns the catalog of the sets of a stanza. Those of other stanzas in the same
// repository are only counted.
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

// Entry returns the entry of a set in a Catalog.
func Entry(s Set) backup.Entry {
	e := backup.Entry{ID: s.Label, Time: s.Start, Seconds: s.Stop.Sub(s.Start).Seconds(), Size: s.Size}
	if !s.Verified.IsZero() {
		e.Verified = &s.Verified
	}
	return e
}

// MarkVerified records in the repository when a set was found good.
func (t Tool) MarkVerified(ctx context.Context, s Set, now time.Time) error {
	_, err := t.Run(ctx, s.Stanza, "annotate", "--set="+s.Label, "--annotation="+verifiedAnnotation+"="+now.UTC().Format(time.RFC3339))
	return err
}
