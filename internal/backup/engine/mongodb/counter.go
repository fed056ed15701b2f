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
// An archive is a magic number; documents that describe it and its collections; a terminator;
// then blocks. Each block has a header that names a collection, documents of it, and a
// terminator. The header of a collection's last block marks its end. Documents are BSON: their
// length comes first, and of all but headers only the length is read.
type counter struct {
	collections map[string]int64
	ended       map[string]bool

	part part
	buf  []byte // what is read whole: a length or a header
	need int    // the length that buf is to have
	skip int64  // bytes left of the current document

	collection string // whose documents follow
	wrong      string

	// described is called with the metadata of each collection, or is nil.
	described func(collection, metadata string)
}

// A part of an archive is what is read next.
type part int

const (
	magic    part = iota
	prelude       // the archive's own header, and the descriptions of collections
	header        // of a block
	document      // of a collection
)

const (
	archiveMagic = 0x8199e26d
	terminator   = 0xffffffff

	// maxHeader is far more than the names of a database and a collection take, or the
	// description of a collection with many indexes.
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

// next evaluates the length or header in the buffer.
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
		// A block follows each terminator, or the archive ends.
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

// A blockHeader is the header of a block, or the description of a collection in the prelude.
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

// result returns the documents of each collection, or an error if the archive is incomplete or
// not as expected.
func (c *counter) result() (map[string]int64, error) {
	if c.wrong == "" && (c.part != header || len(c.buf) > 0 || c.skip > 0) {
		c.fail("it ends in the middle")
	}
	out := map[string]int64{}
	for name, n := range c.collections {
		if ended, begun := c.ended[name]; begun && !ended || n > 0 && !ended {
			c.fail("collection " + name + " does not end")
		}
		// Collections of the server itself, like the buckets of a time series, are left out.
		if !strings.HasPrefix(name, "system.") {
			out[name] = n
		}
	}
	if c.wrong != "" {
		return nil, backup.Errorf(backup.ToolFailed, "the dump is not as mongodump writes them: %s", c.wrong)
	}
	return out, nil
}
