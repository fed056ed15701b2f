package text

import "testing"

func TestLine(t *testing.T) {
	cases := map[string]struct{ reason, in, want string }{
		"Short":     {reason: "What fits stays.", in: "abcde", want: "abcde"},
		"Long":      {reason: "What does not is cut, visibly.", in: "abcdef", want: "abcde…"},
		"Character": {reason: "No character is cut in two: a response must be valid UTF-8.", in: "abcdéf", want: "abcd…"},
		"Lines":     {reason: "Lines become one.", in: "a\n\tb\n", want: "a b"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if got := Line(tc.in, 5); got != tc.want {
				t.Errorf("%s\nLine(%q): want %q, got %q", tc.reason, tc.in, tc.want, got)
			}
		})
	}
}

func TestCount(t *testing.T) {
	for want, got := range map[string]string{"0 pods": Count(0, "pod"), "1 pod": Count(1, "pod"), "3 new servers": Count(3, "new server"), "1 byte": Count(int64(1), "byte")} {
		if got != want {
			t.Errorf("Count(): want %q, got %q", want, got)
		}
	}
}
