package gtid

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

const (
	one = "3e11fa47-71ca-11e1-9e33-c80aa9429562"
	two = "4e11fa47-71ca-11e1-9e33-c80aa9429562"
)

func TestParse(t *testing.T) {
	for name, c := range map[string]struct{ reason, text, want, err string }{
		"Empty":       {reason: "A new server has executed nothing.", text: "", want: ""},
		"One":         {reason: "A single transaction is printed without an end.", text: one + ":7", want: one + ":7"},
		"Touching":    {reason: "Intervals that touch are one.", text: one + ":4-5:1-3", want: one + ":1-5"},
		"Overlapping": {reason: "Intervals that overlap are one.", text: one + ":1-8:3-5,\n" + one + ":7-9", want: one + ":1-9"},
		"Gap":         {reason: "A gap stays.", text: one + ":1-3:5", want: one + ":1-3:5"},
		"Lines":       {reason: "MySQL breaks lines between entries.", text: two + ":1-2,\n" + one + ":1", want: one + ":1," + two + ":1-2"},
		"UpperCase":   {reason: "Letters of a UUID may be capital ones.", text: strings.ToUpper(one) + ":1", want: one + ":1"},
		"Tag":         {reason: "What follows a tag has the tag.", text: one + ":1-5:tag:1-3:8", want: one + ":1-5," + one + ":tag:1-3:8"},
		"NoUUID":      {reason: "Other text is refused.", text: "x:1", err: `cannot read GTID set "x:1": "x" is no UUID`},
		"NoInterval":  {reason: "A UUID alone is refused.", text: one, err: "cannot read GTID set \"" + one + "\": \"" + one + "\" has no interval"},
		"Zero":        {reason: "Transactions begin at 1.", text: one + ":0", err: "cannot read GTID set \"" + one + ":0\": \"0\" is no number of a transaction"},
		"Backwards":   {reason: "An interval cannot end before it begins.", text: one + ":3-2", err: "cannot read GTID set \"" + one + ":3-2\": interval \"3-2\" ends before it begins"},
	} {
		t.Run(name, func(t *testing.T) {
			s, err := Parse(c.text)
			switch {
			case c.err != "":
				if err == nil || err.Error() != c.err {
					t.Errorf("%s\nParse(%q): got error %v, want %s", c.reason, c.text, err, c.err)
				}
			case err != nil:
				t.Errorf("%s\nParse(%q): %v", c.reason, c.text, err)
			case s.String() != c.want:
				t.Errorf("%s\nParse(%q): got %s, want %s", c.reason, c.text, s, c.want)
			}
		})
	}
}

// model is a set as a map of its transactions.
type model map[string]bool

func draw(t *rapid.T, label string) (Set, model) {
	m, text := model{}, []string{}
	sources := []string{one, two, two + ":tag"}
	for i := range rapid.IntRange(0, 6).Draw(t, label) {
		source := rapid.SampledFrom(sources).Draw(t, fmt.Sprintf("%s source %d", label, i))
		first := rapid.Int64Range(1, 12).Draw(t, fmt.Sprintf("%s first %d", label, i))
		last := first + rapid.Int64Range(0, 4).Draw(t, fmt.Sprintf("%s length %d", label, i))
		text = append(text, fmt.Sprintf("%s:%d-%d", source, first, last))
		for n := first; n <= last; n++ {
			m[fmt.Sprintf("%s %d", source, n)] = true
		}
	}
	s, err := Parse(strings.Join(text, ","))
	if err != nil {
		t.Fatal(err)
	}
	return s, m
}

func (m model) without(other model) model {
	out := model{}
	for k := range m {
		if !other[k] {
			out[k] = true
		}
	}
	return out
}

// TestLaws: sets behave like sets, and a text that is parsed again is the same.
func TestLaws(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		a, ma := draw(t, "a")
		b, mb := draw(t, "b")
		if got, want := a.Len(), int64(len(ma)); got != want {
			t.Fatalf("(%s).Len(): got %d, want %d", a, got, want)
		}
		if got, want := a.Minus(b).Len(), int64(len(ma.without(mb))); got != want {
			t.Fatalf("(%s).Minus(%s): got %s", a, b, a.Minus(b))
		}
		if got, want := a.Contains(b), len(mb.without(ma)) == 0; got != want {
			t.Fatalf("(%s).Contains(%s): got %t", a, b, got)
		}
		union := a.Union(b)
		if got, want := union.Len(), int64(len(ma)+len(mb.without(ma))); got != want || !union.Contains(a) || !union.Contains(b) {
			t.Fatalf("(%s).Union(%s): got %s", a, b, union)
		}
		if got := a.Minus(b).Union(b); !got.Equal(union) {
			t.Fatalf("(%s) minus and plus (%s): got %s, want %s", a, b, got, union)
		}
		text, err := json.Marshal(a)
		again := Set{}
		if err == nil {
			err = json.Unmarshal(text, &again)
		}
		if err != nil || !again.Equal(a) {
			t.Fatalf("%s as JSON is %s, which is read as %s: %v", a, text, again, err)
		}
	})
}
