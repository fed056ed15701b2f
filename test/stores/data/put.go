package main

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/credentials"
	"github.com/aws/aws-sdk-go-v2/service/s3"
	"gocloud.dev/blob/s3blob"
)

type putCmd struct {
	Endpoint string `arg:"" help:"Address of an S3 server."`
	Bucket   string `arg:"" help:"Bucket."`
	Name     string `arg:"" help:"Name of the object."`
	Keys     string `help:"Folder with AWS_ACCESS_KEY_ID, AWS_SECRET_ACCESS_KEY and ca.crt." required:""`
}

// Run uploads standard input as an object, in parts like other uploaders.
func (c *putCmd) Run(ctx context.Context) (err error) {
	client, err := c.client()
	if err != nil {
		return err
	}
	bucket, err := s3blob.OpenBucket(ctx, client, c.Bucket, nil)
	if err != nil {
		return fmt.Errorf("cannot open bucket %s: %w", c.Bucket, err)
	}
	defer bucket.Close()
	w, err := bucket.NewWriter(ctx, c.Name, nil)
	if err != nil {
		return fmt.Errorf("cannot write %s: %w", c.Name, err)
	}
	_, err = io.Copy(w, os.Stdin)
	return errors.Join(err, w.Close())
}

func (c *putCmd) client() (*s3.Client, error) {
	read := func(name string) string {
		raw, err := os.ReadFile(filepath.Join(c.Keys, name))
		if err != nil {
			return ""
		}
		return strings.TrimSpace(string(raw))
	}
	transport, err := trusting(read("ca.crt"))
	if err != nil {
		return nil, err
	}
	return s3.New(s3.Options{
		BaseEndpoint: aws.String(c.Endpoint), UsePathStyle: true, Region: "us-east-1",
		Credentials:                credentials.NewStaticCredentialsProvider(read("AWS_ACCESS_KEY_ID"), read("AWS_SECRET_ACCESS_KEY"), ""),
		HTTPClient:                 transport,
		RequestChecksumCalculation: aws.RequestChecksumCalculationWhenRequired,
	}), nil
}

// trusting returns a client that trusts a certificate authority, given as PEM.
func trusting(authority string) (*http.Client, error) {
	roots := x509.NewCertPool()
	if !roots.AppendCertsFromPEM([]byte(authority)) {
		return nil, errors.New("cannot read the authority: it holds no certificate")
	}
	return &http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{RootCAs: roots, MinVersion: tls.VersionTLS12}}}, nil
}
