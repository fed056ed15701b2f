package pgbackrest

import (
	"context"
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
)

// expireTries is how often a repository without room is asked to expire. The
// first time removes the manifests of what expires, and then has no room to write
// down that it did; they are the room of the second.
const expireTries = 3

// Expire a full backup, those that depend on it, and the WAL that no other one
// needs.
func (t Tool) Expire(ctx context.Context, stanza, label string) error {
	left, err := t.fullsBut(ctx, stanza, label)
	if err != nil {
		return err
	}
	// How many full backups are kept says how far back WAL is: by age it stays
	// until one of them is old enough.
	keep := []string{"--repo1-retention-full-type=count", "--repo1-retention-full=" + strconv.Itoa(max(left, 1))}
	_, err = t.Run(ctx, stanza, "expire", append([]string{"--set=" + label}, keep...)...)
	for i := 1; i < expireTries && err != nil && ctx.Err() == nil; i++ {
		_, err = t.Run(ctx, stanza, "expire", keep...)
	}
	return err
}

// fullsBut one: those of a stanza, also those with broken pages, which are no
// Sets, but count.
func (t Tool) fullsBut(ctx context.Context, stanza, label string) (int, error) {
	out, err := t.Run(ctx, stanza, "info", "--output=json")
	if err != nil {
		return 0, err
	}
	var stanzas []infoStanza
	if err := json.Unmarshal(out, &stanzas); err != nil {
		return 0, fmt.Errorf("cannot read what pgBackRest says of the repository: %w", err)
	}
	n := 0
	for _, s := range stanzas {
		for _, b := range s.Backup {
			if s.Name == stanza && b.Label != label && !strings.Contains(b.Label, "_") {
				n++
			}
		}
	}
	return n, nil
}
