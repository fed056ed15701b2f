package main

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"math/bits"
)

// sum is a checksum of rows in any order: the sum of the digests of all rows. Two tables with the
// same number of rows and the same sum contain the same rows.
type sum struct {
	rows  int64
	total [4]uint64
}

// add adds a row of values, in which nil stands for NULL.
func (s *sum) add(values ...[]byte) {
	h := sha256.New()
	length := make([]byte, 8)
	for _, v := range values {
		// Lengths separate the values, and distinguish NULL from an empty value.
		n := int64(len(v))
		if v == nil {
			n = -1
		}
		binary.BigEndian.PutUint64(length, uint64(n)) //nolint:gosec // -1 becomes the largest value.
		h.Write(length)
		h.Write(v)
	}
	digest := h.Sum(nil)
	carry := uint64(0)
	for i := range s.total {
		s.total[i], carry = bits.Add64(s.total[i], binary.BigEndian.Uint64(digest[8*i:]), carry)
	}
	s.rows++
}

// String returns the first half of the total in hexadecimal, without the number of rows.
func (s *sum) String() string {
	b := make([]byte, 0, 32)
	for _, n := range s.total {
		b = binary.BigEndian.AppendUint64(b, n)
	}
	return hex.EncodeToString(b[:16])
}
