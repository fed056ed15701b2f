package binlog

import (
	"cmp"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"time"

	"github.com/storeplane/storeplane/internal/gtid"
)

// A Transaction is where a transaction is in a file.
type Transaction struct {
	// ID is its identifier, a set of one.
	ID gtid.Set

	// Committed is when the server committed it that has executed it first.
	Committed time.Time

	// Start and End are the offsets of its first byte and of the first one after it.
	Start, End int64
}

// Size returns the size of the transaction in bytes.
func (t Transaction) Size() int64 { return t.End - t.Start }

// ErrIncomplete is the error for a file that ends before what is read does. The file may grow.
var ErrIncomplete = errors.New("the binary log ends before its last transaction does")

// magic is what a file begins with.
const magic = "\xfebin"

// Kinds of events.
const (
	kindStop         = 3
	kindRotate       = 4
	kindFormat       = 15
	kindIncident     = 26
	kindHeartbeat    = 27
	kindGTID         = 33
	kindAnonymous    = 34
	kindPrevious     = 35
	kindHeartbeat2   = 41
	kindTaggedGTID   = 42
	headerSize       = 19
	checksumSize     = 4
	flagIgnorable    = 0x80
	checksumCRC32    = 1
	most             = 1<<30 + 1<<20 // the largest packet of a server, and what is around it
	formatAlgorithm  = checksumSize + 1
	smallestOfFormat = headerSize + formatAlgorithm
)

// A Log reads a file from its beginning, which may grow meanwhile.
type Log struct {
	file io.ReaderAt

	// head is the size of what precedes the transactions: the format of the file, and which transactions
	// earlier files have. at is the offset of what is read next.
	head, at int64

	// summed is true if each event has a checksum.
	summed bool
}

// Open reads the head of a file of a size. The error is ErrIncomplete if there is less than that.
func Open(file io.ReaderAt, size int64) (*Log, error) {
	l := &Log{file: file}
	first, err := l.read(0, int64(len(magic)), size)
	if err != nil {
		return nil, err
	}
	if string(first) != magic {
		return nil, errors.New("cannot read the binary log: it is none")
	}
	l.at = int64(len(magic))
	for _, want := range []byte{kindFormat, kindPrevious} {
		e, err := l.event(l.at, size)
		if err != nil {
			return nil, err
		}
		if e.kind != want {
			return nil, fmt.Errorf("cannot read the binary log: event %d at %d should be %d", e.kind, l.at, want)
		}
		if want == kindFormat {
			content, err := l.read(l.at, e.size, size)
			if err != nil {
				return nil, err
			}
			if e.size < smallestOfFormat {
				return nil, errors.New("cannot read the binary log: its first event is too short")
			}
			// The algorithm of the checksums precedes the event's own, which it always has.
			l.summed = true
			if err := l.check(l.at, e, size); err != nil {
				return nil, err
			}
			l.summed = content[e.size-formatAlgorithm] == checksumCRC32
		} else if err := l.check(l.at, e, size); err != nil {
			return nil, err
		}
		l.at += e.size
	}
	l.head = l.at
	return l, nil
}

// OpenAt opens a file that was read up to an offset before, or 0 for none.
func OpenAt(file io.ReaderAt, size, offset int64) (*Log, error) {
	l, err := Open(file, size)
	if err == nil {
		l.at = max(l.at, offset)
	}
	return l, err
}

// Head is the size of what precedes the transactions: with it, any of them are a file of their own.
func (l *Log) Head() int64 { return l.head }

// Offset is where the next transaction is looked for.
func (l *Log) Offset() int64 { return l.at }

// Next returns the next transaction of a file, which has this size by now. The error is io.EOF after the last
// one of a file that its server has closed, and ErrIncomplete where the file may grow: with the transaction that is not
// whole, if its first event is.
func (l *Log) Next(size int64) (Transaction, error) {
	for {
		e, err := l.event(l.at, size)
		if err != nil {
			return Transaction{}, err
		}
		switch {
		case e.kind == kindGTID, e.kind == kindTaggedGTID:
			return l.transaction(e, size)
		case e.kind == kindStop, e.kind == kindRotate:
			return Transaction{}, io.EOF
		case e.kind == kindHeartbeat, e.kind == kindHeartbeat2, e.flags&flagIgnorable != 0:
			l.at += e.size
		case e.kind == kindAnonymous:
			return Transaction{}, fmt.Errorf("cannot read the binary log: the transaction at %d has no GTID", l.at)
		case e.kind == kindIncident:
			return Transaction{}, fmt.Errorf("cannot read the binary log: the server has lost transactions before %d", l.at)
		default:
			return Transaction{}, fmt.Errorf("cannot read the binary log: event %d at %d is in no transaction", e.kind, l.at)
		}
	}
}

// transaction reads the transaction that begins with an event.
func (l *Log) transaction(e event, size int64) (Transaction, error) {
	content, err := l.read(l.at, e.size, size)
	if err != nil {
		return Transaction{}, err
	}
	if l.summed {
		content = content[:len(content)-checksumSize]
	}
	var begin beginning
	if e.kind == kindTaggedGTID {
		begin, err = readTagged(content[headerSize:])
	} else {
		begin, err = readUntagged(content[headerSize:])
	}
	if err != nil {
		return Transaction{}, fmt.Errorf("cannot read the binary log: the transaction at %d: %w", l.at, err)
	}
	id, err := gtid.Parse(begin.id)
	if err != nil {
		return Transaction{}, fmt.Errorf("cannot read the binary log: the transaction at %d: %w", l.at, err)
	}
	t := Transaction{ID: id, Committed: time.UnixMicro(begin.committed).UTC(), Start: l.at, End: l.at + begin.length}
	if begin.length < e.size {
		return Transaction{}, fmt.Errorf("cannot read the binary log: the transaction at %d has %d bytes, less than its first event", l.at, begin.length)
	}
	if t.End > size {
		return t, cmp.Or(l.check(l.at, e, size), ErrIncomplete)
	}
	at := t.Start
	for at < t.End {
		e, err := l.event(at, t.End)
		if err == nil {
			err = l.check(at, e, t.End)
		}
		if errors.Is(err, ErrIncomplete) {
			err = fmt.Errorf("cannot read the binary log: the event at %d is longer than its transaction", at)
		}
		if err != nil {
			return Transaction{}, err
		}
		at += e.size
	}
	l.at = t.End
	return t, nil
}

// An event is the header of one.
type event struct {
	kind  byte
	size  int64
	flags uint16
}

// event reads the header of an event that is in the file whole.
func (l *Log) event(at, size int64) (event, error) {
	header, err := l.read(at, headerSize, size)
	if err != nil {
		return event{}, err
	}
	e := event{kind: header[4], size: int64(binary.LittleEndian.Uint32(header[9:])), flags: binary.LittleEndian.Uint16(header[17:])}
	if e.size < headerSize || l.summed && e.size < headerSize+checksumSize || e.size > most {
		return event{}, fmt.Errorf("cannot read the binary log: the event at %d has %d bytes", at, e.size)
	}
	if at+e.size > size {
		return event{}, ErrIncomplete
	}
	return e, nil
}

// check compares an event with its checksum, if it has one.
func (l *Log) check(at int64, e event, size int64) error {
	if !l.summed {
		return nil
	}
	sum := crc32.NewIEEE()
	if _, err := io.Copy(sum, io.NewSectionReader(l.file, at, e.size-checksumSize)); err != nil {
		return fmt.Errorf("cannot read the binary log: %w", err)
	}
	want, err := l.read(at+e.size-checksumSize, checksumSize, size)
	if err != nil {
		return err
	}
	if sum.Sum32() != binary.LittleEndian.Uint32(want) {
		return fmt.Errorf("cannot read the binary log: the event at %d is not what was written", at)
	}
	return nil
}

// read reads a part of a file that has a size.
func (l *Log) read(at, n, size int64) ([]byte, error) {
	if at+n > size {
		return nil, ErrIncomplete
	}
	out := make([]byte, n)
	if _, err := l.file.ReadAt(out, at); err != nil {
		return nil, fmt.Errorf("cannot read the binary log: %w", err)
	}
	return out, nil
}
