package mysql

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
)

func TestCounter(t *testing.T) {
	const end = "-- Dump completed on 2026-01-01  0:00:00\n"
	cases := map[string]struct {
		reason, dump string
		want         map[string]int64
		wrong        string
	}{
		"Rows": {
			reason: "Each row is on a line of its own; a table without rows counts too.",
			dump:   "CREATE TABLE `a` (\n  `id` int\n);\nCREATE TABLE `b``c` (\n);\nINSERT INTO `a` VALUES\n(1,'x;'),\n(2,'(y');\nINSERT INTO `a` (`id`) VALUES\n(3);\n" + end,
			want:   map[string]int64{"a": 3, "b`c": 0},
		},
		"Routines": {
			reason: "What stands between delimiters is not data.",
			dump:   "DELIMITER ;;\nCREATE PROCEDURE `p`()\nBEGIN\nINSERT INTO `a` VALUES\n(1);\nEND ;;\nDELIMITER ;\n" + end,
			want:   map[string]int64{},
		},
		"CutOff": {
			reason: "A dump says that it is complete.",
			dump:   "CREATE TABLE `a` (\n);\nINSERT INTO `a` VALUES\n(1);\n",
			wrong:  "the dump is not as mariadb-dump writes them: its last line is missing",
		},
		"OneLine": {
			reason: "Other tools write rows otherwise: better an error than a wrong number.",
			dump:   "INSERT INTO `a` VALUES (1),(2);\n" + end,
			wrong:  "the dump is not as mariadb-dump writes them: it has rows that are not on lines of their own",
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			c := newCounter()
			_, _ = c.Write([]byte(tc.dump))
			got, err := c.result()
			if tc.wrong != "" {
				if err == nil || err.Error() != tc.wrong {
					t.Errorf("\n%s\nresult(): want %q, got %v", tc.reason, tc.wrong, err)
				}
				return
			}
			if diff := cmp.Diff(tc.want, got); diff != "" || err != nil {
				t.Errorf("\n%s\nresult(): %v -want, +got:\n%s", tc.reason, err, diff)
			}
		})
	}
}

// TestCounterPieces: rows are counted correctly, whatever the pieces in which a dump arrives.
func TestCounterPieces(t *testing.T) {
	dump := "CREATE TABLE `t` (\n);\nINSERT INTO `t` VALUES\n(1,'" + strings.Repeat("x", 2*lineSize) + "'),\n(2,'');\n-- Dump completed\n"
	rapid.Check(t, func(t *rapid.T) {
		c := newCounter()
		for rest := dump; rest != ""; {
			n := rapid.IntRange(1, len(rest)).Draw(t, "piece")
			_, _ = c.Write([]byte(rest[:n]))
			rest = rest[n:]
		}
		got, err := c.result()
		if err != nil || got["t"] != 2 {
			t.Errorf("counted %v: %v", got, err)
		}
	})
}
