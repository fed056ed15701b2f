package pgbackrest

import (
	"context"
	"encoding/json"
	"fmt"
	"strconv"
)

// expireTries is how often expire is attempted in a repository without room. The first attempt
// removes the manifests of what expires, and then has no room to record that. The room of the
// manifests is enough for the second.
const expireTries = 3

// Expire removes a full backup, those that depend on it, and the WAL that no other backup needs.
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
	// Retention by count also expires WAL that the remaining full backups do not need. With
	// retention by age, that WAL would stay until one of them is old enough.
	keep := []string{"--repo1-retention-full-type=count", "--repo1-retention-full=" + strconv.Itoa(max(left, 1))}
	_, err = t.Run(ctx, stanza, "expire", append([]string{"--set=" + label}, keep...)...)
	for i := 1; i < expireTries && err != nil && ctx.Err() == nil; i++ {
		_, err = t.Run(ctx, stanza, "expire", keep...)
	}
	return err
}

// Broken returns the labels of a stanza's broken backups, oldest first: those in which pages were
// damaged when they were created. They are not among the Sets, but take room.
func (t Tool) Broken(ctx context.Context, stanza string) ([]string, error) {
	return t.labels(ctx, stanza, func(b infoBackup) bool { return b.Error != nil && *b.Error })
}

// labels returns the labels of a stanza's backups for which is returns true.
func (t Tool) labels(ctx context.Context, stanza string, is func(infoBackup) bool) ([]string, error) {
	out, err := t.Run(ctx, stanza, "info", "--output=json")
	if err != nil {
		return nil, err
	}
	var stanzas []infoStanza
	if err := json.Unmarshal(out, &stanzas); err != nil {
		return nil, fmt.Errorf("cannot read what pgBackRest reports on the repository: %w", err)
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
