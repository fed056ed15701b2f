package mongodb

import (
	"context"
	"errors"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo"

	"github.com/storeplane/storeplane/internal/backup/engine"
)

// lockDocument is the one document in the lock's collection.
type lockDocument struct {
	ID     int32  `bson:"_id"`
	Record string `bson:"record"`
}

func (s *Server) lockCollection(database string) *mongo.Collection {
	return s.client.Database(database).Collection(engine.LockName)
}

// Locked returns the lock of a database, or nil.
func (s *Server) Locked(ctx context.Context, database string) (*engine.Lock, error) {
	var d lockDocument
	err := s.lockCollection(database).FindOne(ctx, bson.D{{Key: "_id", Value: int32(1)}}).Decode(&d)
	if errors.Is(err, mongo.ErrNoDocuments) {
		return nil, nil
	}
	if err != nil {
		return nil, cannotLock(ctx, database, err)
	}
	l, err := engine.ReadLock(d.Record)
	return l, cannotLock(ctx, database, err)
}

// Swap replaces the lock of a database if it is still from. Each way is decided by one request.
func (s *Server) Swap(ctx context.Context, database string, from, to *engine.Lock) (bool, error) {
	was, is, err := engine.Records(from, to)
	if err != nil {
		return false, err
	}
	c := s.lockCollection(database)
	switch {
	case was == "":
		_, err := c.InsertOne(ctx, lockDocument{ID: 1, Record: is})
		if mongo.IsDuplicateKeyError(err) {
			return false, nil
		}
		return err == nil, cannotLock(ctx, database, err)
	case is == "":
		// No other restore can take the lock meanwhile: it would have to find the lock unchanged
		// for longer than this takes.
		have, err := s.Locked(ctx, database)
		if err != nil || have == nil || *have != *from {
			return false, err
		}
		err = c.Drop(ctx)
		return err == nil, cannotLock(ctx, database, err)
	}
	result, err := c.UpdateOne(ctx, bson.D{{Key: "_id", Value: int32(1)}, {Key: "record", Value: was}},
		bson.D{{Key: "$set", Value: bson.D{{Key: "record", Value: is}}}})
	if err != nil {
		return false, cannotLock(ctx, database, err)
	}
	return result.MatchedCount == 1, nil
}

func cannotLock(ctx context.Context, database string, err error) error {
	return failed(ctx, "cannot read or write the lock of restores in database "+database, err)
}
