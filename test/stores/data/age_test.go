package main

import (
	"encoding/json"
	"testing"
)

func TestAge(t *testing.T) {
	id, err := older("20261121T153000Z-abcd", 30)
	if err != nil || id != "20261022T153000Z-abcd" {
		t.Fatalf("older(): %q, %v", id, err)
	}
	raw, err := agedManifest([]byte(`{"version":1,"id":"x","started":"2026-11-21T15:30:00.5Z","finished":"2026-11-21T15:31:00Z","dumps":[{"bytes":7}]}`), id, 30)
	if err != nil {
		t.Fatal(err)
	}
	have := struct {
		Version int
		ID      string
		Started string
		Dumps   []struct{ Bytes int }
	}{}
	if err := json.Unmarshal(raw, &have); err != nil {
		t.Fatal(err)
	}
	if have.ID != id || have.Started != "2026-10-22T15:30:00.5Z" || have.Version != 1 || have.Dumps[0].Bytes != 7 {
		t.Errorf("\nAll but the id and the times stays\nagedManifest(): %s", raw)
	}
}
