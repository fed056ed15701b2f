package engine

import (
	"encoding/json"
)

// LockName is the schema, table or collection that contains a Lock. No dump contains it, Clear
// leaves it, and a database that holds nothing else counts as empty.
const LockName = "storeplane_restore"

// A Lock is a restore's lock on a database. It is stored in the database itself, the one place
// that all pods which restore into it can read, and stays there when a pod is killed.
type Lock struct {
	// Owner is the UID of the Restore, and Name its namespace and name.
	Owner string `json:"owner"`
	Name  string `json:"name"`

	// Token identifies the pod, and Beat is incremented for as long as the pod runs.
	Token string `json:"token"`
	Beat  int64  `json:"beat"`

	// Backup is the id of the backup that is restored. Locks of older releases have none, and stay
	// after some failures though the database is whole.
	Backup string `json:"backup,omitempty"`

	// Began means that the database held nothing that must be kept: what it holds now was written
	// by the Restore.
	Began bool `json:"began,omitempty"`

	// Restored means that the Restore has written all of the backup. What the database holds since
	// then may have been written by other clients as well.
	Restored bool `json:"restored,omitempty"`
}

// Record returns the lock as it is stored. Equal locks have equal records.
func (l *Lock) Record() (string, error) {
	b, err := json.Marshal(l)
	return string(b), err
}

// ReadLock parses a lock from its record.
func ReadLock(record string) (*Lock, error) {
	l := &Lock{}
	return l, json.Unmarshal([]byte(record), l)
}

// Records returns the records of two locks, each of which is "" for nil.
func Records(from, to *Lock) (was, is string, err error) {
	for _, r := range []struct {
		lock *Lock
		into *string
	}{{from, &was}, {to, &is}} {
		if r.lock == nil {
			continue
		}
		if *r.into, err = r.lock.Record(); err != nil {
			return "", "", err
		}
	}
	return was, is, nil
}
