package engine

import (
	"encoding/json"
)

// LockName is the schema, table or collection that a Lock lies in. No dump holds
// it, Clear leaves it, and a database that holds nothing else is empty.
const LockName = "storeplane_restore"

// A Lock is a restore's on a database. It lies in the database itself, the one
// place that all see who restore into it, and stays there when a pod is killed.
type Lock struct {
	// Owner is the UID of the Restore, and Name its namespace and name.
	Owner string `json:"owner"`
	Name  string `json:"name"`

	// Token is the pod's, and Beat goes up for as long as the pod lives.
	Token string `json:"token"`
	Beat  int64  `json:"beat"`

	// Began says that the database held nothing that may not be dropped: what it
	// holds now is the Restore's.
	Began bool `json:"began,omitempty"`
}

// Record of the lock, as it is kept. The same lock is the same text.
func (l *Lock) Record() (string, error) {
	b, err := json.Marshal(l)
	return string(b), err
}

// ReadLock from its record.
func ReadLock(record string) (*Lock, error) {
	l := &Lock{}
	return l, json.Unmarshal([]byte(record), l)
}

// Records of two locks, each of which is "" for none.
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
