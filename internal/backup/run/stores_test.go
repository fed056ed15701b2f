package run

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/container"

	backupv1 "github.com/storeplane/storeplane/apis/backup/v1"
)

// storeKey is the key of all stores for tests. Azurite accepts only this one.
const storeKey = "Eby8vdM02xNOcqFlqUwJPLlmEtlCDXJ1OUzFT50uSRZ6IFsuFq2UVErCz4I6tq/K1SZFPTOtr/KBHBeksoGMGw=="

// A destination is a store for tests.
type destination struct {
	backupv1.Destination

	credentials, volume string

	// files is the folder in which a server keeps the objects as files, or empty.
	files string

	// up and down start and kill the server, if there is one.
	up, down func()
}

// destinations holds the functions that start a store, by type.
var destinations = map[backupv1.StoreType]func(*testing.T) *destination{
	backupv1.S3:     startS3,
	backupv1.GCS:    startGCS,
	backupv1.Azure:  startAzure,
	backupv1.Volume: newVolume,
}

func newVolume(t *testing.T) *destination {
	t.Helper()
	dir := t.TempDir()
	return &destination{Destination: backupv1.Destination{Type: backupv1.Volume, Bucket: "backups", Prefix: "team/a"}, volume: dir, files: dir}
}

// startS3 starts versitygw.
func startS3(t *testing.T) *destination {
	t.Helper()
	path, port, dir := tool(t, "versitygw"), freePort(t), t.TempDir()
	must(t, os.Mkdir(filepath.Join(dir, "backups"), 0o755))
	// versitygw keeps the data about parts in files: not every file system has extended attributes.
	beside := t.TempDir()
	d := &destination{credentials: t.TempDir(), files: filepath.Join(dir, "backups")}
	d.Destination = backupv1.Destination{Type: backupv1.S3, Bucket: "backups", Endpoint: fmt.Sprintf("http://127.0.0.1:%d", port), Region: "us-east-1"}
	write(t, d.credentials, map[string]string{"AWS_ACCESS_KEY_ID": "shop", "AWS_SECRET_ACCESS_KEY": storeKey})
	server := daemon(t)
	server.User = nil // its folder is not accessible to other users
	d.up = func() {
		must(t, server.Start(t.Context(), discard, accepts(port), path,
			"--access", "shop", "--secret", storeKey, "--port", fmt.Sprintf("127.0.0.1:%d", port), "--quiet", "posix", "--sidecar", beside, dir))
	}
	d.down = server.Kill
	d.up()
	return d
}

// startGCS starts fake-gcs-server.
func startGCS(t *testing.T) *destination {
	t.Helper()
	path, port, dir := tool(t, "fake-gcs-server"), freePort(t), t.TempDir()
	must(t, os.Mkdir(filepath.Join(dir, "backups"), 0o755))
	d := &destination{credentials: t.TempDir(), files: filepath.Join(dir, "backups")}
	d.Destination = backupv1.Destination{Type: backupv1.GCS, Bucket: "backups", Prefix: "p", Endpoint: fmt.Sprintf("http://127.0.0.1:%d", port)}
	server := daemon(t)
	server.User = nil // its folder is not accessible to other users
	d.up = func() {
		host := fmt.Sprintf("127.0.0.1:%d", port)
		must(t, server.Start(t.Context(), discard, accepts(port), path, "-scheme", "http", "-host", "127.0.0.1", "-port", strconv.Itoa(port),
			"-backend", "filesystem", "-filesystem-root", dir, "-public-host", host, "-external-url", "http://"+host, "-log-level", "error"))
	}
	d.down = server.Kill
	d.up()
	return d
}

// startAzure starts Azurite.
func startAzure(t *testing.T) *destination {
	t.Helper()
	need(t, "node")
	path, port := tool(t, "azurite"), freePort(t)
	d := &destination{credentials: t.TempDir()}
	const account = "devstoreaccount1"
	d.Destination = backupv1.Destination{Type: backupv1.Azure, Bucket: "backups", Prefix: "a/b", Endpoint: fmt.Sprintf("http://127.0.0.1:%d/%s", port, account)}
	write(t, d.credentials, map[string]string{"AZURE_STORAGE_ACCOUNT": account, "AZURE_STORAGE_KEY": storeKey})
	server := daemon(t)
	server.User = nil // its folder is not accessible to other users
	d.up = func() {
		must(t, server.Start(t.Context(), discard, accepts(port), path, "--blobHost", "127.0.0.1", "--blobPort", strconv.Itoa(port),
			"--location", server.Dir, "--silent", "--skipApiVersionCheck", "--disableTelemetry"))
	}
	d.down = server.Kill
	d.up()
	c, err := azblob.NewSharedKeyCredential(account, storeKey)
	must(t, err)
	client, err := container.NewClientWithSharedKeyCredential(d.Endpoint+"/"+d.Bucket, c, nil)
	must(t, err)
	_, err = client.Create(t.Context(), nil)
	must(t, err)
	return d
}

// objects returns the names in the bucket of a store that keeps objects as files.
func (d *destination) objects(t *testing.T) []string {
	t.Helper()
	var out []string
	must(t, filepath.WalkDir(d.files, func(path string, e os.DirEntry, err error) error {
		if err == nil && !e.IsDir() {
			out = append(out, strings.TrimPrefix(path, d.files+"/"))
		}
		return err
	}))
	return out
}
