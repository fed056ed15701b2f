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
