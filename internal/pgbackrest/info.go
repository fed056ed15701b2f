package pgbackrest

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
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

	// Start and Stop of the backup: it can be restored to Stop and later.
	Start, Stop time.Time

	// WALStart is the segment of WAL that a restore of it reads first.
	WALStart string

	// Size in the repository in bytes, without what it shares with the backup
	// that it is based on.
	Size int64

	// Data is the size of the cluster's files in bytes.
	Data int64

	// Verified is when it was last restored and found good, or zero.
	Verified time.Time
}

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
		if _, err := strconv.ParseUint(s.Name, 10, 64); err == nil {
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
				Stanza: s.Name, Label: b.Label, Version: versions[b.Database.ID], WALStart: b.Archive.Start, Size: b.Info.Repository.Delta, Data: b.Info.Size,
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

// Catalog of sets.
func Catalog(sets []Set) *backup.Catalog {
	c := &backup.Catalog{Count: len(sets)}
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
		c.Oldest = &sets[0].Stop
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

// ErrNone is why there is nothing to restore.
var ErrNone = errors.New("there is no backup")

// Choose the set to restore to a time, or the newest for none.
func Choose(sets []Set, target time.Time, now time.Time) (Set, error) {
	if len(sets) == 0 {
		return Set{}, ErrNone
	}
	if target.IsZero() {
		return sets[len(sets)-1], nil
	}
	if target.After(now) {
		return Set{}, fmt.Errorf("%w for the time %s, which has not come yet", ErrNone, stamp(target))
	}
	for _, s := range slices.Backward(sets) {
		if !s.Stop.After(target) {
			return s, nil
		}
	}
	return Set{}, fmt.Errorf("%w from before %s: the oldest was complete at %s", ErrNone, stamp(target), stamp(sets[0].Stop))
}

// MarkVerified notes in the repository when a set was found good.
func (t Tool) MarkVerified(ctx context.Context, s Set, now time.Time) error {
	_, err := t.Run(ctx, s.Stanza, "annotate", "--set="+s.Label, "--annotation="+verifiedAnnotation+"="+now.UTC().Format(time.RFC3339))
	return err
}

func stamp(t time.Time) string { return t.UTC().Format(time.RFC3339) }
