package main

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/url"
	"strings"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo"
	"go.mongodb.org/mongo-driver/v2/mongo/options"
)

// mongoDB is one database of a server with MongoDB's protocol.
type mongoDB struct {
	client *mongo.Client
	db     *mongo.Database
}

func connectMongoDB(ctx context.Context, uri string) (server, error) {
	u, err := url.Parse(uri)
	if err != nil {
		return nil, errors.New("cannot read a connection to MongoDB")
	}
	client, err := mongo.Connect(options.Client().ApplyURI(uri).SetServerSelectionTimeout(20 * time.Second))
	if err != nil {
		return nil, fmt.Errorf("cannot connect to MongoDB: %w", err)
	}
	if err := client.Ping(ctx, nil); err != nil {
		return nil, fmt.Errorf("cannot connect to MongoDB: %w", err)
	}
	return &mongoDB{client, client.Database(strings.TrimPrefix(u.Path, "/"))}, nil
}

func (m *mongoDB) close(ctx context.Context) { _ = m.client.Disconnect(ctx) }

func (m *mongoDB) load(ctx context.Context, rows, bulk int) error {
	at := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	orders := func(n int) any {
		d := bson.D{{Key: "_id", Value: int64(n)}, {Key: "customer", Value: fmt.Sprintf("customer %d", n%977)}, {Key: "total", Value: float64(n*7919%100000) / 100}, {Key: "placed", Value: at.Add(time.Duration(n) * time.Minute)}}
		if n%3 == 0 {
			d = append(d, bson.E{Key: "note", Value: nil})
		}
		return append(d, bson.E{Key: "lines", Value: bson.A{int32(n % 5), bson.D{{Key: "ä", Value: "😀"}}}})
	}
	id := func(n byte) bson.ObjectID { return bson.ObjectID{1, 2, 3, n} }
	odd := []any{
		bson.D{{Key: "_id", Value: id(1)}, {Key: "text", Value: ""}, {Key: "bytes", Value: bson.Binary{Data: []byte{0, 255, 0}}}},
		bson.D{{Key: "_id", Value: id(2)}, {Key: "text", Value: "tab\ttwo\nlines 😀 'quoted' \\N"}, {Key: "none", Value: nil}, {Key: "yes", Value: true}},
		bson.D{{Key: "_id", Value: id(3)}, {Key: "bytes", Value: bson.Binary{Data: make([]byte, 1<<20)}}, {Key: "when", Value: at}, {Key: "deep", Value: bson.D{{Key: "a", Value: bson.D{{Key: "b", Value: bson.A{}}}}}}},
		bson.D{{Key: "_id", Value: id(4)}, {Key: "表", Value: int64(1) << 60}, {Key: "n", Value: int32(-1)}, {Key: "f", Value: -0.5}},
	}
	const batch = 1000
	for from := 0; from < rows; from += batch {
		docs := make([]any, 0, batch)
		for n := from; n < min(from+batch, rows); n++ {
			docs = append(docs, orders(n))
		}
		if err := m.insert(ctx, "orders", docs); err != nil {
			return err
		}
	}
	if err := m.insert(ctx, "odd näme 表", odd); err != nil {
		return err
	}
	if err := m.db.CreateCollection(ctx, "empty"); err != nil {
		return fmt.Errorf("cannot make a collection: %w", err)
	}
	index := mongo.IndexModel{Keys: bson.D{{Key: "customer", Value: 1}, {Key: "placed", Value: -1}}, Options: options.Index().SetName("by_customer")}
	if _, err := m.db.Collection("orders").Indexes().CreateOne(ctx, index); err != nil {
		return fmt.Errorf("cannot make an index: %w", err)
	}
	random := rand.NewChaCha8([32]byte{1})
	for n := range bulk {
		b := make([]byte, 1<<20)
		_, _ = random.Read(b)
		if err := m.insert(ctx, "bulk", []any{bson.D{{Key: "_id", Value: int32(n)}, {Key: "content", Value: bson.Binary{Data: b}}}}); err != nil {
			return err
		}
	}
	return nil
}

func (m *mongoDB) insert(ctx context.Context, collection string, docs []any) error {
	if _, err := m.db.Collection(collection).InsertMany(ctx, docs); err != nil {
		return fmt.Errorf("cannot fill collection %s: %w", collection, err)
	}
	return nil
}

func (m *mongoDB) sums(ctx context.Context) (map[string]*sum, error) {
	names, err := m.db.ListCollectionNames(ctx, bson.D{})
	if err != nil {
		return nil, fmt.Errorf("cannot list collections: %w", err)
	}
	out := map[string]*sum{"(indexes)": {}}
	for _, name := range names {
		docs, err := m.db.Collection(name).Find(ctx, bson.D{})
		if err != nil {
			return nil, fmt.Errorf("cannot read collection %s: %w", name, err)
		}
		out[name] = &sum{}
		for docs.Next(ctx) {
			out[name].add(docs.Current)
		}
		if err := docs.Err(); err != nil {
			return nil, fmt.Errorf("cannot read collection %s: %w", name, err)
		}
		specs, err := m.db.Collection(name).Indexes().ListSpecifications(ctx)
		if err != nil {
			return nil, fmt.Errorf("cannot list the indexes of collection %s: %w", name, err)
		}
		for _, s := range specs {
			out["(indexes)"].add([]byte(name), []byte(s.Name), s.KeysDocument)
		}
	}
	return out, nil
}

func (*mongoDB) exec(context.Context, string) ([]string, error) {
	return nil, errors.New("cannot run a statement: MongoDB has none")
}

func (m *mongoDB) drop(ctx context.Context, database string) error {
	if err := m.client.Database(database).Drop(ctx); err != nil {
		return fmt.Errorf("cannot drop database %s: %w", database, err)
	}
	return nil
}
