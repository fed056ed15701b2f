package archive

import (
	"os"
	"path/filepath"
	"testing"
)

// TestAlike: a segment counts as the archive's segment of that name only if no record differs,
// whatever follows the last record.
func TestAlike(t *testing.T) {
	p := newPlace(t)
	s := p.primary("one")
	s.write() // the initial content of the cluster
	// One segment has records on its first page only, the other on half of its pages.
	few := s.write()
	s.exec("SELECT pg_logical_emit_message(true, 'test', repeat('x', 9000000))")
	many := s.write()
	s.archived()
	tool, stanza := s.tool()
	cases := map[string]struct {
		segment string
		name    string
		change  func([]byte)
		want    bool
	}{
		"Same":    {segment: few, change: func([]byte) {}, want: true},
		"Behind":  {segment: few, change: func(b []byte) { copy(b[1<<20:], b[:8192]) }, want: true},
		"End":     {segment: many, change: func(b []byte) { b[len(b)-1] = 1 }, want: true},
		"Record":  {segment: many, change: func(b []byte) { b[5<<20]++ }},
		"First":   {segment: few, change: func(b []byte) { b[0]++ }},
		"Cut":     {segment: few, change: func(b []byte) { clear(b[60:]) }},
		"Partial": {segment: few, name: few + partial, change: func(b []byte) { clear(b) }, want: true},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			content := s.segment(tc.segment)
			tc.change(content)
			if tc.name == "" {
				tc.name = tc.segment
			}
			file := filepath.Join(t.TempDir(), tc.name)
			if err := os.WriteFile(file, content, 0o600); err != nil {
				t.Fatal(err)
			}
			got, err := alike(t.Context(), tool, stanza, s.DataDir(), file)
			if err != nil || got != tc.want {
				t.Errorf("alike(): got %v, %v, want %v", got, err, tc.want)
			}
		})
	}
}
