package main

import (
	"testing"

	"google.golang.org/grpc/mem"
)

// TestFitBuffers: no message of 16 KiB to 1 MiB takes a buffer of more than twice its size.
func TestFitBuffers(t *testing.T) {
	if err := fitBuffers(); err != nil {
		t.Fatal(err)
	}
	for size := 16 << 10; size <= 1<<20; size += 4<<10 + 1 {
		b := mem.DefaultBufferPool().Get(size)
		if got := cap(*b); got > 2*size {
			t.Errorf("a message of %d bytes takes %d", size, got)
		}
		mem.DefaultBufferPool().Put(b)
	}
}
