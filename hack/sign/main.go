// Command sign signs a release as cosign does (https://docs.sigstore.dev): each of its images and
// packages, by its digest, with a key. The signatures are tags beside the images, which is where
// Crossplane 2.4 looks for them, or OCI archives in the folder of a release.
//
// It uses cosign's packages instead of cosign's command: Crossplane accepts no signature without an
// entry in a transparency log, and the command cannot write one without a server. Here the key
// signs the entry itself if no server is named.
package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"syscall"

	"github.com/alecthomas/kong"
	"github.com/sigstore/cosign/v3/pkg/cosign"
)

// passwordVariable is the environment variable with the key's password. It is never an argument.
const passwordVariable = "COSIGN_PASSWORD"

type cli struct {
	Images  imagesCmd  `cmd:"" help:"Sign the images and packages of a release."`
	KeyPair keyPairCmd `cmd:"" help:"Write a new key pair, cosign.key and cosign.pub."`
}

type imagesCmd struct {
	Image []string `arg:"" optional:"" help:"Images to sign, instead of those of the release."`

	Key      string `help:"Private key, as cosign generate-key-pair writes it. Its password is in COSIGN_PASSWORD." env:"COSIGN_KEY"`
	Registry string `help:"Registry and path that the release was pushed to, for example registry.example.com/storeplane."`
	Packages string `help:"Folder of the packages that were pushed, with images.json."                                default:"_out/packages" type:"path"`
	Release  string `help:"Folder of a release: signatures are written to it, for its load.sh, instead of the registry." type:"path"`
	Trust    string `help:"Folder to write the public key and the trust root to, if that is not the folder of the release."                         type:"path"`
	RekorURL string `help:"Transparency log to enter the signatures in, for example https://rekor.sigstore.dev. Without it the key signs the entry itself." name:"rekor-url"`
}

// Run signs the images.
func (c *imagesCmd) Run(ctx context.Context) error {
	s, err := c.signer()
	if err != nil {
		return err
	}
	switch {
	case c.Release != "":
		return s.folder(ctx, c.Release)
	case len(c.Image) > 0:
		if err := s.images(ctx, c.Image); err != nil || c.Trust == "" {
			return err
		}
		return s.writeTrust(c.Trust)
	case c.Registry == "":
		return errors.New("--registry is not set: name the registry that the release was pushed to")
	}
	refs, err := released(c.Registry, c.Packages)
	if err != nil {
		return err
	}
	if err := s.images(ctx, refs); err != nil {
		return err
	}
	return s.writeTrust(cmp.Or(c.Trust, c.Packages))
}

func (c *imagesCmd) signer() (*signer, error) {
	if c.Key == "" {
		return nil, errors.New("COSIGN_KEY is not set: name the file of the private key, which cosign generate-key-pair or make signing-key writes")
	}
	key, err := os.ReadFile(c.Key)
	if err != nil {
		return nil, fmt.Errorf("cannot read the private key: %w", err)
	}
	password, err := password()
	if err != nil {
		return nil, err
	}
	s, err := newSigner(key, password)
	if err != nil {
		return nil, fmt.Errorf("cannot use the private key %s: %w", c.Key, err)
	}
	if c.RekorURL != "" {
		return s, s.useLog(c.RekorURL)
	}
	return s, nil
}

func password() ([]byte, error) {
	value, ok := os.LookupEnv(passwordVariable)
	if !ok {
		return nil, errors.New(passwordVariable + " is not set: set it to the password of the key in the environment")
	}
	return []byte(value), nil
}

type keyPairCmd struct {
	Out string `help:"Folder to write to." default:"." type:"path"`
}

// Run writes a key pair.
func (c *keyPairCmd) Run() error {
	password, err := password()
	if err != nil {
		return err
	}
	keys, err := cosign.GenerateKeyPair(func(bool) ([]byte, error) { return password, nil })
	if err != nil {
		return fmt.Errorf("cannot generate a key pair: %w", err)
	}
	for _, f := range []struct {
		name string
		data []byte
		mode os.FileMode
	}{
		{name: "cosign.key", data: keys.PrivateBytes, mode: 0o600},
		{name: publicKeyFile, data: keys.PublicBytes, mode: 0o644},
	} {
		path := filepath.Join(c.Out, f.name)
		if err := create(path, f.data, f.mode); err != nil {
			return fmt.Errorf("cannot write %s: a key is never replaced: %w", path, err)
		}
	}
	return nil
}

// create writes a file that must not exist yet.
func create(path string, data []byte, mode os.FileMode) error {
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, mode)
	if err != nil {
		return err
	}
	_, err = f.Write(data)
	return errors.Join(err, f.Close())
}

func main() {
	k := kong.Parse(&cli{}, kong.Name("sign"), kong.Description("Signs the images and packages of a release."))
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	k.BindTo(ctx, (*context.Context)(nil))
	if err := k.Run(); err != nil {
		fmt.Fprintln(os.Stderr, "sign:", err)
		stop()
		k.Exit(1)
	}
}
