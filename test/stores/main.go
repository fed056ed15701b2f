// Command stores builds the named servers and tools for tests, unless they are cached,
// and prints the path of each as a line:
//
//	versitygw        an S3 server
//	fake-gcs-server  a server of Google's Cloud Storage
//	azurite          a server of Azure's Blob Storage, which needs node
//	ferretdb         a server that speaks MongoDB's protocol
//	mongodump        a tool of MongoDB, as is mongorestore
//	traefik          an ingress controller
//	data             a command that fills databases and compares them, in data/
//
// Usage, from the repository's root: go -C test/stores run . NAME…
//
// The first three replace cloud services, the next three are in the image
// backup:mongodb, and traefik replaces the ingress controller that a cluster has.
package main

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"syscall"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx, os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "stores:", err)
		os.Exit(1) //nolint:gocritic // The deferred stop is not needed.
	}
}

func run(ctx context.Context, names []string) error {
	cache, err := os.UserCacheDir()
	if err != nil {
		return fmt.Errorf("cannot find the cache folder, set HOME or XDG_CACHE_HOME: %w", err)
	}
	here, err := os.Getwd()
	if err != nil {
		return fmt.Errorf("cannot find the working folder: %w", err)
	}
	b := builder{stores: here, cache: filepath.Join(cache, "storeplane", "stores")}
	for _, name := range names {
		path, err := b.ensure(ctx, name)
		if err != nil {
			return err
		}
		fmt.Println(path)
	}
	return nil
}
