package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/bloberror"
)

type mkdirCmd struct {
	Folder []string `arg:"" help:"Folders to make."`
}

// Run creates the folders.
func (c *mkdirCmd) Run() error {
	for _, f := range c.Folder {
		if err := os.MkdirAll(f, 0o755); err != nil {
			return fmt.Errorf("cannot make folder %s: %w", f, err)
		}
	}
	return nil
}

type containerCmd struct {
	Endpoint string `arg:"" help:"Address of the account."`
	Account  string `arg:"" help:"Name of the account."`
	Name     string `arg:"" help:"Container to make."`
}

// Run creates the container unless it exists.
func (c *containerCmd) Run(ctx context.Context) error {
	in, err := io.ReadAll(os.Stdin)
	if err != nil {
		return fmt.Errorf("cannot read a key: %w", err)
	}
	key, authority, _ := strings.Cut(string(in), "\n")
	credential, err := azblob.NewSharedKeyCredential(c.Account, strings.TrimSpace(key))
	if err != nil {
		return fmt.Errorf("cannot use the key of account %s: %w", c.Account, err)
	}
	transport, err := trusting(authority)
	if err != nil {
		return err
	}
	options := &azblob.ClientOptions{}
	options.Transport = transport
	client, err := azblob.NewClientWithSharedKeyCredential(c.Endpoint, credential, options)
	if err != nil {
		return fmt.Errorf("cannot reach %s: %w", c.Endpoint, err)
	}
	_, err = client.CreateContainer(ctx, c.Name, nil)
	if err != nil && !bloberror.HasCode(err, bloberror.ContainerAlreadyExists) {
		return fmt.Errorf("cannot make container %s: %w", c.Name, err)
	}
	return nil
}

type lsCmd struct {
	Folder string `arg:"" help:"Folder to list."`
}

// Run prints the files. A file that is removed while the folder is listed is skipped.
func (c *lsCmd) Run() error {
	return filepath.WalkDir(c.Folder, func(path string, d fs.DirEntry, err error) error {
		if errors.Is(err, fs.ErrNotExist) {
			return nil
		}
		if err != nil {
			return fmt.Errorf("cannot list %s: %w", path, err)
		}
		info, err := d.Info()
		if err == nil && info.Mode().IsRegular() {
			fmt.Printf("%d\t%s\n", info.Size(), path)
		}
		return nil
	})
}

type flipCmd struct {
	File string `arg:"" help:"File to change."`
}

// Run flips a bit of the byte in the middle of the file.
func (c *flipCmd) Run() error {
	f, err := os.OpenFile(c.File, os.O_RDWR, 0)
	if err != nil {
		return fmt.Errorf("cannot change %s: %w", c.File, err)
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return fmt.Errorf("cannot change %s: %w", c.File, err)
	}
	b := make([]byte, 1)
	if _, err := f.ReadAt(b, info.Size()/2); err != nil {
		return fmt.Errorf("cannot read %s: %w", c.File, err)
	}
	b[0] ^= 1
	if _, err := f.WriteAt(b, info.Size()/2); err != nil {
		return fmt.Errorf("cannot change %s: %w", c.File, err)
	}
	return nil
}

type grepCmd struct {
	Text string `arg:"" help:"Text to look for."`
	File string `arg:"" help:"File to look in."`
}

// Run prints how often the text is in the file.
func (c *grepCmd) Run() error {
	raw, err := os.ReadFile(c.File)
	if err != nil {
		return fmt.Errorf("cannot read %s: %w", c.File, err)
	}
	fmt.Println(bytes.Count(raw, []byte(c.Text)))
	return nil
}

type rmCmd struct {
	Path []string `arg:"" help:"Files or folders to remove."`
}

// Run removes the files and folders.
func (c *rmCmd) Run() error {
	for _, p := range c.Path {
		if err := os.RemoveAll(p); err != nil {
			return fmt.Errorf("cannot remove %s: %w", p, err)
		}
	}
	return nil
}
