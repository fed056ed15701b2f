package store

import (
	"context"
	"net/http"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/aws/retry"
	"github.com/aws/aws-sdk-go-v2/config"
	"github.com/aws/aws-sdk-go-v2/credentials"
	"github.com/aws/aws-sdk-go-v2/service/s3"
	"gocloud.dev/blob/s3blob"

	backupv1 "github.com/storeplane/storeplane/apis/backup/v1"
	"github.com/storeplane/storeplane/internal/backup"
)

// anyRegion is a region that stores without regions accept.
const anyRegion = "us-east-1"

// openS3 opens a bucket of S3 or of a compatible store. Without keys, the pod's own identity is
// used.
func (s *Store) openS3(ctx context.Context, d backupv1.Destination, dir string) error {
	t, err := transport(dir)
	if err != nil {
		return err
	}
	keys, err := files(dir, backup.KeyAWSAccess, backup.KeyAWSSecret, backup.KeyAWSSession)
	if err != nil {
		return err
	}
	options := []func(*config.LoadOptions) error{
		config.WithRetryer(func() aws.Retryer {
			return retry.NewStandard(func(o *retry.StandardOptions) {
				o.MaxAttempts = attempts
				o.MaxBackoff = 5 * time.Second
			})
		}),
		config.WithRegion(d.Region),
		config.WithDefaultRegion(anyRegion),
	}
	if keys[backup.KeyAWSAccess] != "" {
		options = append(options, config.WithCredentialsProvider(credentials.NewStaticCredentialsProvider(keys[backup.KeyAWSAccess], keys[backup.KeyAWSSecret], keys[backup.KeyAWSSession])))
	}
	c, err := config.LoadDefaultConfig(ctx, options...)
	if err != nil {
		return backup.WithReason(backup.StoreDenied, err)
	}
	// As an option above, the client would be an error if the environment names a bundle of
	// certificates.
	c.HTTPClient = &http.Client{Transport: t}
	if d.Endpoint != "" {
		// Stores other than Amazon's often support neither the checksums that its library adds
		// nor a host name for each bucket.
		c.BaseEndpoint = aws.String(d.Endpoint)
		c.RequestChecksumCalculation = aws.RequestChecksumCalculationWhenRequired
		c.ResponseChecksumValidation = aws.ResponseChecksumValidationWhenRequired
	}
	client := s3.NewFromConfig(c, func(o *s3.Options) {
		o.UsePathStyle = d.Endpoint != ""
		// Otherwise the library logs, each time an object is read, that it has no checksum.
		o.DisableLogOutputChecksumValidationSkipped = true
	})
	s.bucket, err = s3blob.OpenBucket(ctx, client, d.Bucket, &s3blob.Options{RequestChecksumCalculation: c.RequestChecksumCalculation})
	s.uploads = func(ctx context.Context, prefix string) ([]upload, error) {
		return uploads(ctx, client, d.Bucket, prefix)
	}
	s.abort = func(ctx context.Context, u upload) error {
		_, err := client.AbortMultipartUpload(ctx, &s3.AbortMultipartUploadInput{Bucket: &d.Bucket, Key: &u.key, UploadId: &u.id})
		if a := answerOf(err); a != nil && a.code == "NoSuchUpload" {
			return nil // the upload ended meanwhile
		}
		return err
	}
	return err
}

// uploads returns the unfinished uploads of names with the prefix: their parts are stored and
// cost money, although no list of objects shows them.
func uploads(ctx context.Context, client *s3.Client, bucket, prefix string) ([]upload, error) {
	var out []upload
	pages := s3.NewListMultipartUploadsPaginator(client, &s3.ListMultipartUploadsInput{Bucket: &bucket, Prefix: &prefix})
	for pages.HasMorePages() {
		page, err := pages.NextPage(ctx)
		if err != nil {
			return nil, err
		}
		for _, u := range page.Uploads {
			out = append(out, upload{key: aws.ToString(u.Key), id: aws.ToString(u.UploadId)})
		}
	}
	return out, nil
}
