package instance

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
)

// MaxSize is the largest number of servers of a cluster, and of volumes.
const MaxSize = 10

// DataState is the kind of data that a data directory holds.
type DataState string

// The states of data.
const (
	DataEmpty DataState = "empty"

	// DataCopy is a copy of another server's data that was never finished.
	DataCopy DataState = "copy"

	// DataWhole is a database that PostgreSQL can start with.
	DataWhole DataState = "whole"

	// DataUnreadable is anything else.
	DataUnreadable DataState = "unreadable"
)

// Data describes what a volume holds, as read from the files that PostgreSQL wrote.
type Data struct {
	// Claim is the UID of the volume claim. Another volume claim of the same name may hold
	// other data.
	Claim string `json:"claim"`

	State DataState `json:"state"`

	// System is the system identifier of the database.
	System string `json:"system,omitempty"`

	// Timeline and Position are those of the last record of the WAL.
	Timeline int64 `json:"timeline,omitempty"`
	Position LSN   `json:"position,omitempty"`

	// History lists the ancestors of the timeline, oldest first.
	History []Ancestor `json:"history,omitempty"`

	// Begun is true if the timeline was begun for this server to lead on and the server never
	// led on it. That its number is the highest then says nothing about the age of the data.
	Begun bool `json:"begun,omitempty"`

	// Written is the time of the last checkpoint, as PostgreSQL prints it. It decides nothing,
	// since clocks differ.
	Written string `json:"written,omitempty"`

	// Problem is why the data is unreadable.
	Problem string `json:"problem,omitempty"`
}

// Ancestor is a timeline from which another one branched off, and the position at which it
// did.
type Ancestor struct {
	Timeline int64 `json:"timeline"`
	End      LSN   `json:"end"`
}

// LSN is a position in the WAL, in bytes.
type LSN uint64

// ParseLSN parses a position as PostgreSQL prints it, such as 0/5000148.
func ParseLSN(text string) (LSN, error) {
	high, low, ok := strings.Cut(text, "/")
	h, err := strconv.ParseUint(high, 16, 32)
	l, lerr := strconv.ParseUint(low, 16, 32)
	if err := errors.Join(err, lerr); err != nil || !ok {
		return 0, fmt.Errorf("cannot read position %q in the log", text)
	}
	return LSN(h<<32 | l), nil
}

// String returns the position as PostgreSQL prints it.
func (l LSN) String() string { return fmt.Sprintf("%X/%X", uint64(l)>>32, uint64(l)&(1<<32-1)) }

// MarshalText implements encoding.TextMarshaler.
func (l LSN) MarshalText() ([]byte, error) { return []byte(l.String()), nil }

// UnmarshalText implements encoding.TextUnmarshaler.
func (l *LSN) UnmarshalText(text []byte) error {
	v, err := ParseLSN(string(text))
	*l = v
	return err
}

// Held describes why a server is not started.
type Held struct {
	// Message describes what the server waits for.
	Message string `json:"message"`

	// Undecided is true if the server waits until a user decides which volume leads.
	Undecided bool `json:"undecided,omitempty"`
}
