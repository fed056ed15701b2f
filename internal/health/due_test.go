package health

import (
	"testing"
	"time"

	"google.golang.org/protobuf/types/known/structpb"
)

// TestDue: of pods that start and report nothing, the first that may count as failed is waited for.
func TestDue(t *testing.T) {
	now := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	pod := func(startedAt string) *structpb.Struct {
		s, err := structpb.NewStruct(map[string]any{"status": map[string]any{
			"conditions":        []any{map[string]any{"type": "PodReadyToStartContainers", "status": "True"}},
			"containerStatuses": []any{map[string]any{"name": "app", "state": map[string]any{"running": map[string]any{"startedAt": startedAt}}}},
		}})
		if err != nil {
			t.Fatal(err)
		}
		return s
	}
	got := Waiting([]*structpb.Struct{pod("2025-12-31T23:59:59Z"), pod("2025-12-31T23:59:57Z")}, now, nil)
	if want := (Wait{Due: 2 * time.Second}); got != want {
		t.Errorf("Waiting() for pods that have started: want %+v, got %+v", want, got)
	}
	got = Waiting([]*structpb.Struct{pod("2025-12-31T23:59:59Z"), pod("2025-12-31T23:59:00Z")}, now, nil)
	if got.Message == "" || got.Due != 0 {
		t.Errorf("Waiting() for pods of which one is late: want what it waits for, got %+v", got)
	}
}
