package pgbackrest

import (
	"context"
	"encoding/json"
	"fmt"
	"strconv"
)

// expireTries is how often a repository without room is asked to expire. The
// first time removes the manifests of what expires, and then has no room to write
// down that it did; they are the room of the second.
const expireTries = 3

// Expire a full backup, those that depend on it, and the WAL that no other one
// needs.
func (t Tool) Expire(ctx context.Context, stanza, label string) error {
	all, err := t.labels(ctx, stanza, func(infoBackup) bool { return true })
	if err != nil {
		return err
	}
	left := 0
	for _, l := range all {
		if l != label && l == chain(l) {
			left++
		}
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

// Broken backups of a stanza, by their labels, oldest first: those in which pages
// were damaged when they were made. They are no Sets, and take room.
func (t Tool) Broken(ctx context.Context, stanza string) ([]string, error) {
	return t.labels(ctx, stanza, func(b infoBackup) bool { return b.Error != nil && *b.Error })
}

// labels of a stanza's backups that are so.
func (t Tool) labels(ctx context.Context, stanza string, is func(infoBackup) bool) ([]string, error) {
	out, err := t.Run(ctx, stanza, "info", "--output=json")
	if err != nil {
		return nil, err
	}
	var stanzas []infoStanza
	if err := json.Unmarshal(out, &stanzas); err != nil {
		return nil, fmt.Errorf("cannot read what pgBackRest says of the repository: %w", err)
	}
	var labels []string
	for _, s := range stanzas {
		for _, b := range s.Backup {
			if s.Name == stanza && is(b) {
				labels = append(labels, b.Label)
			}
		}
	}
	return labels, nil
}
