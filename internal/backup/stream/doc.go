// Package stream carries a dump into a store and back: compressed, encrypted, cut
// into objects, each with its size and digest.
//
// It holds a few parts of an object in memory and nothing on disk, however large a
// dump is. What it reads it trusts only once it has seen the whole object.
package stream
