package store

import (
	"context"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore/policy"
	"github.com/Azure/azure-sdk-for-go/sdk/azidentity"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/container"
	"gocloud.dev/blob/azureblob"

	backupv1 "github.com/storeplane/storeplane/apis/backup/v1"
	"github.com/storeplane/storeplane/internal/backup"
)

// openAzure opens a container of Azure. Without a key or token, the pod's own identity is used.
func (s *Store) openAzure(d backupv1.Destination, dir string) error {
	t, err := transport(dir)
	if err != nil {
		return err
	}
	keys, err := files(dir, backup.KeyAzureAccount, backup.KeyAzure, backup.KeyAzureSAS)
	if err != nil {
		return err
	}
	account := keys[backup.KeyAzureAccount]
	if account == "" {
		return backup.Errorf(backup.StoreDenied, "its Secret has no %s", backup.KeyAzureAccount)
	}
	at, err := containerURL(d, account)
	if err != nil {
		return backup.WithReason(backup.InvalidTask, err)
	}
	options := &container.ClientOptions{ClientOptions: policy.ClientOptions{
		Transport: &http.Client{Transport: t},
		Retry:     policy.RetryOptions{MaxRetries: attempts - 1, RetryDelay: time.Second, MaxRetryDelay: 5 * time.Second},
	}}

	client, err := azureClient(at, keys, options)
	if err != nil {
		return backup.WithReason(backup.StoreDenied, err)
	}
	s.bucket, err = azureblob.OpenBucket(context.Background(), client, nil)
	return err
}

func azureClient(at string, keys map[string]string, options *container.ClientOptions) (*container.Client, error) {
	if key := keys[backup.KeyAzure]; key != "" {
		c, err := azblob.NewSharedKeyCredential(keys[backup.KeyAzureAccount], key)
		if err != nil {
			return nil, fmt.Errorf("%s is no key", backup.KeyAzure)
		}
		return container.NewClientWithSharedKeyCredential(at, c, options)
	}
	if token := keys[backup.KeyAzureSAS]; token != "" {
		return container.NewClientWithNoCredential(at+"?"+strings.TrimPrefix(token, "?"), options)
	}
	c, err := azidentity.NewDefaultAzureCredential(&azidentity.DefaultAzureCredentialOptions{ClientOptions: policy.ClientOptions{Transport: options.Transport}})
	if err != nil {
		return nil, err
	}
	return container.NewClient(at, c, options)
}

// containerURL returns the URL of a destination's container. An endpoint names the account in its
// host or, as with emulators, at the end of its path. If it does neither, the account is added.
func containerURL(d backupv1.Destination, account string) (string, error) {
	if d.Endpoint == "" {
		return fmt.Sprintf("https://%s.blob.core.windows.net/%s", account, d.Bucket), nil
	}
	u, err := url.Parse(d.Endpoint)
	if err != nil {
		return "", fmt.Errorf("cannot read the endpoint %q", d.Endpoint)
	}
	if u.Path == "" || u.Path == "/" {
		if !strings.HasPrefix(u.Hostname(), account+".") {
			u.Path = "/" + account
		}
	}
	return u.JoinPath(d.Bucket).String(), nil
}
