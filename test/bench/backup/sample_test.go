package main

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestSampleOf(t *testing.T) {
	cases := map[string]struct {
		reason string
		log    string
		want   sample
		fails  bool
	}{
		"Last":    {reason: "What the program says comes before", log: "dumping\nmeasured 10.5 12.75 104857600\n", want: sample{seconds: 2.25, mebibytes: 100}},
		"Missing": {reason: "A script that ended early measured nothing", log: "dumping\n", fails: true},
		"Broken":  {reason: "A kernel that does not count is told", log: "measured 1 2 none\n", fails: true},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			have, err := sampleOf(tc.log)
			if (err != nil) != tc.fails || cmp.Diff(tc.want, have, cmp.AllowUnexported(sample{})) != "" {
				t.Errorf("\n%s\nsampleOf(): %v, %v", tc.reason, have, err)
			}
		})
	}
}

func TestMedian(t *testing.T) {
	have := median([]sample{{3, 10}, {1, 30}, {2, 20}})
	if want := (sample{2, 30}); have != want {
		t.Errorf("\nThe time in the middle, the most memory\nmedian(): %v, want %v", have, want)
	}
	if have := median([]sample{{3, 0}, {1, 0}}); have.seconds != 2 {
		t.Errorf("\nOf two it is what is between them\nmedian(): %v", have)
	}
}
