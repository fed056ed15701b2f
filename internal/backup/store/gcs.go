package store

import (
	"context"
	"net/http"
	"strings"
	"time"

	"cloud.google.com/go/storage"
	"github.com/googleapis/gax-go/v2"
	"gocloud.dev/blob/gcsblob"
	"gocloud.dev/gcp"
	"golang.org/x/oauth2"
	"golang.org/x/oauth2/google"
	"google.golang.org/api/option"

	backupv1 "github.com/storeplane/storeplane/apis/backup/v1"
	"github.com/storeplane/storeplane/internal/backup"
)

// openGCS opens a bucket of Google. Without a key the pod's own identity is used, or none at an
// endpoint that is not Google's.
func (s *Store) openGCS(ctx context.Context, d backupv1.Destination, dir string) error {
	t, err := transport(dir)
	if err != nil {
		return err
	}
	key, err := file(dir, backup.KeyGCS)
	if err != nil {
		return err
	}
	client := &gcp.HTTPClient{Client: http.Client{Transport: t}}
	if key != "" || d.Endpoint == "" {
		// Tokens are requested through the same transport, which trusts ca.crt.
		source, err := tokens(context.WithValue(ctx, oauth2.HTTPClient, &http.Client{Transport: t, Timeout: answerWithin}), key)
		if err != nil {
			return backup.WithReason(backup.StoreDenied, err)
		}
		client.Transport = &oauth2.Transport{Base: t, Source: source}
	}
	var options []option.ClientOption
	if d.Endpoint != "" {
		options = append(options, option.WithEndpoint(strings.TrimSuffix(d.Endpoint, "/")+"/storage/v1/"), storage.WithJSONReads())
	}
	s.bucket, err = gcsblob.OpenBucket(ctx, client, d.Bucket, &gcsblob.Options{ClientOptions: options})
	if err != nil {
		return err
	}
	var c *storage.Client
	if s.bucket.As(&c) {
		// The default is to retry without end.
		c.SetRetry(storage.WithMaxAttempts(attempts), storage.WithBackoff(gax.Backoff{Initial: 500 * time.Millisecond, Max: 5 * time.Second}))
	}
	return nil
}

// tokens returns tokens for a service account's key, or for the pod's own identity.
func tokens(ctx context.Context, key string) (oauth2.TokenSource, error) {
	if key == "" {
		c, err := google.FindDefaultCredentials(ctx, storage.ScopeReadWrite)
		if err != nil {
			return nil, err
		}
		return c.TokenSource, nil
	}
	// Only the key of a service account is accepted: other kinds of credentials may name programs
	// to run and files to read.
	c, err := google.CredentialsFromJSONWithType(ctx, []byte(key), google.ServiceAccount, storage.ScopeReadWrite)
	if err != nil {
		return nil, err
	}
	return c.TokenSource, nil
}
