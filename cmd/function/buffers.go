package main

import (
	"fmt"

	"google.golang.org/grpc/experimental"
	"google.golang.org/grpc/mem"
)

// fitBuffers makes gRPC allocate buffers that fit a message. Its default pool has buffers of a few
// sizes, of which the one after 32 KiB is 1 MiB
// (https://github.com/grpc/grpc-go/blob/v1.83.2/mem/buffer_pool.go): each request and each response
// of a claim with many resources would take one, twenty times what it needs. The pool is that of
// the whole process, and is set before there is a server.
func fitBuffers() error {
	pool, err := mem.NewBinaryTieredBufferPool(8, 12, 14, 15, 16, 17, 18, 19, 20)
	if err != nil {
		return fmt.Errorf("cannot make buffers for messages: %w", err)
	}
	experimental.SetDefaultBufferPool(pool)
	return nil
}
