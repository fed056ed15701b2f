package run

import (
	"net/http"
	"path"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/container"
	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/credentials"
	"github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/google/go-cmp/cmp"
	"gocloud.dev/blob"
	"gocloud.dev/blob/azureblob"
	"gocloud.dev/blob/fileblob"
	"gocloud.dev/blob/gcsblob"
	"gocloud.dev/blob/s3blob"
	"gocloud.dev/gcp"
	"google.golang.org/api/option"

	backupv1 "github.com/storeplane/storeplane/apis/backup/v1"
	"github.com/storeplane/storeplane/internal/backup"
	"github.com/storeplane/storeplane/internal/backup/store"
)

// s3Client returns a client for a destination of type s3.
func (d *destination) s3Client() *s3.Client {
	return s3.New(s3.Options{
		BaseEndpoint: &d.Endpoint, Region: d.Region, UsePathStyle: true,
		Credentials:                credentials.NewStaticCredentialsProvider("shop", storeKey, ""),
		RequestChecksumCalculation: aws.RequestChecksumCalculationWhenRequired,
	})
}

// bucket opens the bucket of a destination as another program would.
func (d *destination) bucket(t *testing.T) *blob.Bucket {
	t.Helper()
	var b *blob.Bucket
	var err error
	switch d.Type {
	case backupv1.S3:
		b, err = s3blob.OpenBucket(t.Context(), d.s3Client(), d.Bucket, nil)
	case backupv1.GCS:
		b, err = gcsblob.OpenBucket(t.Context(), &gcp.HTTPClient{Client: *http.DefaultClient}, d.Bucket,
			&gcsblob.Options{ClientOptions: []option.ClientOption{option.WithEndpoint(d.Endpoint + "/storage/v1/")}})
	case backupv1.Azure:
		key, e := azblob.NewSharedKeyCredential("devstoreaccount1", storeKey)
		must(t, e)
		client, e := container.NewClientWithSharedKeyCredential(d.Endpoint+"/"+d.Bucket, key, nil)
		must(t, e)
		b, err = azureblob.OpenBucket(t.Context(), client, nil)
	case backupv1.Volume:
		b, err = fileblob.OpenBucket(d.volume, &fileblob.Options{NoTempDir: true, Metadata: fileblob.MetadataDontWrite})
	}
	must(t, err)
	t.Cleanup(func() { _ = b.Close() })
	return b
}

// keys returns the keys below a folder of a bucket, without the folder.
func keys(t *testing.T, b *blob.Bucket, folder string) []string {
	t.Helper()
	var out []string
	for it := b.List(&blob.ListOptions{Prefix: folder + "/"}); ; {
		o, err := it.Next(t.Context())
		if err != nil {
			break
		}
		out = append(out, strings.TrimPrefix(o.Key, folder+"/"))
	}
	slices.Sort(out)
	return out
}

// folder returns the folder of the fixture's name.
func (f *fixture) folder() string {
	return backup.Folder(f.task.Destination.Prefix, f.task.Namespace, f.task.Name)
}

// moved moves a backup to where the first layout had it: the folder of the name itself.
func (f *fixture) moved(b *blob.Bucket, id string) {
	f.t.Helper()
	current := backup.Logical(f.folder())
	for _, name := range keys(f.t, b, path.Join(current, id)) {
		from := path.Join(current, id, name)
		must(f.t, b.Copy(f.t.Context(), path.Join(f.folder(), id, name), from, nil))
		must(f.t, b.Delete(f.t.Context(), from))
	}
}

// repository holds the keys of a DatabaseCluster of the same name, in the same folder.
var repository = []string{
	"archive/7412345678901234567/17-1/0000000100000000/000000010000000000000001-da39a3ee.zst",
	"archive/7412345678901234567/archive.info",
	"backup/7412345678901234567/20260101-020000F/backup.manifest",
	"backup/7412345678901234567/backup.info",
}

// TestMethodsShareNoFolder: a Backup may have the name of a DatabaseCluster, whose repository lies
// below that name too. Whatever a logical backup removes, in the old and the new layout, the
// repository stays unchanged.
func TestMethodsShareNoFolder(t *testing.T) {
	s := startPostgreSQL(t)
	createDatabase(t, s, "shop")
	s.data(t, "shop", "load", "--rows=50", "--bulk=1")
	for kind, start := range destinations {
		t.Run(string(kind), func(t *testing.T) {
			if kind != backupv1.Volume {
				long(t)
			}
			d := start(t)
			f := newFixture(t, s, "shop", d)
			b := d.bucket(t)
			for _, name := range repository {
				must(t, b.WriteAll(t.Context(), path.Join(f.folder(), name), []byte("pgBackRest's"), nil))
			}
			if kind == backupv1.S3 {
				uploadsStay(t, d, f)
			}
			stays := func(when string) {
				t.Helper()
				have := slices.DeleteFunc(keys(t, b, f.folder()), func(k string) bool { return !strings.HasPrefix(k, "archive/") && !strings.HasPrefix(k, "backup/") })
				if diff := cmp.Diff(repository, have); diff != "" {
					t.Fatalf("%s the repository is not what it was: -want, +got:\n%s", when, diff)
				}
			}

			old := f.succeed(backup.Backup)
			stays("After a backup")
			f.moved(b, old.Backup.ID)
			f.succeed(backup.Verify)
			f.from(s, "copy_"+string(kind))
			f.succeed(backup.Restore)
			f.from(s, "shop")
			oldFolder := keys(t, b, path.Join(f.folder(), old.Backup.ID))
			if !slices.Contains(oldFolder, backup.VerificationObject) || !slices.Contains(oldFolder, backup.ManifestObject) {
				t.Errorf("what is noted of an old backup lies beside it, got %v", oldFolder)
			}

			made := f.succeed(backup.Backup)
			if made.Catalog.Count != 2 {
				t.Errorf("old and new ones are backups: got %+v", made.Catalog)
			}
			if got := keys(t, b, path.Join(backup.Logical(f.folder()), made.Backup.ID)); !slices.Contains(got, backup.ManifestObject) {
				t.Errorf("a new one lies in the folder of its method, got %v", got)
			}
			f.succeed(backup.Verify)

			// One was left unfinished by a pod with the old layout, and one has expired.
			dead := backup.NewID(time.Now().Add(-time.Hour))
			must(t, b.WriteAll(t.Context(), path.Join(f.folder(), dead, store.RunningObject), nil, nil))
			f.Now = func() time.Time { return time.Now().Add(40 * 24 * time.Hour) }
			if r := f.succeed(backup.Backup); r.Expired != 1 || r.Catalog.Count != 2 {
				t.Errorf("the old one expires, the one that was verified and the new one stay: got %+v", r)
			}
			for _, id := range []string{old.Backup.ID, dead} {
				if left := keys(t, b, path.Join(f.folder(), id)); len(left) > 0 {
					t.Errorf("of %s is left %v", id, left)
				}
			}
			stays("After old backups expired")

			f.moved(b, made.Backup.ID)
			f.succeed(backup.Delete)
			stays("After the backups were deleted")
			if left := keys(t, b, f.folder()); len(left) != len(repository) {
				t.Errorf("of the backups is left %v", left)
			}
		})
	}
}

// uploadsStay checks that multipart uploads of other programs are not aborted.
func uploadsStay(t *testing.T, d *destination, f *fixture) {
	t.Helper()
	c := d.s3Client()
	key := path.Join(f.folder(), "archive/7412345678901234567/17-1/0000000100000000/000000010000000000000002-da39a3ee.zst")
	_, err := c.CreateMultipartUpload(t.Context(), &s3.CreateMultipartUploadInput{Bucket: &d.Bucket, Key: &key})
	must(t, err)
	there := func(when string) {
		t.Helper()
		out, err := c.ListMultipartUploads(t.Context(), &s3.ListMultipartUploadsInput{Bucket: &d.Bucket})
		must(t, err)
		if len(out.Uploads) != 1 || aws.ToString(out.Uploads[0].Key) != key {
			t.Fatalf("%s the repository's upload is gone: got %v", when, out.Uploads)
		}
	}
	there("At first")
	f.succeed(backup.Backup)
	there("After a backup")
	f.succeed(backup.Delete)
	there("After the backups were deleted")
}
