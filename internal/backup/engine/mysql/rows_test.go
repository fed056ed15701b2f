package mysql

import (
	"bytes"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
)

func TestNormalizer(t *testing.T) {
	special := columns{"a": {"total": omit}, "odd`": {"first": omit, "last": omit}, "v": {"meaning": binary}}
	cases := map[string]struct {
		reason, dump, want string
		wrong              string
	}{
		"Values": {
			reason: "Values of the columns are left out, whatever is in the strings beside them.",
			dump:   "INSERT INTO `a` (`id`, `total`, `note`) VALUES\n(1,2.5,'x,\\'),(\\\\'),\n(2,NULL,''),\n(3,'a,b)','c');\n-- end\n",
			want:   "INSERT INTO `a` (`id`, `note`) VALUES\n(1,'x,\\'),(\\\\'),\n(2,''),\n(3,'c');\n-- end\n",
		},
		"FirstAndLast": {
			reason: "Commas stay between the values that are left.",
			dump:   "INSERT INTO `odd``` (`first`, `x`, `y`, `last`) VALUES\n(0x00,1,_binary '2',3);\n",
			want:   "INSERT INTO `odd``` (`x`, `y`) VALUES\n(1,_binary '2');\n",
		},
		"Binary": {
			reason: "A string is marked as binary, and NULL is none.",
			dump:   "INSERT INTO `v` (`meaning`, `id`) VALUES\n('\\0\\'a',1),\n(NULL,2),\n(0x00,'3');\n",
			want:   "INSERT INTO `v` (`meaning`, `id`) VALUES\n(_binary '\\0\\'a',1),\n(NULL,2),\n(0x00,'3');\n",
		},
		"SameLine": {
			reason: "With names of columns, mariadb-dump writes the first row behind VALUES.",
			dump:   "INSERT INTO `a` (`id`, `total`) VALUES (1,2),\n(3,4);\nINSERT INTO `b` (` VALUES`, `total`) VALUES (1,2);\n",
			want:   "INSERT INTO `a` (`id`) VALUES\n(1),\n(3);\nINSERT INTO `b` (` VALUES`, `total`) VALUES\n(1,2);\n",
		},
		"Unnamed": {
			reason: "Where they are not needed, no names are written.",
			dump:   "INSERT INTO `b` VALUES\n(1),\n(2);\n",
			want:   "INSERT INTO `b` VALUES\n(1),\n(2);\n",
		},
		"Others": {
			reason: "Other tables and lines stay as they are.",
			dump:   "INSERT INTO `b` (`total`) VALUES\n(1),\n(2);\n\nI\nDELIMITER\nCREATE TABLE `a` (\n  `total` int\n);\n",
			want:   "INSERT INTO `b` (`total`) VALUES\n(1),\n(2);\n\nI\nDELIMITER\nCREATE TABLE `a` (\n  `total` int\n);\n",
		},
		"Routines": {
			reason: "A routine may contain such a statement.",
			dump:   "DELIMITER ;;\nCREATE PROCEDURE `p`()\nINSERT INTO `a` (`id`, `total`) VALUES\n(1,2) ;;\nDELIMITER ;\nINSERT INTO `a` (`id`, `total`) VALUES\n(1,2);\n",
			want:   "DELIMITER ;;\nCREATE PROCEDURE `p`()\nINSERT INTO `a` (`id`, `total`) VALUES\n(1,2) ;;\nDELIMITER ;\nINSERT INTO `a` (`id`) VALUES\n(1);\n",
		},
		"Trigger": {
			reason: "A semicolon at the end of a trigger would be in a comment, and others stay.",
			dump:   "DELIMITER ;;\n/*!50003 TRIGGER `t` BEGIN\nSET @a = 1; \nEND; \n*/;;\n/*!50003 TRIGGER `u` DO 1 \n*/;;\nSET @a = 'b; \n*/ c' ;;\nDELIMITER ;\n-- end\n",
			want:   "DELIMITER ;;\n/*!50003 TRIGGER `t` BEGIN\nSET @a = 1; \nEND \n*/;;\n/*!50003 TRIGGER `u` DO 1 \n*/;;\nSET @a = 'b; \n*/ c' ;;\nDELIMITER ;\n-- end\n",
		},
		"NoNames": {
			reason: "Without names of columns it is not known which value to leave out.",
			dump:   "INSERT INTO `a` VALUES\n(1,2);\n",
			wrong:  "the dump is not as mariadb-dump writes them: it has rows without the names of their columns",
		},
		"MoreValues": {
			reason: "Neither is it for a value beyond the columns.",
			dump:   "INSERT INTO `a` (`total`) VALUES\n(1,2);\n",
			wrong:  "the dump is not as mariadb-dump writes them: it has a row with more values than columns",
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			var got bytes.Buffer
			_, err := (&normalizer{to: &got, special: special}).Write([]byte(tc.dump))
			if tc.wrong != "" {
				if err == nil || err.Error() != tc.wrong {
					t.Errorf("\n%s\nWrite(): want %q, got %v", tc.reason, tc.wrong, err)
				}
				return
			}
			if diff := cmp.Diff(tc.want, got.String()); diff != "" || err != nil {
				t.Errorf("\n%s\nWrite(): %v -want, +got:\n%s", tc.reason, err, diff)
			}
		})
	}
}

// TestNormalizerPieces: whatever the values, and the pieces in which a dump arrives, exactly the values of the
// columns are left out.
func TestNormalizerPieces(t *testing.T) {
	value := rapid.OneOf(
		rapid.SampledFrom([]string{"NULL", "1", "-2.5e10", "0x27", "''", `'\''`, `'\\'`, `'),('`, `'a\'),\n(;` + "`'"}),
		rapid.Map(rapid.String(), func(s string) string {
			return "'" + strings.NewReplacer(`\`, `\\`, `'`, `\'`, "\n", `\n`).Replace(s) + "'"
		}),
	)
	rapid.Check(t, func(t *rapid.T) {
		width := rapid.IntRange(2, 5).Draw(t, "width")
		special := columns{"t": {}}
		var all, kept []string
		keeps := make([]bool, width)
		for i := range width {
			name := fmt.Sprintf("c%d", i)
			keeps[i] = i == width/2 || rapid.Bool().Draw(t, "keeps")
			if all = append(all, "`"+name+"`"); keeps[i] {
				kept = append(kept, "`"+name+"`")
			} else {
				special["t"][name] = omit
			}
		}
		var dump, want []string
		for range rapid.IntRange(1, 4).Draw(t, "rows") {
			var row, rest []string
			for i := range width {
				v := value.Draw(t, "value")
				if row = append(row, v); keeps[i] {
					rest = append(rest, v)
				}
			}
			dump, want = append(dump, "("+strings.Join(row, ",")+")"), append(want, "("+strings.Join(rest, ",")+")")
		}
		text := func(columns []string, behind string, rows []string) string {
			return "-- t\nINSERT INTO `t` (" + strings.Join(columns, ", ") + ") VALUES" + behind + strings.Join(rows, ",\n") + ";\n-- Dump completed\n"
		}
		var got bytes.Buffer
		o := &normalizer{to: &got, special: special}
		for rest := text(all, rapid.SampledFrom([]string{" ", "\n"}).Draw(t, "behind"), dump); rest != ""; {
			n := rapid.IntRange(1, len(rest)).Draw(t, "piece")
			if _, err := o.Write([]byte(rest[:n])); err != nil {
				t.Fatalf("Write(): %v", err)
			}
			rest = rest[n:]
		}
		if diff := cmp.Diff(text(kept, "\n", want), got.String()); diff != "" {
			t.Errorf("-want, +got:\n%s", diff)
		}
	})
}
