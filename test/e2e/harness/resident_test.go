package harness

import "testing"

func TestResidentOf(t *testing.T) {
	cases := map[string]struct {
		reason, status, name string
		kibibytes            int64
	}{
		"Process": {reason: "As Linux writes it", status: "Name:\tmysqld\nUmask:\t0022\nVmHWM:\t  413000 kB\nVmRSS:\t  402984 kB\n", name: "mysqld", kibibytes: 402984},
		"Kernel":  {reason: "A thread of the kernel has no memory of its own", status: "Name:\tkthreadd\n", name: "kthreadd"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if program, kibibytes := residentOf(tc.status); program != tc.name || kibibytes != tc.kibibytes {
				t.Errorf("\n%s\nresidentOf(...): want %s, %d, got %s, %d", tc.reason, tc.name, tc.kibibytes, program, kibibytes)
			}
		})
	}
}
