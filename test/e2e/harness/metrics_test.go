package harness

import "testing"

func TestSum(t *testing.T) {
	m, err := parseMetrics([]byte(`# TYPE calls counter
calls{kind="a",result="ok"} 3
calls{kind="b",result="ok"} 4
calls{kind="b",result="error"} 1
# TYPE seconds histogram
seconds_bucket{kind="a",le="1"} 2
seconds_bucket{kind="a",le="+Inf"} 5
seconds_sum{kind="a"} 9
seconds_count{kind="a"} 5
# TYPE up gauge
up 1
`))
	if err != nil {
		t.Fatal(err)
	}
	cases := map[string]struct {
		reason string
		name   string
		labels map[string]string
		want   float64
	}{
		"All":       {reason: "Without labels all count.", name: "calls", want: 8},
		"Some":      {reason: "With labels those count that have them.", name: "calls", labels: map[string]string{"result": "ok"}, want: 7},
		"One":       {reason: "All of the labels count.", name: "calls", labels: map[string]string{"kind": "b", "result": "error"}, want: 1},
		"NoSuch":    {reason: "What is not there is nothing.", name: "others", want: 0},
		"NoLabel":   {reason: "A series without the label does not count.", name: "up", labels: map[string]string{"kind": "a"}, want: 0},
		"Histogram": {reason: "Of a histogram the observations count.", name: "seconds", want: 5},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if got := m.Sum(tc.name, tc.labels); got != tc.want {
				t.Errorf("%s\nSum(): want %v, got %v", tc.reason, tc.want, got)
			}
		})
	}
}
