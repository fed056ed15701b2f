package mongodb

import (
	"encoding/binary"
	"fmt"
	"strings"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/storeplane/storeplane/internal/backup"
)

// A counter counts the documents of each collection in an archive of mongodump
// that is written to it.
//
// An archive is a magic number; documents that describe it and its collections; a
// terminator; then blocks, each of a header that names a collection, documents of
// it, and a terminator. A collection's last block says so in its header. Documents
// are BSON: their length comes first, and but for headers that is all we read.
type counter struct {
	collections map[string]int64
	ended       map[string]bool

	part part
	buf  []byte // what is read whole: a length, or a header
	need int    // how long buf is to become
	skip int64  // of the current document

	collection string // whose documents follow
	wrong      string

	// described is told what describes a collection, or nil.
	described func(collection, metadata string)
}

// part of an archive that comes next.
type part int

const (
	magic    part = iota
	prelude       // the archive's own header, and what describes collections
	header        // of a block
	document      // of a collection
)

const (
	archiveMagic = 0x8199e26d
	terminator   = 0xffffffff

	// maxHeader is far more than names of a database and a collection take, and
	// what describes a collection with many indexes.
	maxHeader = 16 << 20
)

func newCounter() *counter {
	return &counter{collections: map[string]int64{}, ended: map[string]bool{}, need: 4}
}

func (c *counter) Write(p []byte) (int, error) {
	n := len(p)
	for len(p) > 0 && c.wrong == "" {
		if c.skip > 0 {
			k := min(c.skip, int64(len(p)))
			c.skip -= k
			p = p[k:]
			continue
		}
		k := min(c.need-len(c.buf), len(p))
		c.buf = append(c.buf, p[:k]...)
		p = p[k:]
		if len(c.buf) == c.need {
			c.next()
		}
	}
	return n, nil
}

// next length or header is in the buffer.
func (c *counter) next() {
	length := binary.LittleEndian.Uint32(c.buf)
	whole := len(c.buf) > 4
	switch {
	case c.part == magic:
		if length != archiveMagic {
			c.fail("it does not begin like one")
		}
		c.expect(prelude)
	case !whole && length == terminator:
		// A block follows whatever ended; an archive may end here as well.
		c.expect(header)
	case !whole && length < 5:
		c.fail("a document has no length")
	case c.part == document:
		c.collections[c.collection]++
		c.skip = int64(length) - 4
		c.expect(document)
	case !whole && length > maxHeader:
		c.fail("a header is too long")
	case !whole:
		c.need = int(length)
	default:
		c.header(bson.Raw(c.buf))
	}
}

func (c *counter) expect(p part) {
	c.part, c.buf, c.need = p, c.buf[:0], 4
}

func (c *counter) fail(what string) {
	if c.wrong == "" {
		c.wrong = what
	}
}

// blockHeader of a collection, or what describes one in the prelude.
type blockHeader struct {
	Collection string `bson:"collection"`
	Type       string `bson:"type"`
	Metadata   string `bson:"metadata"`
	EOF        bool   `bson:"EOF"`
}

func (c *counter) header(raw bson.Raw) {
	var h blockHeader
	if err := bson.Unmarshal(raw, &h); err != nil {
		c.fail(fmt.Sprintf("a header is none: %v", err))
		return
	}
	if c.part == prelude {
		if h.Collection != "" && (h.Type == "" || h.Type == "collection") {
			c.collections[h.Collection] += 0
			if c.described != nil {
				c.described(h.Collection, h.Metadata)
			}
		}
		c.expect(prelude)
		return
	}
	c.collection = h.Collection
	c.ended[h.Collection] = h.EOF
	c.expect(document)
}

// result of an archive that has ended.
func (c *counter) result() (map[string]int64, error) {
	if c.wrong == "" && (c.part != header || len(c.buf) > 0 || c.skip > 0) {
		c.fail("it ends in the middle")
	}
	out := map[string]int64{}
	for name, n := range c.collections {
		if ended, begun := c.ended[name]; begun && !ended || n > 0 && !ended {
			c.fail("collection " + name + " does not end")
		}
		// The server's own, like the buckets of a time series.
		if !strings.HasPrefix(name, "system.") {
			out[name] = n
		}
	}
	if c.wrong != "" {
		return nil, backup.Errorf(backup.ToolFailed, "the dump is not as mongodump writes them: %s", c.wrong)
	}
	return out, nil
}
