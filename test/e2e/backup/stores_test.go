//go:build e2e

package backup

import (
	"context"
	"encoding/base64"
	"fmt"

	backupv1 "github.com/storeplane/storeplane/apis/backup/v1"
	"github.com/storeplane/storeplane/test/e2e/harness"
)

// stores are the stores to which each engine is backed up.
var stores = []backupv1.StoreType{backupv1.S3, backupv1.GCS, backupv1.Azure, backupv1.Volume}

const (
	bucket      = "backups"
	accessKey   = "e2e"
	secretKey   = "e2e secret/with+odd=characters"
	account     = "storeplane"
	azurePort   = "10000"
	s3Port      = "7070"
	gcsPort     = "4443"
	azureServer = "azure-server"
)

// accountKey is the key of the account in Azure's server.
var accountKey = base64.StdEncoding.EncodeToString([]byte("a key that only this test's server knows"))

// store starts a store, once.
func (g *ground) store(ctx context.Context, s backupv1.StoreType) error {
	return g.once.Do("store "+string(s), func() error {
		switch s {
		case backupv1.Volume:
			return nil
		case backupv1.GCS:
			// This server requires no credentials.
			if _, err := g.trusted(ctx, "gcs", map[string]string{}); err != nil {
				return err
			}
			return g.serve(ctx, "backup/gcs.yaml", "gcs", gcsPort)
		case backupv1.S3:
			return g.serveS3(ctx)
		case backupv1.Azure:
			return g.serveAzure(ctx)
		}
		return fmt.Errorf("cannot start a store of type %s", s)
	})
}

// trusted creates what a store's server and its clients need: a certificate, the authority that
// signed it, and keys. All stores use TLS here, because pgBackRest requires it. Connections without
// TLS are tested in internal/backup/run.
func (g *ground) trusted(ctx context.Context, name string, keys map[string]string) (authority string, err error) {
	ca, cert, key, err := harness.Certificate(name, name+"."+g.namespace, name+"."+g.namespace+".svc")
	if err != nil {
		return "", err
	}
	if err := g.secret(ctx, name+"-tls", map[string]string{"tls.crt": cert, "tls.key": key}); err != nil {
		return "", err
	}
	keys["ca.crt"] = ca
	return ca, g.secret(ctx, name, keys)
}

func (g *ground) serveS3(ctx context.Context) error {
	if _, err := g.trusted(ctx, "s3", map[string]string{"AWS_ACCESS_KEY_ID": accessKey, "AWS_SECRET_ACCESS_KEY": secretKey}); err != nil {
		return err
	}
	return g.serve(ctx, "backup/s3.yaml", "s3", s3Port)
}

func (g *ground) serveAzure(ctx context.Context) error {
	if err := g.secret(ctx, azureServer, map[string]string{"accounts": account + ":" + accountKey}); err != nil {
		return err
	}
	ca, err := g.trusted(ctx, "azure", map[string]string{"AZURE_STORAGE_ACCOUNT": account, "AZURE_STORAGE_KEY": accountKey})
	if err != nil {
		return err
	}
	if err := g.serve(ctx, "backup/azure.yaml", "azure", azurePort); err != nil {
		return err
	}
	_, err = g.data(ctx, accountKey+"\n"+ca, "container", "https://azure:"+azurePort+"/"+account, account, bucket)
	return err
}

// destination returns a destination in a store for backups of an engine.
func (g *ground) destination(s backupv1.StoreType, e engine) backupv1.Destination {
	d := backupv1.Destination{Type: s, Bucket: bucket, Prefix: "e2e/" + string(e.name), SecretRef: &backupv1.LocalReference{Name: string(s)}}
	switch s {
	case backupv1.S3:
		d.Endpoint = "https://s3." + g.namespace + ".svc:" + s3Port
	case backupv1.GCS:
		d.Endpoint = "https://gcs:" + gcsPort
	case backupv1.Azure:
		d.Endpoint = "https://azure:" + azurePort
	case backupv1.Volume:
		d.Bucket, d.SecretRef = e.volume(), nil
	}
	return d
}
