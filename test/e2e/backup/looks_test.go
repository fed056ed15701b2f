//go:build e2e

package backup

import (
	"context"
	"fmt"
	"path"
	"slices"
	"strconv"
	"strings"

	backupv1 "github.com/storeplane/storeplane/apis/backup/v1"
)

// bucketFolder is where the pods of S3 and Cloud Storage keep the objects of the bucket as files.
// Azure's server does not store objects as files of their names.
const bucketFolder = "/data/" + bucket

// all lists the files of a store below a folder of its bucket.
func (g *ground) all(ctx context.Context, s backupv1.StoreType, folder string) ([]string, error) {
	if s == backupv1.Volume {
		out, err := g.data(ctx, "", "ls", path.Join("/data", folder))
		if err != nil {
			return nil, err
		}
		return pathsOf(out), nil
	}
	out, err := g.on(ctx, string(s), "ls", path.Join(bucketFolder, folder))
	if err != nil {
		return nil, err
	}
	return pathsOf(out), nil
}

// pathsOf returns the paths in the output of the command data ls.
func pathsOf(list string) []string {
	var out []string
	for line := range strings.Lines(list) {
		if _, p, ok := strings.Cut(strings.TrimSpace(line), "\t"); ok {
			out = append(out, p)
		}
	}
	slices.Sort(out)
	return out
}

// folders returns the folders below a location, each of which is one backup.
func (g *ground) folders(ctx context.Context, s backupv1.StoreType, location string) ([]string, error) {
	files, err := g.all(ctx, s, location)
	if err != nil {
		return nil, err
	}
	var out []string
	for _, f := range files {
		_, below, _ := strings.Cut(f, location+"/")
		id, _, _ := strings.Cut(below, "/")
		if !slices.Contains(out, id) {
			out = append(out, id)
		}
	}
	return out, nil
}

// uploads lists the parts of unfinished uploads, which the S3 server keeps beside the objects.
func (g *ground) uploads(ctx context.Context) ([]string, error) {
	return g.all(ctx, backupv1.S3, ".sgwtmp/multipart")
}

// largest returns the largest object of a backup, which contains its data.
func (g *ground) largest(ctx context.Context, s backupv1.StoreType, location, id string) (string, error) {
	out, err := g.on(ctx, string(s), "ls", path.Join(bucketFolder, location, id))
	if err != nil {
		return "", err
	}
	var size int64
	var largest string
	for line := range strings.Lines(out) {
		text, p, _ := strings.Cut(strings.TrimSpace(line), "\t")
		if n, err := strconv.ParseInt(text, 10, 64); err == nil && n > size {
			size, largest = n, p
		}
	}
	if largest == "" {
		return "", fmt.Errorf("cannot find backup %s in store %s", id, s)
	}
	return largest, nil
}
