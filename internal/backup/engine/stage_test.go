package engine

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/storeplane/storeplane/internal/backup"
)

// TestStage: what the container of a throw-away server reports reaches the container beside it.
func TestStage(t *testing.T) {
	cases := map[string]struct {
		reason string
		play   func(*Stage) error

		// after runs once the server is ready.
		after func(*Stage) error
		want  backup.Reason
		words string
	}{
		"Ready": {reason: "It is waited for.", play: (*Stage).Ready},
		"NeverReady": {
			reason: "It cannot be made.", play: func(s *Stage) error { return s.Ended(errors.New("initdb failed: no such locale")) },
			want: backup.ToolFailed, words: "no such locale",
		},
		"NoRoom": {
			reason: "Its disk is too small.", play: func(s *Stage) error { return s.Ended(errors.New("initdb failed: No space left on device")) },
			want: backup.NoSpace, words: "out of room",
		},
		"Died": {
			reason: "It dies of what it is asked to do.", play: (*Stage).Ready,
			after: func(s *Stage) error {
				_, err := s.Write([]byte("PANIC: could not write\n"))
				return errors.Join(err, s.Ended(errors.New("postgres ended: signal: aborted")))
			},
			want: backup.ToolFailed, words: "PANIC: could not write",
		},
		"Full": {
			reason: "It says that there is no room, and lives.", play: (*Stage).Ready,
			after: func(s *Stage) error {
				_, err := s.Write([]byte("ERROR: could not extend file: No space left on device\n"))
				return err
			},
			want: backup.NoSpace, words: "could not extend file",
		},
		"DiedOfFull": {
			reason: "It dies for want of room and does not say so: its container has seen it.", play: (*Stage).Ready,
			after: func(s *Stage) error {
				return s.Ended(backup.Errorf(backup.NoSpace, "the throw-away database has no room left on its disk: mariadbd ended: signal: aborted"))
			},
			want: backup.NoSpace, words: "no room left on its disk",
		},
		"StartedAgain": {
			reason: "It was killed, and what it held is gone.", play: (*Stage).Ready,
			after: func(s *Stage) error {
				again, err := NewStage(s.dir)
				if !errors.Is(err, ErrUsed) {
					return errors.New("want a stage to be used once")
				}
				return again.Ended(err)
			},
			want: backup.ToolFailed, words: ErrUsed.Error(),
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			s, r := played(t, tc.play)
			err := r.Await(t.Context())
			if tc.after != nil {
				if err != nil {
					t.Fatal(err)
				}
				if err := tc.after(s); err != nil {
					t.Fatal(err)
				}
				err = r.Failed(backup.Errorf(backup.SourceUnreachable, "cannot connect"))
			}
			if backup.ReasonOf(err) != tc.want || err != nil && !strings.Contains(err.Error(), tc.words) {
				t.Errorf("%s\nwant %q with %q, got %v", tc.reason, tc.want, tc.words, err)
			}
		})
	}
}

// TestAwaitEnds: Await ends with its context, although the server never comes up.
func TestAwaitEnds(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Millisecond)
	defer cancel()
	if err := (Remote{Dir: t.TempDir(), Scratch: t.TempDir()}).Await(ctx); err == nil {
		t.Error("want an error once the context has ended")
	}
}

// TestRemoteLinks: the server's container may put anything into the folder, and a symbolic link
// would point to files of the container that reads it.
func TestRemoteLinks(t *testing.T) {
	dir, secret := t.TempDir(), filepath.Join(t.TempDir(), "secretAccessKey")
	if err := os.WriteFile(secret, []byte("s3cret"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{wordsFile, endedFile} {
		if err := os.Symlink(secret, filepath.Join(dir, name)); err != nil {
			t.Fatal(err)
		}
	}
	err := Remote{Dir: dir, Scratch: dir}.Await(t.Context())
	if err == nil || strings.Contains(err.Error(), "s3cret") {
		t.Errorf("want an error without what the link leads to, got %v", err)
	}
}

// TestAwaitRecovered: the reason why a server does not start with the files of a backup comes from
// the container that runs it, which may run any program.
func TestAwaitRecovered(t *testing.T) {
	cases := map[string]struct {
		reason string
		play   func(*Stage) error
		want   backup.Reason
		words  string
	}{
		"Ready":   {reason: "It has recovered.", play: (*Stage).Ready},
		"Corrupt": {reason: "The backup is bad.", play: ended(backup.BackupCorrupt, "invalid checkpoint record"), want: backup.BackupCorrupt, words: "invalid checkpoint record"},
		"Store":   {reason: "The store does not answer, which says nothing about the backup.", play: ended(backup.StoreUnreachable, "timeout"), want: backup.StoreUnreachable, words: "timeout"},
		"Made up": {reason: "A condition has no such reason.", play: ended("not a reason\n", "x"), want: backup.ToolFailed, words: "x"},
		"Room":    {reason: "The disk is too small.", play: ended(backup.ToolFailed, "could not extend file: No space left on device"), want: backup.NoSpace, words: "out of room"},
		"Killed": {
			reason: "It was killed, and what it held is gone.",
			play: func(s *Stage) error {
				again, err := NewStage(s.dir)
				return again.Ended(err)
			},
			want: backup.ToolFailed, words: ErrUsed.Error(),
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			_, r := played(t, tc.play)
			err := r.AwaitRecovered(t.Context())
			if backup.ReasonOf(err) != tc.want || err != nil && !strings.Contains(err.Error(), tc.words) {
				t.Errorf("%s\nwant %q with %q, got %v", tc.reason, tc.want, tc.words, err)
			}
		})
	}
}

func ended(reason backup.Reason, words string) func(*Stage) error {
	return func(s *Stage) error { return s.Ended(backup.Errorf(reason, "%s", words)) }
}

// played returns a new stage on which play has run, and the Remote of the container beside it.
func played(t *testing.T, play func(*Stage) error) (*Stage, Remote) {
	t.Helper()
	dir := t.TempDir()
	s, err := NewStage(dir)
	if err != nil {
		t.Fatal(err)
	}
	if err := play(s); err != nil {
		t.Fatal(err)
	}
	return s, Remote{Dir: dir, Scratch: dir}
}
