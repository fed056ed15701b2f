package mongodb

import (
	"context"
	"fmt"
	"io"
	"slices"
	"strings"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/storeplane/storeplane/internal/backup"
)

// Restore restores a dump of the database from into an empty one, and stops at the first error.
func (s *Server) Restore(ctx context.Context, from, database string, r io.Reader) error {
	args := []string{"--archive", "--stopOnError", "--numParallelCollections=1", "--numInsertionWorkersPerCollection=1"}
	if from != database {
		args = append(args, "--nsFrom="+pattern(from)+".*", "--nsTo="+pattern(database)+".*")
	}
	ferret, err := s.ferretDB(ctx)
	if err != nil {
		return err
	}
	if ferret {
		args = append(args, "--noIndexRestore")
	}
	t, err := s.tool("mongorestore", args...)
	if err != nil {
		return err
	}
	// FerretDB rejects the indexes of mongorestore, which adds an option to each that servers are
	// meant to ignore. So indexes are read from the dump here, and created afterwards.
	indexes := map[string][]bson.D{}
	c := newCounter()
	c.described = func(collection, metadata string) {
		if found, err := parseIndexes(metadata); err == nil {
			indexes[collection] = found
		} else {
			c.fail(fmt.Sprintf("what describes collection %s is no JSON: %v", collection, err))
		}
	}
	t.Stdin = io.TeeReader(r, c)
	if err := t.Run(ctx); err != nil {
		return err
	}
	if c.wrong != "" {
		return backup.Errorf(backup.ToolFailed, "the dump is not as mongodump writes them: %s", c.wrong)
	}
	if !ferret {
		return nil
	}
	for collection, found := range indexes {
		for _, index := range found {
			if err := s.createIndex(ctx, database, collection, index); err != nil {
				return err
			}
		}
	}
	return nil
}

// ferretDB reports whether the server is a FerretDB.
func (s *Server) ferretDB(ctx context.Context) (bool, error) {
	info, err := s.client.Database("admin").RunCommand(ctx, bson.D{{Key: "buildInfo", Value: 1}}).Raw()
	if err != nil {
		return false, failed(ctx, "cannot connect to the server", err)
	}
	elements, err := info.Elements()
	return err == nil && slices.ContainsFunc(elements, func(e bson.RawElement) bool { return strings.HasPrefix(e.Key(), "ferretdb") }), nil
}

// parseIndexes returns the indexes in the description of a collection, without the one on _id,
// which every collection has, and without the fields that the server sets itself.
func parseIndexes(metadata string) ([]bson.D, error) {
	var m struct {
		Indexes []bson.D `bson:"indexes"`
	}
	if metadata == "" {
		return nil, nil
	}
	if err := bson.UnmarshalExtJSON([]byte(metadata), true, &m); err != nil {
		return nil, err
	}
	var out []bson.D
	for _, index := range m.Indexes {
		if slices.ContainsFunc(index, func(e bson.E) bool { return e.Key == "name" && e.Value == "_id_" }) {
			continue
		}
		out = append(out, slices.DeleteFunc(index, func(e bson.E) bool { return e.Key == "v" || e.Key == "ns" }))
	}
	return out, nil
}

// createIndex creates an index of a collection. A throw-away server only has to hold the
// documents: that it lacks a kind of index is no fault of the backup, and only logged.
func (s *Server) createIndex(ctx context.Context, database, collection string, index bson.D) error {
	err := s.client.Database(database).RunCommand(ctx, bson.D{{Key: "createIndexes", Value: collection}, {Key: "indexes", Value: bson.A{index}}}).Err()
	if err == nil {
		return nil
	}
	err = failed(ctx, "cannot create an index of collection "+collection, err)
	if s.remote != nil && backup.ReasonOf(err) == backup.ToolFailed {
		if s.log != nil {
			_, _ = fmt.Fprintf(s.log, "%v\n", err)
		}
		return nil
	}
	return err
}

// pattern escapes a name so that it matches that name alone.
func pattern(name string) string {
	return strings.NewReplacer(`\`, `\\`, `*`, `\*`, `$`, `\$`).Replace(name)
}
