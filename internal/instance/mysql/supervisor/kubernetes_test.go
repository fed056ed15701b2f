package supervisor

import (
	"net"
	"testing"
)

// TestAreAll: a name leads to a server if all of its addresses are the server's.
func TestAreAll(t *testing.T) {
	_, four, _ := net.ParseCIDR("10.88.0.0/16")
	_, six, _ := net.ParseCIDR("fd00::/64")
	four.IP, six.IP = net.ParseIP("10.88.1.5"), net.ParseIP("fd00::5")
	own := []net.Addr{four, six}
	for name, tc := range map[string]struct {
		found []string
		want  bool
	}{
		"Own":    {found: []string{"10.88.1.5"}, want: true},
		"Both":   {found: []string{"fd00::5", "10.88.1.5"}, want: true},
		"Before": {found: []string{"10.88.1.4"}},
		"Either": {found: []string{"10.88.1.5", "10.88.1.4"}},
		"None":   {},
	} {
		if got := areAll(tc.found, own); got != tc.want {
			t.Errorf("%s: areAll(%v): want %t, got %t", name, tc.found, tc.want, got)
		}
	}
}
