package main

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestMirrorIn(t *testing.T) {
	cases := map[string]struct {
		reason  string
		content string
		deb822  bool
		want    string
	}{
		"Deb822": {
			reason: "A stanza's mirror is found among comments and several suites.",
			content: `Types: deb
# An older address of the same.
URIs: http://mirror.test/debian
Suites: bookworm bookworm-updates
Components: main
Signed-By: /usr/share/keyrings/debian-archive-keyring.gpg
`,
			deb822: true,
			want:   "http://mirror.test/debian",
		},
		"Deb822Security": {
			reason: "An archive of security updates cannot make a whole system.",
			content: `Types: deb
URIs: http://mirror.test/debian-security
Suites: bookworm-security
Components: main

Types: deb deb-src
URIs: http://mirror.test/debian
Suites: trixie
Components: main
`,
			deb822: true,
			want:   "http://mirror.test/debian",
		},
		"Deb822Continued": {
			reason:  "A field may go on in the next line.",
			content: "Types: deb\nURIs:\n http://mirror.test/debian\nSuites: trixie\nComponents: main contrib\n",
			deb822:  true,
			want:    "http://mirror.test/debian",
		},
		"Deb822Disabled": {
			reason:  "A source that is switched off is none.",
			content: "Enabled: no\nTypes: deb\nURIs: http://mirror.test/debian\nSuites: trixie\nComponents: main\n",
			deb822:  true,
		},
		"OneLine": {
			reason:  "The older format, with options and a comment.",
			content: "# main archive\ndeb-src http://mirror.test/source trixie main\ndeb [arch=amd64 signed-by=/k.gpg] http://mirror.test/debian trixie main # here\n",
			want:    "http://mirror.test/debian",
		},
		"OtherArchives": {
			reason:  "Neither another vendor's archive nor another distribution's is Debian.",
			content: "deb http://vendor.test/apt cloud-sdk-bookworm main\ndeb http://mirror.test/ubuntu noble main\n",
		},
		"NoNetworkScheme": {
			reason:  "debootstrap does not read lists of mirrors.",
			content: "deb mirror+file:/etc/apt/mirrors.list trixie main\n",
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(tc.want, mirrorIn(tc.content, tc.deb822)); diff != "" {
				t.Errorf("\n%s\nmirrorIn(...): -want, +got:\n%s", tc.reason, diff)
			}
		})
	}
}
