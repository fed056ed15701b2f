package main

import "testing"

func TestSum(t *testing.T) {
	type row [][]byte
	a, b, none, empty := []byte("a"), []byte("b"), []byte(nil), []byte{}
	cases := map[string]struct {
		reason    string
		one, same []row
		equal     bool
	}{
		"Order":     {"The order of rows plays no part", []row{{a}, {b}}, []row{{b}, {a}}, true},
		"Value":     {"Another value is another row", []row{{a}, {b}}, []row{{a}, {a}}, false},
		"Twice":     {"A row that is there twice is not as good as none", []row{{a}, {a}, {b}}, []row{{b}, {b}, {b}}, false},
		"Border":    {"Values do not run into each other", []row{{[]byte("ab"), empty}}, []row{{a, b}}, false},
		"NoneEmpty": {"NULL is not the empty value", []row{{none}}, []row{{empty}}, false},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			one, same := &sum{}, &sum{}
			for _, r := range tc.one {
				one.add(r...)
			}
			for _, r := range tc.same {
				same.add(r...)
			}
			if (*one == *same) != tc.equal {
				t.Errorf("\n%s\nsums: %s and %s, want equal: %t", tc.reason, one, same, tc.equal)
			}
		})
	}
}
