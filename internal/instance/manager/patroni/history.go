package patroni

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/storeplane/storeplane/internal/instance"
)

// History is the history of the primary's timeline.
type History struct {
	// Ancestors are those of the timeline, oldest first.
	Ancestors []instance.Ancestor
}

// Complete reports whether the history leads up to a timeline. The primary writes it some
// seconds after its promotion.
func (h *History) Complete(timeline int64) bool {
	n := len(h.Ancestors)
	return timeline == 1 && n == 0 || n > 0 && h.Ancestors[n-1].Timeline == timeline-1
}

// History returns what GET /history contains: a list of [timeline, position in bytes, reason,
// …].
func (c *Client) History(ctx context.Context) (*History, error) {
	var lines [][]json.RawMessage
	if err := c.read(ctx, "/history", &lines); err != nil {
		return nil, err
	}
	return readHistory(lines)
}

// HistoryAnnotation of Patroni's configuration contains the same as GET /history.
const HistoryAnnotation = "history"

// Published returns the timeline that a history leads up to, or 0 if it cannot be parsed.
func Published(history string) int64 {
	var lines [][]json.RawMessage
	if json.Unmarshal([]byte(history), &lines) != nil {
		return 0
	}
	h, err := readHistory(lines)
	if err != nil || len(h.Ancestors) == 0 {
		return 0
	}
	return h.Ancestors[len(h.Ancestors)-1].Timeline + 1
}

func readHistory(lines [][]json.RawMessage) (*History, error) {
	h := &History{}
	for _, line := range lines {
		if len(line) < 2 {
			return nil, fmt.Errorf("cannot read a history of timelines with %d columns", len(line))
		}
		var timeline int64
		var end uint64
		if err := json.Unmarshal(line[0], &timeline); err != nil {
			return nil, fmt.Errorf("cannot read a timeline of the history: %w", err)
		}
		if err := json.Unmarshal(line[1], &end); err != nil {
			return nil, fmt.Errorf("cannot read a position of the history: %w", err)
		}
		h.Ancestors = append(h.Ancestors, instance.Ancestor{Timeline: timeline, End: instance.LSN(end)})
	}
	return h, nil
}
