package main

import (
	"testing"

	"github.com/alecthomas/kong"
	"github.com/google/go-cmp/cmp"

	"github.com/storeplane/storeplane/internal/instance"
)

// TestCommands: the arguments with which pods and PostgreSQL run this program.
func TestCommands(t *testing.T) {
	for _, name := range []string{instance.PodVariable, instance.NamespaceVariable, instance.ScopeVariable} {
		t.Setenv(name, "x")
	}
	for name, args := range map[string][]string{
		"Manager": {instance.CommandRun},
		"Hook":    {instance.CommandStop},
		"Promote": {instance.CommandFence},
		"Image":   {instance.CommandStart, instance.PatroniDir},
		"Archive": {instance.CommandPush, "pg_wal/000000010000000000000001"},
		"Server":  {instance.CommandServe, "--metrics=:9854"},
		"Method":  {instance.CommandRestore},
		"MySQL":   {instance.CommandMySQL, "--verify-host", "--allow-plaintext"},
		"Rewind":  {instance.CommandRewind, "/usr/lib/postgresql/17/bin/pg_rewind", "--version", "-D", "x"},
	} {
		t.Run(name, func(t *testing.T) {
			c := &cli{}
			parser, err := kong.New(c, vars)
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
