package main

import (
	"testing"

	"github.com/alecthomas/kong"
	"github.com/google/go-cmp/cmp"
)

// TestCommands: the arguments with which pods and PostgreSQL run this program.
func TestCommands(t *testing.T) {
	for _, name := range []string{"POD_NAME", "POD_NAMESPACE", "CLUSTER_SCOPE"} {
		t.Setenv(name, "x")
	}
	for name, args := range map[string][]string{
		"Manager": {"run"},
		"Hook":    {"stop"},
		"Promote": {"fence"},
		"Image":   {"start", "/etc/patroni"},
		"Archive": {"pgbackrest-push", "pg_wal/000000010000000000000001"},
		"Server":  {"serve", "--metrics=:9854"},
		"Method":  {"restore"},
		"Rewind":  {"rewind", "/usr/lib/postgresql/17/bin/pg_rewind", "--version", "-D", "x"},
	} {
		t.Run(name, func(t *testing.T) {
			c := &cli{}
			parser, err := kong.New(c)
			if err != nil {
				t.Fatal(err)
			}
			got, err := parser.Parse(args)
			if err != nil {
				t.Fatalf("Parse(%q): %v", args, err)
			}
			if got.Selected() == nil || got.Selected().Name != args[0] {
				t.Errorf("Parse(%q): got %s", args, got.Command())
			}
			switch name {
			case "Image":
				if diff := cmp.Diff(args[1:], c.Start.Args); diff != "" {
					t.Errorf("Patroni's arguments: -want, +got:\n%s", diff)
				}
			case "Rewind":
				if diff := cmp.Diff(args[1:], c.Rewind.Command); diff != "" {
					t.Errorf("pg_rewind's arguments: -want, +got:\n%s", diff)
				}
			}
		})
	}
}
