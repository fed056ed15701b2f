// Package mongodb dumps and restores databases of MongoDB and of servers with its protocol, by
// mongodump and mongorestore.
//
// A dump is not of one moment if the database is written to meanwhile: mongodump reads one
// collection after another. The documents are counted as the dump is written.
package mongodb

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo"
	"go.mongodb.org/mongo-driver/v2/mongo/options"

	"github.com/storeplane/storeplane/internal/backup"
	"github.com/storeplane/storeplane/internal/backup/engine"
)

// own are the server's own databases.
var own = []string{"admin", "config", "local"}

// A Server is a server with MongoDB's protocol.
type Server struct {
	private engine.Private
	config  string
	client  *mongo.Client
	log     io.Writer
	remote  *engine.Remote
}

var _ engine.ThrowAway = &Server{}

// findWithin is how long the driver searches for a server that takes requests.
const findWithin = 15 * time.Second

// Open returns a Server without waiting for a connection: the first use fails without one.
func Open(c engine.Connection, log io.Writer) (*Server, error) {
	uri := withPassword(c)
	s := &Server{log: log}
	var err error
	if s.private, err = engine.NewPrivate(); err != nil {
		return nil, err
	}
	// A quoted JSON string is also one in YAML.
	if s.config, err = s.private.Write("config.yaml", "uri: "+strconv.Quote(uri)+"\n"); err != nil {
		s.private.Close()
		return nil, err
	}
	s.client, err = mongo.Connect(options.Client().ApplyURI(uri).SetServerSelectionTimeout(findWithin).SetAppName("storeplane-backup"))
	if err != nil {
		s.private.Close()
		// The driver's own error may contain the URI.
		return nil, backup.Errorf(backup.InvalidTask, "cannot read the connection: a parameter of its uri is wrong")
	}
	return s, nil
}

// withPassword returns the URI for drivers, without a database: one in the URI would only set
// where the user is defined, which authSource does too.
func withPassword(c engine.Connection) string {
	params := url.Values{}
	maps.Copy(params, c.Params)
	if c.User != "" && c.Database != "" && !params.Has("authSource") {
		params.Set("authSource", c.Database)
	}
	if c.CA != "" {
		params.Set("tls", "true")
		params.Set("tlsCAFile", c.CA)
	}
	c.Params = params
	scheme := "mongodb"
	if c.Scheme == "mongodb+srv" {
		scheme = c.Scheme // its host is looked up in the DNS
	}
	uri := c.URI(scheme, "", nil)
	if c.User != "" {
		user := url.User(c.User).String()
		uri = strings.Replace(uri, "://"+user+"@", "://"+url.UserPassword(c.User, c.Password).String()+"@", 1)
	}
	return uri
}

// Close closes all connections, and removes the file with the password.
func (s *Server) Close() {
	_ = s.client.Disconnect(context.Background())
	s.private.Close()
}

// Failed explains an error of a throw-away server with the server's own output.
func (s *Server) Failed(err error) error {
	if s.remote == nil || err == nil {
		return err
	}
	return s.remote.Failed(err)
}

// Version returns the version of the server.
func (s *Server) Version(ctx context.Context) (string, error) {
	var info struct {
		Version string `bson:"version"`
	}
	err := s.client.Database("admin").RunCommand(ctx, bson.D{{Key: "buildInfo", Value: 1}}).Decode(&info)
	if err == nil {
		// buildInfo needs no authentication; listing the databases does.
		_, err = s.client.ListDatabaseNames(ctx, bson.D{})
	}
	return info.Version, failed(ctx, "cannot connect to the server", err)
}

// System returns "": servers of a group have an identifier each.
func (*Server) System(context.Context) (string, error) { return "", nil }

// Databases returns the databases that are not the server's own.
func (s *Server) Databases(ctx context.Context) ([]string, error) {
	all, err := s.client.ListDatabaseNames(ctx, bson.D{})
	all = slices.DeleteFunc(all, func(name string) bool { return slices.Contains(own, name) })
	slices.Sort(all)
	return all, failed(ctx, "cannot list the databases", err)
}

// Roles returns none: a dump does not need them.
func (s *Server) Roles(context.Context) ([]string, error) { return nil, nil }

// exists returns an error if there is no database of the name. A database exists as long as it has
// a collection.
func (s *Server) exists(ctx context.Context, database string) error {
	names, err := s.client.ListDatabaseNames(ctx, bson.D{})
	if err != nil {
		return failed(ctx, "cannot list the databases", err)
	}
	if !slices.Contains(names, database) {
		return backup.Errorf(backup.SourceUnreachable, "cannot use database %s: %w, or it has no collection yet, or the user may not see it", database, engine.ErrNoDatabase)
	}
	return nil
}

// Dump dumps a database, and counts the documents in the dump.
func (s *Server) Dump(ctx context.Context, database string, w io.Writer) (map[string]int64, error) {
	// mongodump makes an empty dump of a database that does not exist.
	if err := s.exists(ctx, database); err != nil {
		return nil, err
	}
	t, err := s.tool("mongodump", "--archive", "--db="+database, "--numParallelCollections=1", "--excludeCollection="+engine.LockName)
	if err != nil {
		return nil, err
	}
	c := newCounter()
	t.Stdout = io.MultiWriter(c, w)
	if err := t.Run(ctx); err != nil {
		return nil, err
	}
	return c.result()
}

// tool returns a tool of MongoDB. The URI with the password is in a file.
func (s *Server) tool(name string, args ...string) (engine.Tool, error) {
	path, err := engine.Look(name)
	if err != nil {
		return engine.Tool{}, err
	}
	return engine.Tool{Name: path, Args: append([]string{"--config=" + s.config}, args...), Log: s.log, Reason: wordsReason}, nil
}

// Holds returns one thing that a database holds, or "".
func (s *Server) Holds(ctx context.Context, database string) (string, error) {
	if err := s.exists(ctx, database); err != nil {
		return "", err
	}
	names, err := s.collections(ctx, database, bson.D{})
	if err != nil || len(names) == 0 {
		return "", err
	}
	return "collection " + names[0], nil
}

func (s *Server) collections(ctx context.Context, database string, filter bson.D) ([]string, error) {
	names, err := s.client.Database(database).ListCollectionNames(ctx, filter)
	if err != nil {
		return nil, failed(ctx, "cannot read database "+database, err)
	}
	names = slices.DeleteFunc(names, func(name string) bool { return strings.HasPrefix(name, "system.") || name == engine.LockName })
	slices.Sort(names)
	return names, nil
}

// Clear drops all that a database holds but its lock. A database that does not exist is created
// by the first write.
func (s *Server) Clear(ctx context.Context, database string) error {
	names, err := s.collections(ctx, database, bson.D{})
	if err != nil {
		return err
	}
	// system.js has the functions that users store.
	for _, name := range append(names, "system.js") {
		if err := s.client.Database(database).Collection(name).Drop(ctx); err != nil {
			return failed(ctx, "cannot clear database "+database, err)
		}
	}
	return nil
}

// Count counts the documents of each collection.
func (s *Server) Count(ctx context.Context, database string) (map[string]int64, error) {
	names, err := s.collections(ctx, database, bson.D{{Key: "type", Value: "collection"}})
	if err != nil {
		return nil, err
	}
	out := make(map[string]int64, len(names))
	for _, name := range names {
		n, err := s.client.Database(database).Collection(name).CountDocuments(ctx, bson.D{})
		if err != nil {
			return nil, failed(ctx, "cannot count the documents of "+name, err)
		}
		out[name] = n
	}
	return out, nil
}

// Query always fails: there are no verification queries for this engine.
func (s *Server) Query(context.Context, string, string) error {
	return backup.Errorf(backup.InvalidTask, "a query can check databases of type postgresql and mysql only")
}

// failed adds what was attempted, and the reason, to an error of the server.
func failed(ctx context.Context, what string, err error) error {
	if err == nil || backup.ReasonOf(err) != "" {
		return err
	}
	wrapped := fmt.Errorf("%s: %w", what, err)
	if ctx.Err() != nil && context.Cause(ctx) != context.DeadlineExceeded { //nolint:errorlint // the cause is not wrapped
		return backup.WithReason(backup.Interrupted, wrapped)
	}
	return backup.WithReason(reason(err), wrapped)
}

// Error codes of the server.
const (
	unauthorized         = 13
	authenticationFailed = 18
)

func reason(err error) backup.Reason {
	if r := wordsReason(err.Error()); r != "" {
		return r
	}
	if e, ok := errors.AsType[mongo.CommandError](err); ok {
		switch e.Code {
		case unauthorized, authenticationFailed:
			return backup.SourceDenied
		}
		return backup.ToolFailed
	}
	return backup.SourceUnreachable
}

// wordsReason returns the reason of a tool's error output, or "".
func wordsReason(words string) backup.Reason {
	switch {
	case engine.Contains(words, "auth error", "Authentication failed", "authentication failed", "AuthenticationFailed", "not authorized", "Unauthorized", "requires authentication"):
		return backup.SourceDenied
	case engine.Contains(words, "server selection error", "server selection timeout", "connection refused", "no reachable servers", "socket was unexpectedly closed", "connection reset", "broken pipe", "connection() error", "unexpected EOF", "incomplete read"):
		return backup.SourceUnreachable
	}
	return ""
}
