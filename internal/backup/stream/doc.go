// Package stream writes a dump into a store and reads it back: compressed, encrypted and cut into
// objects, each with its size and digest.
//
// It holds a few parts of an object in memory and nothing on disk, however large a dump is. It
// trusts what it reads only after it has read the whole object.
package stream
