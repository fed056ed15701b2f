package pgbackrest

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"
)

// ErrCorrupt means that something in a repository is missing or changed.
var ErrCorrupt = errors.New("the repository is damaged")

// Verify verifies all files of a stanza's backups and archive. pgBackRest exits with success
// whatever it finds (https://github.com/pgbackrest/pgbackrest/issues/2502), so its output counts.
// A file that the store does not return is not counted as damage.
//
// Files of backups that expire meanwhile are missing too: then it verifies again.
func (t Tool) Verify(ctx context.Context, stanza string) error {
	before, err := t.Sets(ctx)
	if err != nil {
		return err
	}
	for attempt := 1; ; attempt++ {
		damage := t.verify(ctx, stanza)
		if !errors.Is(damage, ErrCorrupt) || attempt == verifyAttempts {
			return damage
		}
		after, err := t.Sets(ctx)
		if err != nil {
			return err
		}
		if !expired(Of(stanza, before), after) {
			return damage
		}
		before = after
	}
}

// verifyAttempts is how often it verifies while backups expire.
const verifyAttempts = 3

// expired reports whether a set was removed.
func expired(before, after []Set) bool {
	return slices.ContainsFunc(before, func(b Set) bool {
		return !slices.ContainsFunc(after, func(a Set) bool { return a.Stanza == b.Stanza && a.Label == b.Label })
	})
}

func (t Tool) verify(ctx context.Context, stanza string) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	log := &unread{to: t.Log, stop: cancel}
	t.Log = log
	out, err := t.Run(ctx, stanza, "verify", "--output=text", "--verbose", verifyLogLevel)
	if log.failure != nil {
		return log.failure
	}
	if err != nil {
		return err
	}
	return parseVerify(out)
}

// verifyBackup matches the line about a backup, and verifyDamage the line that counts the damaged
// files of it or of the archive.
var (
	verifyBackup = regexp.MustCompile(`^backup: (\S+), status: ([a-z -]+)`)
	verifyDamage = regexp.MustCompile(`^missing: (\d+), checksum invalid: (\d+), size invalid: (\d+), other: (\d+)$`)
)

func parseVerify(out []byte) error {
	var found []string
	about, status, damaged := "", "", false
	scan := bufio.NewScanner(bytes.NewReader(out))
	for scan.Scan() {
		line := strings.TrimSpace(scan.Text())
		switch {
		case strings.HasPrefix(line, "status:"):
			status = strings.TrimSpace(strings.TrimPrefix(line, "status:"))
		case strings.HasPrefix(line, "archiveId:"):
			about = "WAL"
		case verifyBackup.MatchString(line):
			m := verifyBackup.FindStringSubmatch(line)
			about = "backup " + m[1]
			if s := strings.TrimSpace(m[2]); s != "valid" && s != "in-progress" {
				found, damaged = append(found, about+" is "+s), true
			}
		case verifyDamage.MatchString(line):
			m := verifyDamage.FindStringSubmatch(line)
			for i, what := range []string{"missing", "changed", "cut off", "unreadable"} {
				if m[i+1] != "0" {
					found, damaged = append(found, fmt.Sprintf("of %s %s files are %s", about, m[i+1], what)), true
				}
			}
		case strings.HasPrefix(line, "No usable"):
			found, damaged = append(found, line), true
		}
	}
	switch {
	case damaged:
		return fmt.Errorf("%w: %s", ErrCorrupt, strings.Join(found, ", "))
	case status != "ok":
		return fmt.Errorf("%w: pgBackRest reports: %s", ErrCorrupt, oneLine(string(out)))
	}
	return nil
}
