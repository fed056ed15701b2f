// Command registry is the test cluster's image registry. It is the one of go-containerregistry,
// which crane serves too, and keeps manifests on disk in addition. The original keeps only blobs
// on disk and manifests in memory, and so loses every image at a restart.
package main

import (
	"context"
	"errors"
	"flag"
	"io"
	"log"
	"net/http"
	"os"
	"os/signal"
	"path/filepath"
	"syscall"
	"time"

	"github.com/google/go-containerregistry/pkg/registry"
)

func main() {
	address := flag.String("address", "127.0.0.1:5000", "Address to listen on.")
	dir := flag.String("disk", "", "Folder to keep images in.")
	flag.Parse()

	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := serve(ctx, *address, *dir); err != nil {
		log.Fatal(err)
	}
}

func serve(ctx context.Context, address, dir string) error {
	quiet := registry.Logger(log.New(io.Discard, "", 0))
	images := registry.New(registry.WithBlobHandler(registry.NewDiskBlobHandler(filepath.Join(dir, "blobs"))), quiet)
	handler, err := newKeeper(images, filepath.Join(dir, "manifests"))
	if err != nil {
		return err
	}
	server := &http.Server{Addr: address, Handler: handler, ReadHeaderTimeout: 10 * time.Second}
	go func() {
		<-ctx.Done()
		_ = server.Close()
	}()
	if err := server.ListenAndServe(); !errors.Is(err, http.ErrServerClosed) {
		return err
	}
	return nil
}
