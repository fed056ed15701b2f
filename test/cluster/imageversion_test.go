package main

import "testing"

func TestVersionPattern(t *testing.T) {
	cases := map[string]struct {
		reason string
		said   string
		want   string
	}{
		"PostgreSQL": {reason: "The release comes before the package's revision.", said: "postgres (PostgreSQL) 17.11 (Debian 17.11-0+deb13u1)\n", want: "17.11"},
		"ThreeParts": {reason: "A version may have three parts.", said: "Redis server v=8 version 8.0.2 bits=64", want: "8.0.2"},
		"None":       {reason: "A number alone is no version.", said: "build 1754"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if got := versionPattern.FindString(tc.said); got != tc.want {
				t.Errorf("%s\nversionPattern.FindString(%q): got %q, want %q", tc.reason, tc.said, got, tc.want)
			}
		})
	}
}

func TestWithTag(t *testing.T) {
	cases := map[string]struct {
		reason string
		ref    string
		want   string
	}{
		"Tagged":   {reason: "The tag is replaced.", ref: "10.88.0.1:5000/storeplane/postgresql:17", want: "10.88.0.1:5000/storeplane/postgresql:17.11"},
		"Untagged": {reason: "A registry's port is no tag.", ref: "10.88.0.1:5000/postgresql", want: "10.88.0.1:5000/postgresql:17.11"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if got := withTag(tc.ref, "17.11"); got != tc.want {
				t.Errorf("%s\nwithTag(%q, ...): got %q, want %q", tc.reason, tc.ref, got, tc.want)
			}
		})
	}
}
