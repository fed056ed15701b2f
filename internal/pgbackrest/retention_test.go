package pgbackrest

import "testing"

func TestDays(t *testing.T) {
	cases := map[string]struct {
		reason, retention string
		want              int
	}{
		"None":   {reason: "The default is the API's.", retention: "", want: 30},
		"Days":   {reason: "Days are days.", retention: "7d", want: 7},
		"Weeks":  {reason: "A week has seven.", retention: "4w", want: 28},
		"Months": {reason: "A month has thirty.", retention: "12m", want: 360},
		"Hours":  {reason: "There are no hours.", retention: "12h", want: 0},
		"Zero":   {reason: "Nothing is kept for no time.", retention: "0d", want: 0},
		"Word":   {reason: "A word is no number.", retention: "xd", want: 0},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			got, err := Days(tc.retention)
			if got != tc.want || (err == nil) != (tc.want > 0) {
				t.Errorf("%s\nDays(%q): want %d, got %d, %v", tc.reason, tc.retention, tc.want, got, err)
			}
		})
	}
}
