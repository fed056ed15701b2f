package databasecluster

import (
	"testing"

	"github.com/storeplane/storeplane/functions/databasecluster/engine"
)

// TestMethods: what an engine does not have is refused.
func TestMethods(t *testing.T) {
	dumps := engine.Traits{Name: "third"}
	logs := engine.Traits{Name: "mysql", LogArchiver: "archive"}
	archives := engine.Traits{Name: "postgresql", Archives: true}
	for name, tc := range map[string]struct {
		reason, method string
		traits         engine.Traits
		isVolume       bool
		want           string
	}{
		"Default":  {reason: "Each engine has its own.", traits: dumps},
		"Physical": {reason: "Nothing archives the log of an engine that has dumps alone.", method: "physical", traits: dumps, want: "backup.method physical is not available with engine third, whose databases are dumped: leave it out"},
		"Logs":     {reason: "A pod does.", method: "physical", traits: logs},
		"Volume":   {reason: "It cannot mount a volume of another node.", method: "physical", traits: logs, isVolume: true, want: "backup.method physical needs an object store with engine mysql: a volume claim is mounted on one node, and binary logs come from all: name another backup.destination, or leave the method out"},
		"Dumps":    {reason: "Dumps can lie there.", method: "logical", traits: logs, isVolume: true},
		"Servers":  {reason: "The servers archive it.", method: "physical", traits: archives, isVolume: true},
		"Logical":  {reason: "Their databases are not dumped by the claim.", method: "logical", traits: archives, want: "backup.method logical is not available with engine postgresql, whose backups are physical: leave it out, and create a Backup of method logical beside the claim"},
	} {
		t.Run(name, func(t *testing.T) {
			got := ""
			if err := checkMethod(tc.method, &tc.traits, tc.isVolume); err != nil {
				got = err.Error()
			}
			if got != tc.want {
				t.Errorf("%s\ncheckMethod(): want %q, got %q", tc.reason, tc.want, got)
			}
		})
	}
}
