package main

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// sample is one measurement.
type sample struct {
	seconds float64

	// mebibytes is the highest memory usage of the pod, or 0 if it was not measured.
	mebibytes float64
}

// sampleOf parses the log of a measurement.
func sampleOf(log string) (sample, error) {
	for line := range strings.Lines(log) {
		f := strings.Fields(line)
		if len(f) != 4 || f[0] != "measured" {
			continue
		}
		var n [3]float64
		for i := range n {
			var err error
			if n[i], err = strconv.ParseFloat(f[i+1], 64); err != nil {
				return sample{}, fmt.Errorf("cannot read a measurement: %w", err)
			}
		}
		return sample{seconds: n[1] - n[0], mebibytes: n[2] / (1 << 20)}, nil
	}
	return sample{}, fmt.Errorf("cannot find a measurement in %q", log)
}

// median returns the median of the times and the maximum of the memory.
func median(samples []sample) sample {
	if len(samples) == 0 {
		return sample{}
	}
	out := sample{}
	var seconds []float64
	for _, s := range samples {
		seconds = append(seconds, s.seconds)
		out.mebibytes = max(out.mebibytes, s.mebibytes)
	}
	slices.Sort(seconds)
	out.seconds = (seconds[(len(seconds)-1)/2] + seconds[len(seconds)/2]) / 2
	return out
}

func line(what string, s sample) string {
	memory := ""
	if s.mebibytes > 0 {
		memory = fmt.Sprintf("%7.0f MiB at most", s.mebibytes)
	}
	return strings.TrimRight(fmt.Sprintf("%-28s %7.1f s %s", what, s.seconds, memory), " ")
}
