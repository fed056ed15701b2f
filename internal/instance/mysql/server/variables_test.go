package server

import "testing"

func TestConstant(t *testing.T) {
	for value, want := range map[string]string{
		"200": "200", "-1": "-1", "2.5": "2.5", "64M": "67108864", "1g": "1073741824", "16K": "16384",
		"ON": "'ON'", "true": "'ON'", "False": "'OFF'", "": "''", "STRICT_TRANS_TABLES": "'STRICT_TRANS_TABLES'", "+02:00": "'+02:00'", "1.5M": "'1.5M'",
		"9999999999999999999K": "'9999999999999999999K'", "9223372036854775807K": "'9223372036854775807K'",
		`it's \`: `'it''s \\'`, "64M; DROP": "'64M; DROP'",
	} {
		if got := constant(value); got != want {
			t.Errorf("constant(%q): want %s, got %s", value, want, got)
		}
	}
}

func TestTook(t *testing.T) {
	for name, tc := range map[string]struct {
		asked, shown string
		want         bool
	}{
		"Same":     {asked: "200", shown: "200", want: true},
		"Suffix":   {asked: "64M", shown: "67108864", want: true},
		"Float":    {asked: "2.5", shown: "2.500000", want: true},
		"Switch":   {asked: "1", shown: "ON", want: true},
		"Text":     {asked: "ansi", shown: "REAL_AS_FLOAT,ANSI", want: true},
		"Rounded":  {asked: "100000000", shown: "99999744", want: true},
		"Megabyte": {asked: "100000000", shown: "99614720", want: true},
		"Clamped":  {asked: "1000000", shown: "100000"},
		"Bound":    {asked: "4000", shown: "2000"},
		"Least":    {asked: "1", shown: "1024"},
		"Near":     {asked: "100001", shown: "100000"},
		"Zero":     {asked: "100", shown: "0"},
	} {
		if got := Took(tc.asked, tc.shown); got != tc.want {
			t.Errorf("%s: Took(%q, %q): want %t, got %t", name, tc.asked, tc.shown, tc.want, got)
		}
	}
}
