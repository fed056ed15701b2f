package binlog

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math/bits"
	"slices"

	"github.com/google/uuid"
)

// A beginning is what the first event of a transaction is read for.
type beginning struct {
	// id is the identifier as MySQL prints it.
	id string

	// committed is when it was committed first, in microseconds since 1970, and length its size in bytes, with this event.
	committed, length int64
}

var errShort = errors.New("its first event is too short")

// readUntagged reads the body of a GTID_LOG_EVENT: flags, UUID and number, the type and the two numbers of the
// logical clock; then the times at which it was committed here and first, if those differ, and its length
// (https://dev.mysql.com/doc/dev/mysql-server/latest/classmysql_1_1binlog_1_1event_1_1Gtid__event.html).
func readUntagged(body []byte) (beginning, error) {
	const number, times, timeSize, two = 17, 42, 7, 1 << 55
	if len(body) < times+timeSize {
		return beginning{}, errShort
	}
	b := beginning{committed: int64(little(body[times : times+timeSize]))} //nolint:gosec // 7 bytes
	rest := body[times+timeSize:]
	if b.committed&two != 0 {
		if len(rest) < timeSize {
			return beginning{}, errShort
		}
		b.committed, rest = int64(little(rest[:timeSize])), rest[timeSize:] //nolint:gosec // 7 bytes
	}
	var ok bool
	if b.length, ok = packed(rest); !ok {
		return beginning{}, errShort
	}
	b.id = fmt.Sprintf("%s:%d", uuid.UUID(body[1:number]), binary.LittleEndian.Uint64(body[number:]))
	return b, nil
}

// packed reads a number that is stored with its length
// (https://dev.mysql.com/doc/dev/mysql-server/latest/page_protocol_basic_dt_integers.html).
func packed(b []byte) (int64, bool) {
	if len(b) == 0 {
		return 0, false
	}
	size, ok := map[byte]int{252: 2, 253: 3, 254: 8}[b[0]]
	switch {
	case b[0] < 251:
		return int64(b[0]), true
	case !ok || len(b) < 1+size:
		return 0, false
	}
	n := little(b[1 : 1+size])
	return int64(n), n <= most*most //nolint:gosec // it is checked beside
}

// little reads up to 8 bytes, of which the first is the lowest.
func little(b []byte) uint64 {
	var n uint64
	for _, digit := range slices.Backward(b) {
		n = n<<8 | uint64(digit)
	}
	return n
}

// Fields of a tagged identifier that are read here.
const (
	fieldUUID       = 1
	fieldNumber     = 2
	fieldTag        = 3
	fieldCommitted  = 6
	fieldFirst      = 7
	fieldLength     = 8
	fieldsOfNumbers = 11
)

// readTagged reads the body of a GTID_TAGGED_LOG_EVENT, which is a message of MySQL's library of serialization: its
// version, its size, the last field that must be known, and fields with their numbers in front of them
// (https://dev.mysql.com/doc/dev/mysql-server/latest/PageLibsMysqlSerialization.html).
func readTagged(body []byte) (beginning, error) {
	r := varied{b: body}
	if version := r.unsigned(); version != 1 {
		return beginning{}, fmt.Errorf("its first event has version %d, of which this program knows nothing", version)
	}
	_, _ = r.unsigned(), r.unsigned()
	b := beginning{}
	var id uuid.UUID
	var number int64
	var tag string
	for len(r.b) > 0 && !r.short {
		switch field := r.unsigned(); field {
		case fieldUUID:
			for i := range id {
				id[i] = byte(r.unsigned()) //nolint:gosec // each is one byte
			}
		case fieldNumber:
			number = r.signed()
		case fieldTag:
			tag = r.text()
		case fieldCommitted, fieldFirst:
			// The later field is there only if the times differ.
			b.committed = int64(r.unsigned()) //nolint:gosec // microseconds
		case fieldLength:
			b.length = int64(r.unsigned()) //nolint:gosec // it is compared with the size of the file
		default:
			if field > fieldsOfNumbers {
				// What follows is of a newer server, and not needed.
				r.b = nil
				break
			}
			_ = r.unsigned()
		}
	}
	if r.short || b.length <= 0 {
		return beginning{}, errShort
	}
	b.id = fmt.Sprintf("%s:%d", id, number)
	if tag != "" {
		b.id = fmt.Sprintf("%s:%s:%d", id, tag, number)
	}
	return b, nil
}

// A varied reads numbers of different sizes.
type varied struct {
	b     []byte
	short bool
}

// unsigned reads a number: as many bytes follow the first as this has ones at its end.
func (v *varied) unsigned() uint64 {
	if len(v.b) == 0 {
		v.short = true
		return 0
	}
	more := bits.TrailingZeros8(^v.b[0])
	if len(v.b) <= more {
		v.short, v.b = true, nil
		return 0
	}
	var n uint64
	if more < 8 {
		n = uint64(v.b[0]) >> (more + 1)
	}
	high := little(v.b[1 : 1+more])
	if more < 7 {
		high <<= 7 - more
	}
	v.b = v.b[1+more:]
	return n | high
}

// signed reads a number whose lowest bit is its sign.
func (v *varied) signed() int64 {
	n := v.unsigned()
	if n&1 != 0 {
		return -int64(n>>1) - 1
	}
	return int64(n >> 1)
}

// text reads a text that its length precedes.
func (v *varied) text() string {
	n := v.unsigned()
	if n > uint64(len(v.b)) {
		v.short, v.b = true, nil
		return ""
	}
	out := string(v.b[:n])
	v.b = v.b[n:]
	return out
}
