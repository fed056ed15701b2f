package main

import (
	"slices"
	"strings"
	"testing"
	"time"
)

func TestReadPoll(t *testing.T) {
	cases := map[string]struct {
		reason  string
		env     map[string]string
		options []string
		ready   bool
		err     string
	}{
		"Nothing":   {reason: "Without any options there is nothing to vote on.", env: nil},
		"One":       {reason: "One option is no choice.", env: map[string]string{"OPTIONS": "Cats"}, options: []string{"Cats"}},
		"Two":       {reason: "Two are.", env: map[string]string{"OPTIONS": "Cats,Dogs"}, options: []string{"Cats", "Dogs"}, ready: true},
		"Spaces":    {reason: "What is around an option is not part of it, and nothing is no option.", env: map[string]string{"OPTIONS": " Cats ,, Dogs,\n"}, options: []string{"Cats", "Dogs"}, ready: true},
		"Twice":     {reason: "Two options of one name could not be distinguished.", env: map[string]string{"OPTIONS": "Cats, Cats"}, err: `OPTIONS has "Cats" twice`},
		"NotATime":  {reason: "A vote that ends at nonsense is not begun.", env: map[string]string{"OPTIONS": "a,b", "CLOSES": "soon"}, err: `cannot parse CLOSES "soon"`},
		"GoodTimes": {reason: "A time is taken as it is written.", env: map[string]string{"OPTIONS": "a,b", "CLOSES": "2027-01-31T18:00:00Z"}, options: []string{"a", "b"}, ready: true},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			p, err := ReadPoll(func(k string) string { return tc.env[k] })
			if tc.err != "" {
				if err == nil || !strings.Contains(err.Error(), tc.err) {
					t.Fatalf("%s\nReadPoll(): want an error with %q, got %v", tc.reason, tc.err, err)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			if !slices.Equal(p.Options, tc.options) {
				t.Errorf("%s\nwant options %v, got %v", tc.reason, tc.options, p.Options)
			}
			if ok, wrong := p.Ready(); ok != tc.ready || ok == (wrong != "") {
				t.Errorf("%s\nReady(): want %t, got %t, %q", tc.reason, tc.ready, ok, wrong)
			}
		})
	}
}

func TestIsClosed(t *testing.T) {
	closes := time.Date(2027, time.January, 31, 18, 0, 0, 0, time.UTC)
	if p := (&Poll{}); p.IsClosed(closes) {
		t.Error("A vote without an end is never closed")
	}
	p := &Poll{Closes: closes}
	if p.IsClosed(closes) || !p.IsClosed(closes.Add(time.Second)) {
		t.Error("A vote is open up to its end, and closed after it")
	}
}

func TestReceipt(t *testing.T) {
	p := &Poll{Name: "pets", key: []byte("k")}
	again := &Poll{Name: "pets", key: []byte("k")}
	if p.Receipt("Cats") == p.Receipt("Dogs") || p.Receipt("Cats") != again.Receipt("Cats") {
		t.Error("A receipt is of one option, each time the same")
	}
	if other := (&Poll{Name: "pets", key: []byte("l")}); other.Receipt("Cats") == p.Receipt("Cats") {
		t.Error("A receipt proves the key")
	}
	if other := (&Poll{Name: "food", key: []byte("k")}); other.Receipt("Cats") == p.Receipt("Cats") {
		t.Error("A receipt is of one poll")
	}
	if none := (&Poll{Name: "pets"}); none.Receipt("Cats") != "" {
		t.Error("There is no receipt without a key")
	}
}
