package supervisor

import (
	"slices"
	"testing"
	"time"

	"github.com/storeplane/storeplane/internal/instance/mysql/group"
)

// TestComparison: a member is started again only after it was deserted or deceived for long, without a pause.
func TestComparison(t *testing.T) {
	member := func(view string) *group.Report {
		return &group.Report{Running: true, State: group.Online, View: view, Members: []group.Member{
			{Address: "a", State: group.Online}, {Address: "b", State: group.Online}, {Address: "c", State: group.Online},
		}}
	}
	whole := map[string]group.Report{"b": *member("1"), "c": *member("1")}
	out := group.Report{Running: true, State: group.Offline}
	deserted := map[string]group.Report{"b": out, "c": out}
	deceived := map[string]group.Report{"b": out, "c": *member("1")}
	type sample struct {
		view   string
		others map[string]group.Report
		after  time.Duration
	}
	times := func(n int, view string, others map[string]group.Report) []sample {
		return slices.Repeat([]sample{{view, others, comparePeriod}}, n)
	}
	for name, c := range map[string]struct {
		reason  string
		samples []sample
		primary bool
		want    bool
	}{
		"Deserted":     {reason: "All others have left for 20 s.", samples: times(desertedTimes, "1", deserted), want: true},
		"NotLong":      {reason: "MySQL may notice it by itself.", samples: times(desertedTimes-1, "1", deserted)},
		"Deceived":     {reason: "One has left for a minute, and is shown as a member.", samples: times(deceivedTimes, "1", deceived), want: true},
		"Primary":      {reason: "A primary waits until others that are deceived, too, were started again.", samples: times(primaryTimes-1, "1", deceived), primary: true},
		"LastResort":   {reason: "It does not wait without end.", samples: times(primaryTimes, "1", deceived), primary: true, want: true},
		"Leaves":       {reason: "It may take its time to leave.", samples: times(deceivedTimes-1, "1", deceived)},
		"Recovered":    {reason: "They are back in between.", samples: slices.Concat(times(desertedTimes-1, "1", deserted), times(1, "1", whole), times(desertedTimes-1, "1", deserted))},
		"NewView":      {reason: "A server that installs views communicates.", samples: slices.Concat(times(desertedTimes-1, "0", deserted), times(desertedTimes-1, "1", deserted))},
		"Frozen":       {reason: "Nothing is known of the time in which this supervisor was frozen.", samples: slices.Concat(times(desertedTimes-1, "1", deserted), []sample{{"1", deserted, time.Minute}})},
		"AfterFreezes": {reason: "It counts anew after that.", samples: slices.Concat(times(desertedTimes-1, "1", deserted), []sample{{"1", deserted, time.Minute}}, times(desertedTimes-1, "1", deserted)), want: true},
	} {
		t.Run(name, func(t *testing.T) {
			compared, at, got := comparison{}, time.Now(), false
			for _, s := range c.samples {
				at = at.Add(s.after)
				own := member(s.view)
				own.Primary = c.primary
				got = compared.add(own, s.others, at) || got
			}
			if got != c.want {
				t.Errorf("%s\nadd(): got %t, want %t", c.reason, got, c.want)
			}
		})
	}
}
