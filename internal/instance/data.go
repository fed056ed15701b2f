package instance

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
)

// MaxSize is the largest number of servers of a cluster, and of volumes.
const MaxSize = 10

// LeadWithAnnotation on a DatabaseCluster names the volume claim to lead with where
// that is not decided otherwise, and what it decides: <volume claim>@<first part of
// the DatabaseCluster's UID>, and where there was a primary -<when the last one began
// to lead>. So it has no effect any more once a primary leads.
const LeadWithAnnotation = "storeplane.example.com/lead-with"

// DataState is what a folder of data is.
type DataState string

// The states.
const (
	DataEmpty DataState = "empty"

	// DataCopy is a copy of another server's data that was never finished.
	DataCopy DataState = "copy"

	// DataWhole is a database that PostgreSQL can start with.
	DataWhole DataState = "whole"

	// DataUnreadable is anything else.
	DataUnreadable DataState = "unreadable"
)

// Data is what a volume holds, by what PostgreSQL itself has written there.
type Data struct {
	// Claim is the UID of the volume claim: another one of its name may hold
	// other data.
	Claim string `json:"claim"`

	State DataState `json:"state"`

	// System identifier of the database.
	System string `json:"system,omitempty"`

	// Timeline and Position of the last record of the log.
	Timeline int64 `json:"timeline,omitempty"`
	Position LSN   `json:"position,omitempty"`

	// History of the timeline: those that it came from, oldest first.
	History []Ancestor `json:"history,omitempty"`

	// Begun says that the timeline was begun for the server to lead on, which it never did:
	// that its number is the highest says nothing about the data.
	Begun bool `json:"begun,omitempty"`

	// Written is when the last checkpoint was, as PostgreSQL says it. It decides
	// nothing: clocks differ.
	Written string `json:"written,omitempty"`

	// Problem that makes it unreadable.
	Problem string `json:"problem,omitempty"`
}

// Ancestor of a timeline, and where it was left.
type Ancestor struct {
	Timeline int64 `json:"timeline"`
	End      LSN   `json:"end"`
}

// LSN is a position in the log.
type LSN uint64

// ParseLSN reads a position as PostgreSQL writes it: 0/5000148.
func ParseLSN(text string) (LSN, error) {
	high, low, ok := strings.Cut(text, "/")
	h, err := strconv.ParseUint(high, 16, 32)
	l, lerr := strconv.ParseUint(low, 16, 32)
	if err := errors.Join(err, lerr); err != nil || !ok {
		return 0, fmt.Errorf("cannot read position %q in the log", text)
	}
	return LSN(h<<32 | l), nil
}

// String as PostgreSQL writes it.
func (l LSN) String() string { return fmt.Sprintf("%X/%X", uint64(l)>>32, uint64(l)&(1<<32-1)) }

// MarshalText implements encoding.TextMarshaler.
func (l LSN) MarshalText() ([]byte, error) { return []byte(l.String()), nil }

// UnmarshalText implements encoding.TextUnmarshaler.
func (l *LSN) UnmarshalText(text []byte) error {
	v, err := ParseLSN(string(text))
	*l = v
	return err
}

// Held says why a server is not started.
type Held struct {
	// Message says what it waits for.
	Message string `json:"message"`

	// Undecided says that it waits for ever unless it is decided which volume
	// leads.
	Undecided bool `json:"undecided,omitempty"`
}
