package appconfig

import (
	"maps"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
)

func TestName(t *testing.T) {
	// Deployments refer to the name, so it must not change with a release.
	if diff := cmp.Diff("shop-config-ce3140b423", Name("shop", map[string]string{"a": "1", "b": "2"})); diff != "" {
		t.Errorf("-want, +got:\n%s", diff)
	}
	if a, b := Name("shop", nil), Name("shop", map[string]string{}); a != b {
		t.Errorf("want no content to be one content, got %s and %s", a, b)
	}
	secret := Content{Secret: map[string][]byte{"a": []byte("1")}}
	if a, b := secret.Name("shop", []byte("x")), secret.Name("shop", []byte("y")); a == b {
		t.Errorf("want the name of a secret to depend on the key, got %s twice", a)
	}
	if a, b := (Content{Config: map[string]string{"a": "1"}}).Name("shop", []byte("x")), Name("shop", map[string]string{"a": "1"}); a != b {
		t.Errorf("want the name of a content without secrets to need no key, got %s and %s", a, b)
	}
	if name := Name(strings.Repeat("a", 40), nil); len(name) > 63 {
		t.Errorf("want a name of at most 63 characters, got %s", name)
	}
}

func TestIsBundle(t *testing.T) {
	cases := map[string]struct {
		reason string
		name   string
		want   bool
	}{
		"Bundle": {reason: "Ten digits after the stable name.", name: "shop-config-0123456789", want: true},
		"Stable": {reason: "The stable name is none.", name: "shop-config"},
		"Key":    {reason: "Nor is the key.", name: "shop-config-key"},
		"Letter": {reason: "The digits are hexadecimal.", name: "shop-config-012345678g"},
		"Long":   {reason: "And ten.", name: "shop-config-0123456789a"},
		"Other":  {reason: "Another application's.", name: "ashop-config-0123456789"},
		"Claim":  {reason: "An application whose name goes on.", name: "shop-config-x-config-0123456789"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if got := IsBundle("shop", tc.name); got != tc.want {
				t.Errorf("%s\nIsBundle(%s): want %t, got %t", tc.reason, tc.name, tc.want, got)
			}
		})
	}
}

// TestPropertyName: different contents have different names, wherever the difference is, and each
// name is that of a bundle.
func TestPropertyName(t *testing.T) {
	contents := rapid.Custom(func(t *rapid.T) Content {
		c := Content{Config: rapid.MapOfN(rapid.StringN(0, 2, 2), rapid.StringN(0, 2, 2), 0, 3).Draw(t, "config"), Secret: map[string][]byte{}}
		for k, v := range rapid.MapOfN(rapid.StringN(0, 2, 2), rapid.StringN(0, 2, 2), 0, 3).Draw(t, "secret") {
			c.Secret[k] = []byte(v)
		}
		return c
	})
	rapid.Check(t, func(t *rapid.T) {
		a, b := contents.Draw(t, "a"), contents.Draw(t, "b")
		same := maps.Equal(a.Config, b.Config) && maps.EqualFunc(a.Secret, b.Secret, func(x, y []byte) bool { return string(x) == string(y) })
		if a.Equal(b) != same {
			t.Fatalf("want Equal %t of %v and %v", same, a, b)
		}
		x, y := a.Name("shop", []byte("key")), b.Name("shop", []byte("key"))
		if (x == y) != same {
			t.Fatalf("want the same name %t of %v and %v, got %s and %s", same, a, b, x, y)
		}
		if !IsBundle("shop", x) {
			t.Fatalf("want a bundle's name, got %s", x)
		}
	})
}
